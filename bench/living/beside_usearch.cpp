// usearch over bf16. Threads have numbers, as its documentation asks for, and places reserved for them.
#include "beside.h"

#include <usearch/index_dense.hpp>

#include <stdexcept>

namespace {

using Graph = unum::usearch::index_dense_t;

template <typename Result> void must(Result &&result) {
    if (!result) throw std::runtime_error(result.error.release());
}

class Usearch : public Living {
  public:
    explicit Usearch(const Shape &shape) {
        using namespace unum::usearch;
        const auto kind = shape.metric == "l2" ? metric_kind_t::l2sq_k : metric_kind_t::ip_k;
        auto made = Graph::make(metric_punned_t(shape.dim, kind, scalar_kind_t::bf16_k),
                                index_dense_config_t(shape.m, EF_CONSTRUCTION));
        must(made);
        graph_ = std::move(made.index);
        if (!graph_.try_reserve(index_limits_t(shape.room, 1 + WRITERS))) throw std::runtime_error("no memory");
    }

    void add(uint64_t id, const float *row, size_t thread) override {
        must(graph_.add(id, row, thread));
    }

    void remove(uint64_t id, size_t) override {
        must(graph_.remove(id));
    }

    void set(size_t ef) override {
        graph_.change_expansion_search(ef);
    }

    size_t search(const float *query, uint64_t *ids) override {
        auto found = graph_.search(query, K, SEARCHER);
        must(found);
        return found.dump_to(ids, distances_);
    }

  private:
    float distances_[K];
    Graph graph_;
};

} // namespace

std::unique_ptr<Living> open_living(const Shape &shape) {
    return std::make_unique<Usearch>(shape);
}
