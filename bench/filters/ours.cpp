// Shortlist by its public header, with a filter: the program of bench/peers/native/native.cpp around it. Settings are
// EF STRATEGY RECALL: a number of sl_filter_strategy, and a recall in thousandths; above 0, stored settings take EF's
// place.
#include "native.h"

#include <shortlist.h>

#include <algorithm>
#include <stdexcept>

namespace {

// Every strategy but AUTO, in the order of sl_filter_strategy, with its count of the queries that ended with it. The
// driver forces each that is named here.
const struct {
    const char *name;
    size_t sl_search_stats::*queries;
} strategies[] = {{"exact", &sl_search_stats::exact},
                  {"partitions", &sl_search_stats::partitions},
                  {"walk", &sl_search_stats::walks},
                  {"hops", &sl_search_stats::hops}};

enum { LEAST_ROOM = 1024, ROOM = 8 }; // as sl_index_search gives walks that find too few

void must(sl_status status) {
    if (status != SL_OK) throw std::runtime_error(sl_last_error());
}

class Shortlist : public Peer {
  public:
    explicit Shortlist(const Opening &opening) : k_(opening.k) {
        sl_open_params how;
        sl_open_params_init(&how);
        how.place = SL_PLACE_DRAM;
        must(sl_index_open(opening.index.c_str(), &how, &index_));
        sl_search_params_init(&search_);
    }

    ~Shortlist() override {
        sl_searcher_free(searcher_);
        sl_filter_free(filter_);
        sl_index_free(index_);
    }

    void set(const std::vector<double> &values) override {
        if (values.size() != 3) throw std::runtime_error("not EF STRATEGY RECALL");
        search_.ef = static_cast<size_t>(values[0]);
        search_.strategy = static_cast<sl_filter_strategy>(static_cast<int>(values[1]));
        search_.recall = values[2] / 1000;
        sl_searcher_free(searcher_);
        searcher_ = nullptr;
        must(sl_searcher_create(index_, std::max<size_t>(LEAST_ROOM, ROOM * deepest()), &searcher_));
    }

    size_t search(const void *query, uint64_t *ids) override {
        sl_search_stats stats{};
        must(sl_searcher_search(searcher_, query, SL_F32, k_, &search_, ids, nullptr, &stats));
        counts_.results += stats.results;
        counts_.evaluations += stats.evaluations;
        for (const auto &strategy : strategies)
            counts_.*strategy.queries += stats.*strategy.queries;
        return static_cast<size_t>(std::find(ids, ids + k_, SL_NO_ID) - ids);
    }

    void allow(const std::vector<uint64_t> &bits) override {
        sl_filter_free(filter_);
        filter_ = nullptr;
        if (!bits.empty()) {
            sl_filter_params params;
            sl_filter_params_init(&params);
            params.bits = bits.data();
            params.bits_count = bits.size() * 64;
            must(sl_filter_create(index_, &params, &filter_));
        }
        search_.filter = filter_;
    }

    std::string counted() override {
        std::string told = ", \"results\": " + std::to_string(counts_.results) +
                           ", \"evaluations\": " + std::to_string(counts_.evaluations) + ", \"strategies\": {";
        for (const auto &strategy : strategies)
            told += std::string(&strategy == strategies ? "\"" : ", \"") + strategy.name +
                    "\": " + std::to_string(counts_.*strategy.queries);
        counts_ = {};
        return told + "}";
    }

  private:
    // The ef of these settings.
    size_t deepest() const {
        if (search_.recall <= 0) return std::max(search_.ef, k_);
        sl_tuned tuned{};
        tuned.struct_size = sizeof tuned;
        must(sl_index_find_tuned(index_, k_, search_.recall, &tuned));
        return std::max({tuned.ef, tuned.ef_alone, k_});
    }

    size_t k_;
    sl_index *index_ = nullptr;
    sl_filter *filter_ = nullptr;
    sl_searcher *searcher_ = nullptr;
    sl_search_params search_;
    sl_search_stats counts_{};
};

} // namespace

std::unique_ptr<Peer> open_peer(const Opening &opening) {
    return std::make_unique<Shortlist>(opening);
}
