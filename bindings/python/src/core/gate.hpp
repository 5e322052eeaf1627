// Who may be inside an index's handle: any number of readers, or one writer. The library leaves this to its caller;
// Python programs share objects between threads freely, so here it is kept.
#pragma once

#include "errors.hpp"

#include <condition_variable>
#include <mutex>

enum class Access { shared, exclusive };

class Gate {
  public:
    Gate();
    ~Gate();
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;

    // Runs work(), which must not throw, with the GIL released and the access asked for. Needs the GIL.
    //   - While waiting, signals are served, so that Ctrl-C ends a wait.
    //   - Writers go before new readers, so that unbroken searching does not starve an add.
    //   - A call from within a call on the same index and thread (from a progress callback or a signal handler) gets
    //     through where both only read, and raises SL_EBUSY otherwise, instead of waiting for itself.
    //   - In a process made by fork() the readers and writers of the parent are not there: they are forgotten, and
    //     where one of them was writing, the index is half written and every call raises SL_EBUSY.
    template <class Work> void run(Access access, Work work) {
        Visit visit(*this, access);
        for (;;) {
            {
                nb::gil_scoped_release released;
                if (visit.enter()) {
                    work();
                    visit.leave();
                    return;
                }
            }
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        }
    }

  private:
    struct State;

    // One call's stay; known to its thread from beginning to end.
    class Visit {
      public:
        Visit(Gate &gate, Access access);
        ~Visit();
        Visit(const Visit &) = delete;
        Visit &operator=(const Visit &) = delete;
        // False where access was not granted within a short while.
        bool enter();
        void leave();

      private:
        Gate &gate_;
        Access access_;
        State *state_ = nullptr; // entered; a fork within the visit must not let it leave another
        bool nested_ = false;
        Visit *outer_;
        static thread_local Visit *innermost_;
    };

    void forget_parent();

    State *state_;
    unsigned forks_; // of this process's line when state_ was made
    bool abandoned_ = false;
};

// To be called once when the module is loaded, so that forks are seen.
void watch_forks();

// The number of threads to hand to a batch call that was asked for `asked`. GNU's OpenMP does not live on in a child
// process once its threads ran in the parent: a parallel region there waits for them for ever. Such a child gets 1.
size_t batch_threads(size_t asked);
