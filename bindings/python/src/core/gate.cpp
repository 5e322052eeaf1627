#include "gate.hpp"

#include <atomic>
#include <chrono>

#include <pthread.h>

namespace {

std::atomic<unsigned> forks{0};
std::atomic<bool> teams_started{false};
std::atomic<bool> teams_lost{false};

void in_child() {
    forks++;
    if (teams_started) teams_lost = true;
}

constexpr std::chrono::milliseconds patience{100};

} // namespace

void watch_forks() {
    pthread_atfork(nullptr, nullptr, in_child);
}

size_t batch_threads(size_t asked) {
    if (teams_lost) return 1;
    if (asked != 1) teams_started = true;
    return asked;
}

struct Gate::State {
    std::mutex mutex;
    std::condition_variable changed;
    // Readers are calls that aren't exclusive, and writers those that are.
    size_t readers = 0;
    size_t changing = 0; // readers that change the index
    size_t readers_waiting = 0;
    size_t readers_due = 0; // of those waiting, that have waited through a turn: they go before the next writer
    size_t writers_waiting = 0;
    unsigned long long turns = 0; // of writers, that are over
    bool writing = false;
};

Gate::Gate() : state_(new State), forks_(forks) {}

Gate::~Gate() {
    // A mutex that another thread of the parent held must not be destroyed in the child.
    if (forks_ == forks) delete state_;
}

void Gate::forget_parent() {
    if (forks_ == forks) return;
    if (state_->writing) abandoned_ = true;
    state_ = new State;
    forks_ = forks;
}

thread_local Gate::Visit *Gate::Visit::innermost_ = nullptr;

Gate::Visit::Visit(Gate &gate, Access access, Visit *after)
    : gate_(gate), access_(access), after_(after), outer_(innermost_) {
    gate.forget_parent();
    if (gate.abandoned_)
        raise(SL_EBUSY,
              "another thread was changing or closing this when the process was forked; open it from its file");
    for (const Visit *visit = outer_; visit; visit = visit->outer_) {
        if (&visit->gate_ != &gate) continue;
        if (access == Access::exclusive || visit->access_ == Access::exclusive ||
            (access == Access::changing && visit->access_ == Access::changing))
            raise(SL_EBUSY, "this is in use by the call that runs this callback; use it after that call");
        nested_ = true;
    }
    innermost_ = this;
}

Gate::Visit::~Visit() {
    innermost_ = outer_;
    if (!waits_in_ || waits_in_ != gate_.state_ || gate_.forks_ != forks) return;
    std::lock_guard<std::mutex> lock(waits_in_->mutex);
    waits_in_->changed.notify_all();
    end_waiting(*waits_in_);
}

void Gate::Visit::begin_waiting(State &state) {
    if (waits_in_ == &state) return;
    waits_in_ = &state;
    since_ = state.turns;
    state.readers_waiting++;
}

void Gate::Visit::end_waiting(State &state) {
    if (waits_in_ != &state) return;
    waits_in_ = nullptr;
    state.readers_waiting--;
    if (state.turns > since_) state.readers_due--;
}

bool Gate::Visit::enter() {
    if (after_ && !after_->enter()) return false;
    if (enter_this()) return true;
    if (after_) after_->leave();
    return false;
}

void Gate::Visit::leave() {
    leave_this();
    if (after_) after_->leave();
}

bool Gate::Visit::enter_this() {
    if (nested_) return true;
    state_ = gate_.state_;
    State &state = *state_;
    return access_ == Access::exclusive ? enter_exclusive(state) : enter_beside(state);
}

bool Gate::Visit::enter_beside(State &state) {
    std::unique_lock<std::mutex> lock(state.mutex);
    const bool changes = access_ == Access::changing;
    auto free = [&] {
        if (changes && state.changing > 0 && is_ending()) return false;
        return !state.writing && (state.writers_waiting == 0 || state.turns > since_);
    };
    // A reader that need not wait is spared a look at the clock. since_ is only set by a reader that waits.
    if (waits_in_ != &state) since_ = state.turns;
    if (!free()) {
        begin_waiting(state);
        if (!state.changed.wait_for(lock, patience, free)) return false;
    }
    end_waiting(state);
    state.readers++;
    state.changing += changes;
    return true;
}

bool Gate::Visit::enter_exclusive(State &state) {
    std::unique_lock<std::mutex> lock(state.mutex);
    auto open = [&] { return !state.writing && state.readers == 0; };
    state.writers_waiting++;
    bool got = state.changed.wait_for(lock, patience, [&] { return open() && state.readers_due == 0; });
    state.writers_waiting--;
    // A due reader may be in a signal handler that waits for this very writer: the writer waits for it once.
    got = got || open();
    // A caller that has waited in vain leaves the writer alone.
    if (got)
        state.writing = true;
    else
        state.changed.notify_all();
    return got;
}

void Gate::Visit::leave_this() {
    if (nested_) return;
    State &state = *state_;
    std::lock_guard<std::mutex> lock(state.mutex);
    if (access_ == Access::exclusive) {
        state.writing = false;
        state.turns++;
        state.readers_due = state.readers_waiting;
    } else {
        state.readers--;
        state.changing -= access_ == Access::changing;
    }
    state.changed.notify_all();
}
