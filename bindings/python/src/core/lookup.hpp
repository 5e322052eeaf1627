// The library's lookup of vectors by id, led to a Python function.
#pragma once

#include "buffer.hpp"
#include "progress.hpp"

#include <cstring>

class Lookup {
  public:
    // function: (feature, id) -> a contiguous float32 array of the feature's dim, or None. progress keeps what it
    // raises, and must outlive this.
    Lookup(nb::handle function, Progress &progress) : function_(function), progress_(progress) {}

    // For a parameter struct of the library.
    template <class Params> void attach(Params &params) {
        if (function_.is_none()) return;
        params.lookup = find;
        params.lookup_ctx = this;
    }

  private:
    // May run on several threads at once: they take turns by the GIL.
    static sl_status find(void *self, const char *feature, uint64_t id, float *out, size_t dim) {
        auto *lookup = static_cast<Lookup *>(self);
        bool found = lookup->progress_.guarded([&] {
            nb::str name(feature);
            nb::object vector = or_stay([&] { return lookup->function_(name, id); });
            Flat<const float> values(vector, dim);
            std::memcpy(out, values.data(), dim * sizeof(float));
        });
        return found ? SL_OK : SL_ECANCELED;
    }

    nb::handle function_;
    Progress &progress_;
};
