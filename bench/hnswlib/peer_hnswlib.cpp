// hnswlib behind the peer table, used as its own Python binding uses it: the cosine is the inner product of normalised
// vectors, rows are added by threads that take the next one from a shared counter.
#include "peer.h"

#include <hnswlib/hnswlib.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string last_error;

struct Index {
    explicit Index(size_t dim) : dim(dim), space(dim), normal(dim) {}
    size_t dim;
    hnswlib::InnerProductSpace space;
    std::unique_ptr<hnswlib::HierarchicalNSW<float>> graph;
    std::vector<float> normal; // the query, normalised
};

void normalise(const float *from, float *to, size_t dim) {
    float sum = 0.0f;
    for (size_t i = 0; i < dim; i++)
        sum += from[i] * from[i];
    const float scale = 1.0f / (std::sqrt(sum) + 1e-30f);
    for (size_t i = 0; i < dim; i++)
        to[i] = from[i] * scale;
}

// hnswlib's own counter counts links read, visited nodes included; this counts the distances computed.
thread_local size_t evaluations_made;
thread_local hnswlib::DISTFUNC<float> counted_function;

float count_and_compute(const void *a, const void *b, const void *dim) {
    evaluations_made++;
    return counted_function(a, b, dim);
}

void add_rows(Index &index, const float *rows, size_t n, size_t threads) {
    std::vector<std::thread> workers;
    std::vector<std::exception_ptr> failures(threads);
    std::atomic<size_t> next(1);
    normalise(rows, index.normal.data(), index.dim);
    index.graph->addPoint(index.normal.data(), 0);
    for (size_t t = 0; t < threads; t++) {
        workers.emplace_back([&, t] {
            try {
                std::vector<float> normal(index.dim);
                for (size_t row; (row = next.fetch_add(1)) < n;) {
                    normalise(rows + row * index.dim, normal.data(), index.dim);
                    index.graph->addPoint(normal.data(), row);
                }
            } catch (...) {
                failures[t] = std::current_exception();
                next = n;
            }
        });
    }
    for (auto &worker : workers)
        worker.join();
    for (auto &failure : failures) {
        if (failure) std::rethrow_exception(failure);
    }
}

void *build(const peer_params *params, const float *rows, size_t n) {
    try {
        auto index = std::make_unique<Index>(params->dim);
        index->graph = std::make_unique<hnswlib::HierarchicalNSW<float>>(&index->space, n, params->m,
                                                                         params->ef_construction, params->seed);
        add_rows(*index, rows, n, params->threads);
        return index.release();
    } catch (const std::exception &failure) {
        last_error = failure.what();
        return nullptr;
    }
}

void *open_index(const char *path, size_t dim, peer_place) {
    try {
        auto index = std::make_unique<Index>(dim);
        index->graph = std::make_unique<hnswlib::HierarchicalNSW<float>>(&index->space, std::string(path));
        return index.release();
    } catch (const std::exception &failure) {
        last_error = std::string(path) + ": " + failure.what();
        return nullptr;
    }
}

int save(void *handle, const char *path) {
    try {
        static_cast<Index *>(handle)->graph->saveIndex(path);
        return 0;
    } catch (const std::exception &failure) {
        last_error = std::string(path) + ": " + failure.what();
        return 1;
    }
}

void close_index(void *handle) {
    delete static_cast<Index *>(handle);
}

int set_ef(void *handle, size_t ef) {
    static_cast<Index *>(handle)->graph->setEf(ef);
    return 0;
}

void search(Index &index, const float *query, size_t k, uint64_t *ids) {
    normalise(query, index.normal.data(), index.dim);
    auto found = index.graph->searchKnn(index.normal.data(), k);
    std::fill(ids + found.size(), ids + k, UINT64_MAX);
    while (!found.empty()) {
        ids[found.size() - 1] = found.top().second;
        found.pop();
    }
}

int search_one(void *handle, const float *query, size_t k, uint64_t *ids, size_t *evaluations) {
    try {
        Index &index = *static_cast<Index *>(handle);
        if (evaluations == nullptr) {
            search(index, query, k, ids);
            return 0;
        }
        evaluations_made = 0;
        counted_function = index.graph->fstdistfunc_;
        index.graph->fstdistfunc_ = count_and_compute;
        search(index, query, k, ids);
        index.graph->fstdistfunc_ = counted_function;
        *evaluations = evaluations_made;
        return 0;
    } catch (const std::exception &failure) {
        last_error = failure.what();
        return 1;
    }
}

const char *version() {
    return PEER_VERSION;
}

const char *error() {
    return last_error.c_str();
}

const peer table = {"hnswlib", version, PEER_COMPILED, build, open_index, save, close_index, set_ef, search_one, error};

} // namespace

const peer *peer_hnswlib(void) {
    return &table;
}
