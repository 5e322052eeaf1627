// Shortlist by its public header: a searcher, and the settings that tuning stored for a recall.
#include "native.h"

#include <shortlist.h>

#include <algorithm>
#include <stdexcept>

namespace {

void must(sl_status status) {
    if (status != SL_OK) throw std::runtime_error(sl_last_error());
}

sl_dtype type_of(const std::string &element) {
    return element == "u8" ? SL_U8 : element == "i8" ? SL_I8 : SL_F32;
}

class Shortlist : public Peer {
  public:
    explicit Shortlist(const Opening &opening) : k_(opening.k), type_(type_of(opening.element)) {
        must(sl_index_open(opening.index.c_str(), nullptr, &index_));
        sl_search_params_init(&search_);
        most_ = 0;
        sl_tuned tuned{};
        tuned.struct_size = sizeof tuned;
        for (size_t i = 0; sl_index_get_tuned(index_, i, &tuned) == SL_OK; i++)
            if (tuned.k == k_ && tuned.limit == SL_LIMIT_NONE) most_ = std::max(most_, tuned.target);
        if (most_ <= 0) throw std::runtime_error("the index holds no settings for so many neighbours");
    }

    ~Shortlist() override {
        sl_searcher_free(searcher_);
        sl_index_free(index_);
    }

    // In thousandths of recall, or the highest it can.
    void set(const std::vector<double> &values) override {
        sl_searcher_free(searcher_);
        searcher_ = nullptr;
        search_.recall = std::min(values.front() / 1000, most_);
        sl_tuned tuned{};
        tuned.struct_size = sizeof tuned;
        must(sl_index_find_tuned(index_, k_, search_.recall, &tuned));
        must(sl_searcher_create(index_, std::max({tuned.ef, tuned.ef_alone, k_}), &searcher_));
    }

    size_t search(const void *query, uint64_t *ids) override {
        must(sl_searcher_search(searcher_, query, type_, k_, &search_, ids, nullptr, nullptr));
        return static_cast<size_t>(std::find(ids, ids + k_, SL_NO_ID) - ids);
    }

  private:
    size_t k_;
    sl_dtype type_;
    double most_;
    sl_index *index_ = nullptr;
    sl_searcher *searcher_ = nullptr;
    sl_search_params search_;
};

} // namespace

std::unique_ptr<Peer> open_peer(const Opening &opening) {
    return std::make_unique<Shortlist>(opening);
}
