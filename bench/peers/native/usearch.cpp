// usearch's index, as its Python binding saves it: rows of length one under "ip". Its predicate is a lambda.
#include "native.h"

#include <usearch/index_dense.hpp>

#include <stdexcept>
#include <utility>

namespace {

using Graph = unum::usearch::index_dense_t;

class Usearch : public Peer {
  public:
    explicit Usearch(const Opening &opening) : k_(opening.k), distances_(opening.k) {
        if (opening.element != "f32") throw std::runtime_error("usearch is asked with f32 queries here");
        auto made = Graph::make(opening.index.c_str());
        if (!made) throw std::runtime_error(made.error.release());
        graph_ = std::move(made.index);
    }

    void set(const std::vector<double> &values) override {
        graph_.change_expansion_search(static_cast<size_t>(values.front()));
    }

    size_t search(const void *query, uint64_t *ids) override {
        const auto *row = static_cast<const float *>(query);
        const auto allowed = [this](uint64_t id) { return (bits_[id / 64] >> id % 64 & 1) != 0; };
        auto found = bits_.empty() ? graph_.search(row, k_, 0) : graph_.filtered_search(row, k_, allowed, 0);
        if (!found) throw std::runtime_error(found.error.release());
        evaluations_ += found.computed_distances;
        return found.dump_to(ids, distances_.data());
    }

    void allow(const std::vector<uint64_t> &bits) override {
        bits_ = bits;
    }

    std::string counted() override {
        return ", \"evaluations\": " + std::to_string(std::exchange(evaluations_, 0));
    }

  private:
    size_t k_;
    std::vector<float> distances_;
    std::vector<uint64_t> bits_;
    size_t evaluations_ = 0;
    Graph graph_;
};

} // namespace

std::unique_ptr<Peer> open_peer(const Opening &opening) {
    return std::make_unique<Usearch>(opening);
}
