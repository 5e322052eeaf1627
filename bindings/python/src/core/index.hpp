// An index of the library as Python's objects hold it: one handle behind a gate.
#pragma once

#include "gate.hpp"
#include "progress.hpp"

#include <atomic>
#include <memory>
#include <optional>

class Index {
  public:
    static Index *create(size_t dim, int metric, int dtype, int codes, int refine, int clip, double clip_share,
                         size_t m, size_t ef_construction, uint64_t seed, int numa, size_t numa_node, bool tags,
                         bool keys, bool multi, size_t max_memory, nb::handle work_path);
    static Index *open(nb::bytes path, int place, bool writable, int numa, size_t numa_node, int tier, size_t threads,
                       bool exclusive, double wait);
    // A new index of the vectors of one or more. indexes: a list of Index.
    static Index *merge(nb::list indexes, size_t m, size_t ef_construction, int clash, int builder, size_t threads,
                        nb::handle progress);
    // An index of another library's file. format: an sl_foreign_format. metric: an sl_metric, or SL_METRIC_OF_FILE.
    static Index *import_file(nb::bytes path, int format, int metric, size_t dim, int codes, int refine, int clip,
                              double clip_share, size_t threads, nb::handle progress);
    Index(const Index &) = delete;
    Index &operator=(const Index &) = delete;

    // ids, tags, keys: uint64, one a row, or None. replace: an sl_replace. old: rows like `rows`, or
    // None.
    void add(nb::handle rows, int dtype, nb::handle ids, nb::handle tags, nb::handle keys, int replace, nb::handle old,
             int builder, size_t threads, nb::handle progress);
    // words: uint64, one an id. They are tags, or keys where `keys` is true.
    void set_words(bool keys, nb::handle ids, size_t n, nb::handle words);
    void get_words(bool keys, nb::handle ids, size_t n, nb::handle words_out);
    void remove(nb::handle ids, size_t n);
    void undelete(nb::handle ids, size_t n);
    void compact(nb::handle function);
    // Fills ids_out and scores_out, (nq, k) each. options: the fields of sl_search_params by name; filter is a Filter,
    // a list with a Filter or None for each query, or None; threshold is a number or None. recall above 0: searches by
    // the settings tuned for it, and ignores ef, rerank, stop, probes and groups.
    void search(nb::handle rows, int dtype, size_t k, nb::dict options, nb::handle ids_out, nb::handle scores_out);
    // The same for n stored vectors, each without itself. ids: n of them.
    void search_ids(nb::handle ids, size_t n, size_t k, nb::dict options, nb::handle ids_out, nb::handle scores_out);
    // The vectors within the radius of each query, best first: counts (uint64), ids (uint64) and scores (float32) as
    // bytes. filter: a Filter, or None.
    nb::tuple range(nb::handle rows, int dtype, double radius, bool exact, size_t ef, double slack, size_t threads,
                    nb::handle filter);
    // Searches without a filter: arrays of ids and scores. q must be a NumPy array that the library can read, and the
    // rest numbers in their ranges. Otherwise returns None, and Python converts or refuses the arguments.
    nb::object search_as_is(nb::handle q, nb::handle k, nb::handle ef, nb::handle threads, nb::handle rerank,
                            nb::handle recall, nb::handle stop, nb::handle probes, nb::handle groups);
    // truth: (nq, k) uint64, or None. targets: target_count float64, or None. The report's fields.
    nb::dict tune(nb::handle rows, int dtype, size_t k, nb::handle truth, nb::handle targets, size_t target_count,
                  size_t max_ef, size_t threads, nb::handle progress);
    // A dict for each setting that the index stores. "limit" None: the target was reached.
    nb::list tuned();
    void get(nb::handle ids, size_t n, int dtype, nb::handle out);
    // All vectors of one id, one behind the other.
    nb::bytes get_all(uint64_t id, int dtype);
    bool contains(uint64_t id);
    // Fills ids_out, which has room for that many ids. Returns how many there are.
    size_t list(nb::handle ids_out, size_t room);
    // room above 0 makes a file that can be opened for writing in place.
    void save(nb::bytes path, size_t room, int layout, nb::handle progress);
    // Plans adding n vectors to a new index of these parameters, and saving it. Throws unless create() made the
    // index.
    nb::dict plan(uint64_t n, int builder, size_t threads, size_t room, int layout);
    // Makes the changes of an index that is written in place durable.
    void sync();
    // The report as a dict. Damage is in its "status" and "message", and is not raised.
    nb::dict check(size_t sample, size_t k, size_t ef, size_t threads, bool scrub, nb::handle progress);
    // Vectors of a sample, and those of them whose nearest the codes do not tell apart.
    nb::tuple resolution(size_t threads);
    nb::dict recall(size_t sample, size_t k, size_t ef, double seconds, uint64_t seed, nb::handle function);
    nb::dict stats();
    // The memory nodes of layer 0.
    nb::dict numa();
    // Frees the index; every later call but close and size raises ValueError.
    void close();

