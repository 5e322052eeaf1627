// A filter of ids, in Python's arrays.
#pragma once

#include "buffer.hpp"

#include <algorithm>
#include <optional>

class Filter {
  public:
    // arrays: "bits", packed words (uint64) over the ids below "bits_count", or None; "allowed", rising ids (uint64),
    // "allowed_count" of them, or None.
    explicit Filter(const nb::dict &arrays)
        : bits_count_(nb::cast<size_t>(arrays["bits_count"])),
          allowed_count_(nb::cast<size_t>(arrays["allowed_count"])) {
        nb::object bits = arrays["bits"], allowed = arrays["allowed"];
        if (!bits.is_none()) bits_.emplace(bits, bits_count_ / 64 + (bits_count_ % 64 != 0));
        if (!allowed.is_none()) allowed_.emplace(allowed, allowed_count_);
    }

    // For a struct of the library that has the fields of a filter.
    template <class Params> void attach(Params &params) {
        if (bits_) {
            // A filter without a word accepts nothing.
            static const uint64_t none = 0;
            params.accept_bits = bits_count_ ? bits_->data() : &none;
            params.accept_bits_count = bits_count_;
        }
        if (allowed_) {
            params.accept = accept;
            params.accept_ctx = this;
        }
    }

  private:
    // Runs without the GIL, on several threads.
    static int accept(void *self, uint64_t id) {
        auto *filter = static_cast<const Filter *>(self);
        const uint64_t *first = filter->allowed_->data();
        return std::binary_search(first, first + filter->allowed_count_, id);
    }

    size_t bits_count_, allowed_count_;
    std::optional<Flat<const uint64_t>> bits_, allowed_;
};
