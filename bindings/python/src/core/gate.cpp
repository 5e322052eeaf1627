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
    size_t readers = 0;
    size_t writers_waiting = 0;
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
        raise(SL_EBUSY, "another thread was changing this when the process was forked; open it from its file");
    for (const Visit *visit = outer_; visit; visit = visit->outer_) {
        if (&visit->gate_ != &gate) continue;
        if (access == Access::exclusive || visit->access_ == Access::exclusive)
            raise(SL_EBUSY, "this is in use by the call that runs this callback; use it after that call");
        nested_ = true;
    }
    innermost_ = this;
}

Gate::Visit::~Visit() {
    innermost_ = outer_;
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
    std::unique_lock<std::mutex> lock(state.mutex);
    if (access_ == Access::shared) {
        auto free = [&] { return !state.writing && state.writers_waiting == 0; };
        // Waiting begins by a look at the clock, which one who need not wait is spared.
        if (!free() && !state.changed.wait_for(lock, patience, free)) return false;
        state.readers++;
        return true;
    }
    state.writers_waiting++;
    bool got = state.changed.wait_for(lock, patience, [&] { return !state.writing && state.readers == 0; });
    state.writers_waiting--;
    // Who has waited in vain leaves the one who writes alone.
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
    if (access_ == Access::shared)
        state.readers--;
    else
        state.writing = false;
    state.changed.notify_all();
}
