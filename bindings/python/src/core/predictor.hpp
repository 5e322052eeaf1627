// The library's predictor, and its results gathered block by block.
#pragma once

#include "lookup.hpp"

#include <shortlist_rank.h>

#include <utility>
#include <vector>

// A predictor for one call.
class Predictor {
  public:
    static constexpr size_t block = 4096;

    // made: one to use, of the same settings, or NULL.
    Predictor(sl_ranker *ranker, size_t max_rows, size_t threads, Lookup *lookup, sl_predictor *made = nullptr)
        : handle_(made) {
        if (made) return;
        sl_predictor_params params;
        sl_predictor_params_init(&params);
        params.max_rows = max_rows;
        params.threads = threads;
        if (lookup) lookup->attach(params);
        status_ = sl_predictor_create(ranker, &params, &handle_);
    }
    ~Predictor() {
        sl_predictor_free(handle_);
    }
    Predictor(const Predictor &) = delete;
    Predictor &operator=(const Predictor &) = delete;

    // For use by another call; NULL: it could not be made.
    sl_predictor *release() {
        return std::exchange(handle_, nullptr);
    }

    // work(predictor), unless it could not be made.
    template <class Work> sl_status run(Work work) {
        return status_ == SL_OK ? work(handle_) : status_;
    }

    // work(predictor, block) of all blocks of rows; progress sees to signals.
    template <class Work> sl_status run_blocks(const sl_rows &rows, Progress &progress, Work work) {
        sl_status status = status_;
        while (status == SL_OK) {
            sl_table table{};
            table.struct_size = sizeof table;
            status = rows.next(rows.ctx, block, &table);
            if (status != SL_OK || table.rows == 0) break;
            status = work(handle_, table);
            if (status == SL_OK && !progress.serve()) status = SL_ECANCELED;
        }
        return status;
    }

  private:
    sl_predictor *handle_;
    sl_status status_ = SL_OK;
};

template <class T> void append(std::vector<T> &to, const T *from, size_t count) {
    if (count) to.insert(to.end(), from, from + count);
}

template <class T> nb::bytearray bytes_of(const std::vector<T> &values) {
    return nb::bytearray(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
}

// The rows of sl_encoded, block after block.
struct Encoded {
    std::vector<float> dense;
    std::vector<uint32_t> ids, bag_start{0}, bag_ids;

    void append_block(const sl_encoded &block, const sl_ranker_info &info) {
        append(dense, block.dense, block.rows * info.dense_width);
        append(ids, block.ids, block.rows * info.id_count);
        size_t bags = block.rows * info.bag_count;
        if (bags == 0) return;
        uint32_t shift = bag_start.back() - block.bag_start[0];
        for (size_t i = 1; i <= bags; i++)
            bag_start.push_back(block.bag_start[i] + shift);
        append(bag_ids, block.bag_ids + block.bag_start[0], block.bag_start[bags] - block.bag_start[0]);
    }
};
