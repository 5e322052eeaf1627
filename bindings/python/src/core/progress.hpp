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

    // Runs work() with the GIL. An exception is kept: it cancels the call, and is raised after it. False: there is one,
    // or the program is ending.
    template <class Work> bool guarded(Work work) {
        bool ran = false;
        callbacks_.run([&] { ran = !error_ && kept(work); });
        return ran;
    }

    // Serves signals; false: the call must end. For loops of this module's own. On threads without signals it needs no
    // GIL, so that the program's end finds them at work and not on the way to a callback.
    bool serve() {
        if (!signals_) return !failed_ && !callbacks_.is_over();
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
    // False: work() raised an exception.
    template <class Work> bool kept(Work work) {
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
        failed_ = true;
        return false;
    }

    static int tell(void *self, uint64_t done, uint64_t total) {
        return static_cast<Progress *>(self)->told(done, total);
    }

    // Runs on the thread that made the call, which had released the GIL.
    int told(uint64_t done, uint64_t total) {
        bool stop = false;
        if (!serve()) return 1;
        if (function_.is_none()) return 0;
        bool ran = guarded([&] { stop = or_stay([&] { return function_(done, total); }).is(nb::handle(Py_True)); });
        return !ran || stop;
    }

    nb::handle function_;
    Callbacks callbacks_;
    bool signals_ = may_serve_signals();
    std::optional<nb::python_error> error_; // the GIL guards it
    std::atomic<bool> failed_{false};       // there is one, for who has no GIL
};
