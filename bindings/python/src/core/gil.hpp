// The GIL: given up for the library's calls, taken for callbacks, on threads that may still be there when the program
// ends. Python ends a daemon thread where it asks for the GIL. Up to 3.13 it does so by pthread_exit, which unwinds the
// stack as an exception does, and functions that are noexcept then abort the process. From 3.14 on the thread never
// returns. Here such a thread stays where it is in every version, and the process ends around it.
#pragma once

#include <nanobind/nanobind.h>

#include <cxxabi.h>

#include <atomic>
#include <thread>

namespace nb = nanobind;

// To be called once when the module is loaded. The end of the program then waits for calls that other threads have in
// the library, up to 10 seconds. These calls end at their next progress. Thus no call uses what the destructors of
// static objects take away, oneDNN's among them.
void watch_the_end();

// Tells whether the interpreter is being finalised, or is gone.
bool is_ending();

// Tells whether this thread may be the one that Python runs signals' handlers on.
bool may_serve_signals();

// Never returns.
[[noreturn]] void stay();

// Runs work(), which may run Python code and so end the thread. A thread that is ended stays.
template <class Work> auto or_stay(Work work) {
    try {
        return work();
    } catch (abi::__forced_unwind &) {
        stay();
    }
}

// Counts the threads that are in the library.
void enter_library();
void leave_library();

// Gives up the GIL for a call of the library, and takes it again.
class Released {
  public:
    Released() : last_(is_ending()), state_(PyEval_SaveThread()) {
        enter_library();
    }
    ~Released();
    Released(const Released &) = delete;
    Released &operator=(const Released &) = delete;

  private:
    bool last_; // this thread itself ends the interpreter
    PyThreadState *state_;
};

// Takes the GIL for a callback of one call. Several threads of the call may be in callbacks.
class Callbacks {
  public:
    // Needs the GIL.
    Callbacks() : last_(is_ending()), caller_(std::this_thread::get_id()) {}

    // Runs work() with the GIL. False: the interpreter is ending, and work() was not run.
    template <class Work> bool run(Work work) {
        if (is_over()) return false;
        if (within_++ == 0) leave_library();
        or_stay([&] {
            PyGILState_STATE state = PyGILState_Ensure();
            work();
            PyGILState_Release(state);
        });
        if (--within_ == 0) enter_library();
        return true;
    }

    // Tells whether the interpreter is ending, by another thread than this one.
    bool is_over() const {
        return is_ending() && !(last_ && caller_ == std::this_thread::get_id());
    }

  private:
    bool last_;
    std::thread::id caller_;
    std::atomic<int> within_{0};
};
