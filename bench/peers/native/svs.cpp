// Vamana of Intel SVS over plain elements, by the headers and the library that its Python package holds.
#include "native.h"

#include <svs/core/data.h>
#include <svs/orchestrators/vamana.h>

#include <filesystem>
#include <stdexcept>

namespace {

svs::DistanceType distance_of(const std::string &metric) {
    return metric == "l2" ? svs::DistanceType::L2 : svs::DistanceType::MIP;
}

template <typename Element> svs::Vamana opened(const Opening &opening) {
    const std::filesystem::path folder(opening.index);
    return svs::Vamana::assemble<float>(folder / "config", svs::GraphLoader(folder / "graph"),
                                        svs::VectorDataLoader<Element>(folder / "data"), distance_of(opening.metric),
                                        size_t{1});
}

svs::Vamana opened_as(const Opening &opening) {
    if (opening.element != "f32") throw std::runtime_error("SVS is asked with f32 queries here");
    if (opening.kind == "f16") return opened<svs::Float16>(opening);
    if (opening.kind == "f32") return opened<float>(opening);
    throw std::runtime_error("SVS over '" + opening.kind + "' cannot be opened by its headers");
}

class Svs : public Peer {
  public:
    explicit Svs(const Opening &opening) : dim_(opening.dim), index_(opened_as(opening)), found_(1, opening.k) {}

    // The window, the buffer's capacity, how far ahead to fetch and in what steps.
    void set(const std::vector<double> &values) override {
        if (values.size() != 4) throw std::runtime_error("not WINDOW CAPACITY LOOKAHEAD STEP");
        auto parameters = index_.get_search_parameters();
        parameters.buffer_config({static_cast<size_t>(values[0]), static_cast<size_t>(values[1])});
        parameters.prefetch_lookahead(static_cast<size_t>(values[2]));
        parameters.prefetch_step(static_cast<size_t>(values[3]));
        index_.set_search_parameters(parameters);
    }

    size_t search(const void *query, uint64_t *ids) override {
        const svs::data::ConstSimpleDataView<float> row(static_cast<const float *>(query), 1, dim_);
        index_.search(found_.view(), row, index_.get_search_parameters());
        for (size_t i = 0; i < found_.n_neighbors(); i++)
            ids[i] = found_.index(0, i);
        return found_.n_neighbors();
    }

  private:
    size_t dim_;
    svs::Vamana index_;
    svs::QueryResult<size_t> found_;
};

} // namespace

std::unique_ptr<Peer> open_peer(const Opening &opening) {
    return std::make_unique<Svs>(opening);
}
