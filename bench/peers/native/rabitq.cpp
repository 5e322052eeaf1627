// SymphonyQG of rabitqlib, by the headers and the library that its Python package holds.
#include "native.h"

#include <rabitqlib/index/symqg/qg.hpp>

#include <stdexcept>
#include <vector>

namespace {

class Symphony : public Peer {
  public:
    explicit Symphony(const Opening &opening) : found_(opening.k), distances_(opening.k) {
        if (opening.element != "f32") throw std::runtime_error("SymphonyQG takes f32 queries");
        graph_.load(opening.index.c_str());
    }

    void set(const std::vector<double> &values) override {
        graph_.set_ef(static_cast<size_t>(values.front()));
    }

    size_t search(const void *query, uint64_t *ids) override {
        graph_.search(static_cast<const float *>(query), static_cast<uint32_t>(found_.size()), found_.data(),
                      distances_.data());
        for (size_t i = 0; i < found_.size(); i++)
            ids[i] = found_[i];
        return found_.size();
    }

  private:
    rabitqlib::symqg::QuantizedGraph<float> graph_;
    std::vector<uint32_t> found_;
    std::vector<float> distances_;
};

} // namespace

std::unique_ptr<Peer> open_peer(const Opening &opening) {
    return std::make_unique<Symphony>(opening);
}
