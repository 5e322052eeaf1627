// hnswlib's index, as its Python binding saves it. That binding searches by the inner product under "ip" and of rows of
// length one.
#include "native.h"

#include <hnswlib/hnswlib.h>

#include <stdexcept>

namespace {

class Allowed : public hnswlib::BaseFilterFunctor {
  public:
    explicit Allowed(const std::vector<uint64_t> &bits) : bits_(bits) {}
    bool operator()(hnswlib::labeltype id) override {
        return bits_[id / 64] >> id % 64 & 1;
    }

  private:
    std::vector<uint64_t> bits_;
};

class Hnswlib : public Peer {
  public:
    explicit Hnswlib(const Opening &opening) : k_(opening.k) {
        if (opening.element != "f32") throw std::runtime_error("hnswlib takes f32 queries");
        if (opening.metric == "l2")
            space_ = std::make_unique<hnswlib::L2Space>(opening.dim);
        else
            space_ = std::make_unique<hnswlib::InnerProductSpace>(opening.dim);
        graph_ = std::make_unique<hnswlib::HierarchicalNSW<float>>(space_.get(), opening.index);
    }

    void set(const std::vector<double> &values) override {
        graph_->setEf(static_cast<size_t>(values.front()));
    }

    size_t search(const void *query, uint64_t *ids) override {
        auto found = graph_->searchKnn(query, k_, allowed_.get());
        const size_t count = found.size();
        for (size_t i = count; i-- > 0; found.pop())
            ids[i] = found.top().second;
        return count;
    }

    void allow(const std::vector<uint64_t> &bits) override {
        allowed_ = bits.empty() ? nullptr : std::make_unique<Allowed>(bits);
    }

  private:
    size_t k_;
    std::unique_ptr<hnswlib::SpaceInterface<float>> space_;
    std::unique_ptr<hnswlib::HierarchicalNSW<float>> graph_;
    std::unique_ptr<Allowed> allowed_;
};

} // namespace

std::unique_ptr<Peer> open_peer(const Opening &opening) {
    return std::make_unique<Hnswlib>(opening);
}
