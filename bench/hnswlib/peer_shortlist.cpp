// Shortlist behind the peer table: the library as it is built and installed, by its public header only.
#include "peer.h"

#include <shortlist.h>

#include <algorithm>
#include <memory>
#include <string>

namespace {

std::string last_error;

struct Index {
    ~Index() {
        sl_searcher_free(searcher);
        sl_index_free(index);
    }
    sl_index *index = nullptr;
    sl_searcher *searcher = nullptr;
    sl_search_params search{};
};

bool done(sl_status status) {
    if (status != SL_OK) last_error = std::string(sl_status_name(status)) + ": " + sl_last_error();
    return status == SL_OK;
}

// A searcher made for just this ef, as a service would make it; k is never larger here than the least of them.
const size_t least_searcher = 100;

int set_ef(void *handle, size_t ef) {
    Index &index = *static_cast<Index *>(handle);
    sl_searcher_free(index.searcher);
    index.searcher = nullptr;
    sl_search_params_init(&index.search);
    index.search.ef = ef;
    return done(sl_searcher_create(index.index, std::max(ef, least_searcher), &index.searcher)) ? 0 : 1;
}

template <typename E> bool named(const char *word, const char *(*name)(E), int count, E *out) {
    for (int i = 0; i < count; i++) {
        if (std::string(name(static_cast<E>(i))) == word) {
            *out = static_cast<E>(i);
            return true;
        }
    }
    last_error = std::string("no such codes or refine tier: ") + word;
    return false;
}

void *build(const peer_params *params, const float *rows, size_t n) {
    auto index = std::make_unique<Index>();
    sl_index_params made;
    sl_index_params_init(&made);
    made.dim = params->dim;
    made.metric = SL_METRIC_COSINE;
    made.m = params->m;
    made.ef_construction = params->ef_construction;
    made.seed = params->seed;
    sl_add_params adding;
    sl_add_params_init(&adding);
    adding.threads = params->threads;
    const bool built = named(params->codes, sl_codes_name, 4, &made.codes) &&
                       named(params->refine, sl_refine_name, 4, &made.refine) &&
                       done(sl_index_create(&made, &index->index)) && done(sl_index_reserve(index->index, n)) &&
                       done(sl_index_add(index->index, rows, SL_F32, n, 0, nullptr, &adding));
    return built ? index.release() : nullptr;
}

void *open_index(const char *path, size_t dim, peer_place place) {
    auto index = std::make_unique<Index>();
    sl_open_params opening;
    sl_open_params_init(&opening);
    opening.place = place == PEER_MAP ? SL_PLACE_MAP : SL_PLACE_DRAM;
    if (!done(sl_index_open(path, &opening, &index->index))) return nullptr;
    sl_index_stats stats{};
    stats.struct_size = sizeof stats;
    if (!done(sl_index_get_stats(index->index, &stats))) return nullptr;
    if (stats.dim != dim) {
        last_error = std::string(path) + ": the index's dimension is not the queries'";
        return nullptr;
    }
    return index.release();
}

int save(void *handle, const char *path) {
    return done(sl_index_save(static_cast<Index *>(handle)->index, path, nullptr)) ? 0 : 1;
}

void close_index(void *handle) {
    delete static_cast<Index *>(handle);
}

int search_one(void *handle, const float *query, size_t k, uint64_t *ids, size_t *evaluations) {
    Index &index = *static_cast<Index *>(handle);
    sl_search_stats stats;
    sl_search_stats *wanted = evaluations == nullptr ? nullptr : &stats;
    const sl_status status = sl_searcher_search(index.searcher, query, SL_F32, k, &index.search, ids, nullptr, wanted);
    if (!done(status)) return 1;
    if (evaluations != nullptr) *evaluations = stats.evaluations;
    return 0;
}

const char *version() {
    return sl_version();
}

const char *error() {
    return last_error.c_str();
}

const peer table = {"shortlist", version,     PEER_COMPILED, build,      open_index,
                    save,        close_index, set_ef,        search_one, error};

} // namespace

const peer *peer_shortlist(void) {
    return &table;
}
