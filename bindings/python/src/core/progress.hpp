// The library's progress callback, led to Python: signals are served and a Python function is told.
#pragma once

#include "errors.hpp"

#include <optional>

class Progress {
  public:
    // function is a callable (done, total), whose True cancels, or None to serve signals only.
    explicit Progress(nb::handle function) : function_(function) {}

    // For a parameter struct of the library.
    template <class Params> void attach(Params &params) {
        params.progress = tell;
        params.progress_ctx = this;
    }

    // Raises what the function or a signal's handler raised, else what outcome stands for. Needs the GIL.
    void check(const Outcome &outcome) {
        if (error_) throw std::move(*error_);
        ::check(outcome);
    }

  private:
    static int tell(void *self, uint64_t done, uint64_t total) {
        return static_cast<Progress *>(self)->told(done, total);
    }

    // Runs on the thread that made the call, which had released the GIL.
    int told(uint64_t done, uint64_t total) {
        nb::gil_scoped_acquire acquired;
        if (error_) return 1;
        try {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            return !function_.is_none() && function_(done, total).is(nb::handle(Py_True));
        } catch (nb::python_error &error) {
            error_.emplace(std::move(error));
            return 1;
        }
    }

    nb::handle function_;
    std::optional<nb::python_error> error_;
};
