// A model of the library as Python's objects hold it. It never changes, so any number of threads may be inside.
#pragma once

#include "pool.hpp"
#include "source.hpp"

class Ranker {
  public:
    // options: threads, epochs, seed, checkpoint (bytes or None), checkpoint_steps, resume, init and teacher (a Ranker
    // or None), temperature, soft, rate_scale, layers and ranges (numbers), keep (names; of train alone). Gives the
    // model and the report of its training.
    static nb::tuple train(nb::str spec, nb::handle rows, nb::handle valid, nb::dict options, nb::handle lookup,
                           nb::handle progress, nb::handle on_epoch);
    // cuts: the fields of sl_prune_params; options as above. Gives the smaller model and the report.
    nb::tuple prune(nb::handle rows, nb::handle valid, nb::dict cuts, nb::dict options, nb::handle lookup,
                    nb::handle progress, nb::handle on_epoch);
    static Ranker *create(nb::str spec, nb::handle rows, uint64_t seed, nb::handle lookup);
    static Ranker *open(nb::bytes path);
    // The report on the file, with the status and message of the call.
    static nb::dict check(nb::bytes path, nb::handle progress);
    ~Ranker();
    Ranker(const Ranker &) = delete;
    Ranker &operator=(const Ranker &) = delete;

    void save(nb::bytes path, nb::handle progress);
    // Fills scores_out, (rows, outputs).
    void predict(nb::handle table, size_t threads, nb::handle lookup, nb::handle scores_out);
    // The same for an unknown number of rows: returns the scores' bytes.
    nb::bytearray predict_rows(nb::handle rows, size_t threads, nb::handle lookup);
    // Bytes of dense, ids, bag_start and bag_ids.
    nb::tuple encode(nb::handle rows, nb::handle lookup);
    // Fills scores_out, (n, outputs), from arrays as encode gives them.
    void predict_encoded(size_t n, nb::handle dense, nb::handle ids, nb::handle bag_start, nb::handle bag_ids,
                         nb::handle scores_out);
    nb::dict evaluate(nb::handle rows, nb::handle group, size_t k, size_t threads, nb::handle lookup,
                      nb::handle progress);
    // options: those of shortlist.Ranker.quantize as the library's fields, keep a list of names, training the options
    // of train or None. Gives the model, the report, and the trials.
    nb::tuple quantize(nb::handle rows, nb::handle eval, nb::dict options, nb::handle lookup, nb::handle progress);
    nb::list layers();
    nb::dict info();
    nb::list classes();
    nb::list features();
    nb::list embeddings();
    // Read-only views of the weights by name; each keeps self, which is this, alive.
    static nb::dict tensors(nb::handle self);
    // tensors: contiguous (rows, columns) float32 arrays by name.
    Ranker *with_tensors(nb::dict tensors);
    // layers: for each, its precision's number, and of INT8 scale, zero, codes (in, out) and weight scales (out,).
    Ranker *with_layers(nb::list layers);

    sl_ranker *handle() const {
        return handle_;
    }

  private:
    explicit Ranker(sl_ranker *handle);
    sl_ranker_info query() const;

    struct Room {
        size_t rows, threads;
        bool covers(const Room &other) const {
            return rows == other.rows && threads == other.threads;
        }
    };

    sl_ranker *handle_;
    size_t outputs_;
    Pool<sl_predictor, Room, sl_predictor_free> predictors_; // those without a lookup
};

void define_ranker(nb::module_ &m);
