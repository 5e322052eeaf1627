// Shortlist by its public header, in memory. The driver asks for searches beside writers, and for threads that add to
// one handle, only where the header allows them (bench/living/handle.py).
#include "beside.h"

#include <shortlist.h>

#include <stdexcept>

namespace {

enum { MAX_EF = 4096 };

void must(sl_status status) {
    if (status != SL_OK) throw std::runtime_error(sl_last_error());
}

class Shortlist : public Living {
  public:
    explicit Shortlist(const Shape &shape) {
        sl_index_params how;
        sl_index_params_init(&how);
        how.dim = shape.dim;
        how.metric = shape.metric == "l2" ? SL_METRIC_L2 : shape.metric == "ip" ? SL_METRIC_IP : SL_METRIC_COSINE;
        how.codes = SL_CODES_I8;
        how.refine = SL_REFINE_BF16;
        how.m = shape.m;
        how.ef_construction = EF_CONSTRUCTION;
        must(sl_index_create(&how, &index_));
        must(sl_searcher_create(index_, MAX_EF, &searcher_));
        sl_search_params_init(&search_);
        sl_add_params_init(&add_);
        add_.threads = 1;
    }

    ~Shortlist() override {
        sl_searcher_free(searcher_);
        sl_index_free(index_);
    }

    void add(uint64_t id, const float *row, size_t) override {
        must(sl_index_add(index_, row, SL_F32, 1, 0, &id, &add_));
    }

    bool add_many(uint64_t begin, const float *rows, size_t count, size_t threads) override {
        sl_add_params how = add_;
        how.threads = threads;
        std::unique_ptr<uint64_t[]> ids(new uint64_t[count]);
        for (size_t i = 0; i < count; i++)
            ids[i] = begin + i;
        must(sl_index_add(index_, rows, SL_F32, count, 0, ids.get(), &how));
        return true;
    }

    void remove(uint64_t id, size_t) override {
        must(sl_index_delete(index_, &id, 1));
    }

    void set(size_t ef) override {
        search_.ef = ef;
    }

    size_t search(const float *query, uint64_t *ids) override {
        sl_search_stats stats{};
        must(sl_searcher_search(searcher_, query, SL_F32, K, &search_, ids, nullptr, &stats));
        return stats.results;
    }

  private:
    sl_index *index_ = nullptr;
    sl_searcher *searcher_ = nullptr;
    sl_search_params search_;
    sl_add_params add_;
};

} // namespace

std::unique_ptr<Living> open_living(const Shape &shape) {
    return std::make_unique<Shortlist>(shape);
}
