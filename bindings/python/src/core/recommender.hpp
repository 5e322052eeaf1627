// A recommender of the library as Python's objects hold it. Its index is guarded as in index.hpp. Requests run beside
// each other; changes of model or items take turns.
#pragma once

#include "index.hpp"
#include "items.hpp"
#include "pool.hpp"
#include "ranker.hpp"

class Recommender {
  public:
    // ranker, items, group: or None. item_part: an sl_item_part.
    Recommender(nb::handle index, nb::handle ranker, nb::handle items, int item_part, size_t threads,
                float missing_score, nb::handle group, bool verify);
    ~Recommender();
    Recommender(const Recommender &) = delete;
    Recommender &operator=(const Recommender &) = delete;

    // A request's arguments. Arrays are as in Python's Recommender, ready to be used.
    //   vectors (nq, dim) of dtype; user: a Table of nq rows, or None; exclude_start (nq + 1) and exclude_ids, or None;
    //   filter: a Filter of the index, or None
    // options: n, candidates, ef, max_per_group, threads.
    nb::dict recommend(nb::dict request, nb::dict options, nb::handle ids_out, nb::handle scores_out,
                       nb::handle recall_out, nb::handle progress);
    // Scores of count ids for the one vector of request; recall: their recall scores, or None.
    nb::dict score(nb::dict request, nb::handle ids, size_t count, nb::handle recall, nb::handle scores_out);
    // None: the one in use.
    void swap(nb::handle ranker, nb::handle items);
    // As of Items, with what was computed ahead.
    void update(nb::handle table, bool partial);
    void remove(nb::handle ids, size_t n);
    uint64_t version() const {
        return sl_recommender_version(handle_);
    }
    size_t item_bytes() const {
        return sl_recommender_item_bytes(handle_);
    }

  private:
    struct Asked; // the arrays of one call
    struct Room { // the largest a session can be asked for
        size_t n, candidates, ef;
        bool covers(const Room &other) const {
            return n >= other.n && candidates >= other.candidates && ef >= other.ef;
        }
    };
    using Sessions = Pool<sl_session, Room, sl_session_free>;
    class Session;

    template <class Work> Outcome use(Work work);
    template <class Work> void with_items(nb::handle given, Work work);
    template <class Work> void change(Work work);

    nb::object index_object_, items_object_; // keep alive
    Index &index_;
    std::shared_ptr<sl_index> index_handle_;
    sl_recommender *handle_ = nullptr;
    Gate changes_;
    std::atomic<Items *> in_use_; // written within changes_; items_object_, which keeps it alive, follows
    Sessions sessions_;
};

void define_recommender(nb::module_ &m);
