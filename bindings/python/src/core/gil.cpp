#include "gil.hpp"

#include <chrono>

#include <pthread.h>
#include <unistd.h>

namespace {

std::atomic<long> in_library{0};
unsigned long first_thread; // Python's main thread when the module was loaded, by its own number

constexpr std::chrono::milliseconds step{1};
constexpr int most_steps = 10000;

void in_child() {
    in_library = 0;
}

// Runs when Python code can run no more, before destructors of static objects.
void wait_for_calls() {
    for (int i = 0; i < most_steps && in_library > 0; i++)
        std::this_thread::sleep_for(step);
}

} // namespace

void watch_the_end() {
    // A daemon thread that the end of the program stops keeps its objects, which nanobind would tell on stderr. The
    // module has a domain of its own: other modules keep their warnings.
    nb::set_leak_warnings(false);
    pthread_atfork(nullptr, nullptr, in_child);
    nb::object ident = nb::module_::import_("threading").attr("main_thread")().attr("ident");
    first_thread = nb::cast<unsigned long>(ident);
    // Python has room for 32 functions. Without room the program ends without the wait.
    (void)Py_AtExit(wait_for_calls);
}

bool is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

bool may_serve_signals() {
    // The second is of a thread that forked: it is its process's only one.
    return PyThread_get_thread_ident() == first_thread || gettid() == getpid();
}

void stay() {
    for (;;)
        pause();
}

void enter_library() {
    in_library++;
}

// In a child, calls of the thread that forked may end that were not counted there.
void leave_library() {
    long seen = in_library;
    while (seen > 0 && !in_library.compare_exchange_weak(seen, seen - 1))
        ;
}

Released::~Released() {
    leave_library();
    if (is_ending() && !last_) stay();
    or_stay([&] { PyEval_RestoreThread(state_); });
}
