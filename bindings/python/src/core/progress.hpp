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

    // Runs work() with the GIL. An exception is kept: it cancels the call, and is raised after it. False: there is one.
    template <class Work> bool guarded(Work work) {
        nb::gil_scoped_acquire acquired;
        if (error_) return false;
        try {
            work();
            return true;
        } catch (nb::python_error &error) {
            error_.emplace(std::move(error));
        } catch (std::exception &error) {
            // Raised and taken again, so that one kind of error is kept.
            PyErr_SetString(PyExc_ValueError, error.what());
            error_.emplace(nb::python_error());
        }
        return false;
    }

    // Serves signals; false: the call must end. For loops of this module's own.
    bool serve() {
        return guarded([] {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        });
    }

    // Raises the exception of the function or of a signal's handler, else the outcome's. Needs the GIL.
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
        bool stop = false;
        bool ran =
            serve() && guarded([&] { stop = !function_.is_none() && function_(done, total).is(nb::handle(Py_True)); });
        return !ran || stop;
    }

    nb::handle function_;
    std::optional<nb::python_error> error_;
};
