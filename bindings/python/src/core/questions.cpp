// Questions to an index: searches that take filters, all vectors within a radius, and its ids.
#include "buffer.hpp"
#include "node_filter.hpp"

#include <algorithm>
#include <new>
#include <vector>

namespace {

struct Result {
    uint64_t id;
    float score;
};

// The results of a batch of queries. The library calls take for one query on one thread.
class Ranges {
  public:
    Ranges(size_t queries, bool small_is_near) : rows_(queries), small_is_near_(small_is_near) {}

    // Nonzero ends the query.
    static int take(void *self, size_t query, uint64_t id, float score) {
        auto *ranges = static_cast<Ranges *>(self);
        try {
            ranges->rows_[query].push_back({id, score});
            return 0;
        } catch (std::bad_alloc &) {
            ranges->full_ = true;
            return 1;
        }
    }

    // Counts, ids and scores, the nearest first in each row. Equal scores go by their ids.
    nb::tuple bytes() {
        if (full_) throw std::bad_alloc();
        std::vector<uint64_t> counts, ids;
        std::vector<float> scores;
        for (std::vector<Result> &row : rows_) {
            std::sort(row.begin(), row.end(), [this](const Result &a, const Result &b) {
                return a.score != b.score ? (a.score < b.score) == small_is_near_ : a.id < b.id;
            });
            counts.push_back(row.size());
            for (const Result &result : row) {
                ids.push_back(result.id);
                scores.push_back(result.score);
            }
        }
        return nb::make_tuple(bytes_of(counts), bytes_of(ids), bytes_of(scores));
    }

  private:
    template <class T> static nb::bytes bytes_of(const std::vector<T> &values) {
        return nb::bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
    }

    std::vector<std::vector<Result>> rows_;
    bool small_is_near_;
    std::atomic<bool> full_{false};
};

} // namespace

void Index::search(nb::handle rows, int dtype, size_t k, nb::dict options, nb::handle ids_out, nb::handle scores_out) {
    Rows q(rows, static_cast<sl_dtype>(dtype), dim_);
    Flat<uint64_t> ids(ids_out, q.count() * k, true);
    Flat<float> scores(scores_out, q.count() * k, true);
    std::vector<const sl_filter *> filters;
    sl_search_params params = search_params_of(options, q.count(), filters);
    search_in({q.data(), static_cast<sl_dtype>(dtype), q.count(), q.stride()}, k, params, ids.data(), scores.data());
}

bool Index::contains(uint64_t id) {
    int found = 0;
    ::check(use(Access::shared, [&] { return Outcome(sl_index_contains(handle_.get(), id, &found)); }));
    return found != 0;
}

size_t Index::list(nb::handle ids_out, size_t room) {
    Flat<uint64_t> ids(ids_out, room, true);
    size_t count = 0;
    ::check(use(Access::shared, [&] { return Outcome(sl_index_ids(handle_.get(), ids.data(), room, &count)); }));
    return count;
}

void Index::search_ids(nb::handle ids, size_t n, size_t k, nb::dict options, nb::handle ids_out,
                       nb::handle scores_out) {
    Flat<const uint64_t> labels(ids, n);
    Flat<uint64_t> found(ids_out, n * k, true);
    Flat<float> scores(scores_out, n * k, true);
    Progress progress{nb::none()};
    std::vector<const sl_filter *> filters;
    sl_search_params params = search_params_of(options, n, filters);
    params.threads = n > 1 ? batch_threads(params.threads) : 1;
    if (n > 1) progress.attach(params);
    progress.check(search_use(params, [&] {
        return Outcome(
            sl_index_search_ids(handle_.get(), labels.data(), n, k, &params, found.data(), scores.data(), nullptr));
    }));
}

nb::tuple Index::range(nb::handle rows, int dtype, double radius, bool exact, size_t ef, double slack, size_t threads,
                       nb::handle filter) {
    Rows q(rows, static_cast<sl_dtype>(dtype), dim_);
    Progress progress{nb::none()};
    sl_index_stats stats{};
    sl_range_params params;
    sl_range_params_init(&params);
    stats.struct_size = sizeof stats;
    params.exact = exact;
    params.ef = ef;
    params.slack = slack;
    params.threads = q.count() > 1 ? batch_threads(threads) : 1;
    params.filter = filter_handle(filter);
    if (q.count() > 1) progress.attach(params);
    ::check(use(Access::shared, [&] { return Outcome(sl_index_get_stats(handle_.get(), &stats)); }));
    Ranges found(q.count(), stats.metric == SL_METRIC_L2);
    progress.check(search_use(params, [&] {
        return Outcome(sl_index_range(handle_.get(), q.data(), static_cast<sl_dtype>(dtype), q.count(), q.stride(),
                                      radius, &params, Ranges::take, &found, nullptr));
    }));
    return found.bytes();
}