    // The number of vectors at this moment, known without waiting for a call at work. After close(): as it was then.
    size_t size();
    bool closed() const {
        return closed_;
    }

    // Runs work() under the gate, or under several gates with this index's among them, and returns its result. Raises
    // ValueError on a closed index.
    template <class Work> Outcome use(Access access, Work work) {
        return use_in({{gate_, access}}, work);
    }
    template <class Work> Outcome use_in(std::initializer_list<Gate::Pass> passes, Work work) {
        Outcome outcome;
        bool open = false;
        Gate::run_in(passes, [&] {
            open = handle_ != nullptr;
            if (open) outcome = work();
        });
        if (!open) throw nb::value_error("the index is closed");
        return outcome;
    }

    // The same for work that uses a filter of the index. Access is that of the filter: a refresh is exclusive, and
    // waits for nothing but work with filters.
    template <class Work> Outcome use_filter(Access access, Work work) {
        return use_in({{filters_, access}, {gate_, Access::shared}}, work);
    }

    // For objects that keep the handle. The last of them frees it, also after close().
    const std::shared_ptr<sl_index> &handle() const {
        return handle_;
    }
    Gate &gate() {
        return gate_;
    }
    size_t dim() const {
        return dim_;
    }

  private:
    struct Queries {
        const void *data;
        sl_dtype dtype;
        size_t count, stride;
    };

    explicit Index(sl_index *handle);
    // params: its threads are those asked for; its progress is set here.
    void search_in(const Queries &q, size_t k, sl_search_params &params, uint64_t *ids, float *scores);
    // A use for searches of these parameters.
    template <class Params, class Work> Outcome search_use(const Params &params, Work work) {
        return has_filters(params) ? use_filter(Access::shared, work) : use(Access::shared, work);
    }
    static bool has_filters(const sl_search_params &params) {
        return params.filter || params.filters;
    }
    static bool has_filters(const sl_range_params &params) {
        return params.filter;
    }

    std::shared_ptr<sl_index> handle_;
    std::optional<sl_index_params> created_; // those of create()
    Gate gate_, filters_;
    size_t dim_;
    sl_dtype dtype_; // SL_F32 for all floating-point types
    std::atomic<size_t> last_size_{0};
    std::atomic<bool> closed_{false};
};

// To be called once when the module is loaded, before search_as_is.
void load_numpy();

// The path as the library takes it; raises ValueError if it holds a NUL.
const char *path_text(const nb::bytes &path);

// A copy of an index file, also while it is written.
void take_snapshot(nb::bytes path, nb::bytes copy, nb::handle progress);
nb::dict rebuild(nb::bytes path, nb::handle output, size_t m, size_t ef_construction, size_t room, int builder,
                 size_t threads, double wait, nb::handle progress);
