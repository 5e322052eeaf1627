// hnswlib, with slots of deleted vectors used again. Its README calls add_items and knn_query not safe beside each
// other; the program measures them all the same.
#include "beside.h"

#include <hnswlib/hnswlib.h>

namespace {

class Hnswlib : public Living {
  public:
    explicit Hnswlib(const Shape &shape) {
        if (shape.metric == "l2")
            space_ = std::make_unique<hnswlib::L2Space>(shape.dim);
        else
            space_ = std::make_unique<hnswlib::InnerProductSpace>(shape.dim);
        graph_ = std::make_unique<hnswlib::HierarchicalNSW<float>>(space_.get(), shape.room, shape.m, EF_CONSTRUCTION,
                                                                   100, true);
    }

    void add(uint64_t id, const float *row, size_t) override {
        graph_->addPoint(row, id, true);
    }

    void remove(uint64_t id, size_t) override {
        graph_->markDelete(id);
    }

    void set(size_t ef) override {
        graph_->setEf(ef);
    }

    size_t search(const float *query, uint64_t *ids) override {
        auto found = graph_->searchKnn(query, K);
        const size_t count = found.size();
        for (size_t i = count; i-- > 0; found.pop())
            ids[i] = found.top().second;
        return count;
    }

  private:
    std::unique_ptr<hnswlib::SpaceInterface<float>> space_;
    std::unique_ptr<hnswlib::HierarchicalNSW<float>> graph_;
};

} // namespace

std::unique_ptr<Living> open_living(const Shape &shape) {
    return std::make_unique<Hnswlib>(shape);
}
