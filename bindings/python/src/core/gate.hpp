// A gate lets any number of calls into a handle of the library, or one call alone. The library lets calls of an index
// run at the same time, but for freeing it. Python programs share objects between threads freely, so the gate keeps
// such rules here.
#pragma once

#include "errors.hpp"

#include <condition_variable>
#include <initializer_list>
#include <iterator>
#include <mutex>

// shared: beside all calls but exclusive ones. changing: the same, for a call that the library makes wait for other
// changes. exclusive: alone.
enum class Access { shared, changing, exclusive };

class Gate {
  public:
    Gate();
    ~Gate();
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;

    // Runs work(), which must not throw, with the GIL released and the access asked for. Needs the GIL.
    //   - While waiting, signals are served, so that Ctrl-C ends a wait.
    //   - They take turns. Exclusive calls go before new others, so that unbroken searching does not starve a close.
    //     Others that waited through an exclusive call go before the next one, so that they wait for one turn.
    //   - A call from within a call on the same handle and thread (from a progress callback or a signal handler) raises
    //     SL_EBUSY if it would wait for itself: if one of the two is exclusive, or both change the index.
    //   - At the end of the program, a change raises SL_EBUSY if a thread stays within a change. That thread would keep
    //     it waiting in the library for ever.
    //   - A process made by fork() forgets the calls of the parent. If one of them was exclusive, the handle is half
    //     changed, and every call raises SL_EBUSY.
    template <class Work> void run(Access access, Work work) {
        run_in({{*this, access}}, work);
    }

    struct Pass {
        Gate &gate;
        Access access;
    };
    // The same through one or more gates, passed in order. work() runs once all of them are passed. While one is
    // closed, those before it are given up again after a short while.
    template <class Passes, class Work> static void run_in(const Passes &passes, Work work) {
        visit_next(std::data(passes), std::data(passes) + std::size(passes), nullptr, work);
    }
    template <class Work> static void run_in(std::initializer_list<Pass> passes, Work work) {
        visit_next(passes.begin(), passes.end(), nullptr, work);
    }

  private:
    struct State;

    // One call's stay; known to its thread from beginning to end.
    class Visit {
      public:
        // after: the visit to another gate that is entered before this one and left after it; NULL: none.
        Visit(Gate &gate, Access access, Visit *after);
        ~Visit();
        Visit(const Visit &) = delete;
        Visit &operator=(const Visit &) = delete;
        // False: access was not granted within a short while.
        bool enter();
        void leave();

      private:
        bool enter_this();
        bool enter_beside(State &state);
        bool enter_exclusive(State &state);
        void leave_this();
        // From a reader's first vain attempt until it enters or gives up.
        void begin_waiting(State &state);
        void end_waiting(State &state);

        Gate &gate_;
        Access access_;
        Visit *after_;
        State *state_ = nullptr;       // entered; a fork within the visit must not let it leave another
        State *waits_in_ = nullptr;    // of a reader that waits there, also while it serves signals
        unsigned long long since_ = 0; // turns of writers that were over when it began to wait
        bool nested_ = false;
        Visit *outer_;
        static thread_local Visit *innermost_;
    };

    template <class Work> static void visit_next(const Pass *pass, const Pass *end, Visit *after, Work &work) {
        if (pass == end) return work_within(*after, work);
        Visit visit(pass->gate, pass->access, after);
        visit_next(pass + 1, end, &visit, work);
    }

    template <class Work> static void work_within(Visit &visit, Work &work) {
        for (int tries = 0;; tries++) {
            {
                Released released;
                if (visit.enter()) {
                    work();
                    visit.leave();
                    return;
                }
            }
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            if (is_ending() && tries >= patient_tries)
                raise(SL_EBUSY, "this is in use by a thread that ended with the program");
        }
    }

    // At the end of the program; a thread that stays within the gate would be waited for in vain.
    static constexpr int patient_tries = 20;

    void forget_parent();

    State *state_;
    unsigned forks_; // of this process's line when state_ was made
    bool abandoned_ = false;
};

// To be called once when the module is loaded: forks are seen from then on.
void watch_forks();

// The number of threads for a batch call that was asked for `asked`. GNU's OpenMP does not work in a child process once
// its threads ran in the parent: a parallel region there waits for them for ever. Such a child gets 1.
size_t batch_threads(size_t asked);
