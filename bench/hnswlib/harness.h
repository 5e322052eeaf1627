// What the stages of the comparison share. Every stage prints its measurements as one JSON object a line on stdout,
// and what it is doing on stderr; run.py starts the stages and makes the report.
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include "peer.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <time.h>
#include <vector>

// A matrix in a .fbin or .ibin file: rows, columns, and the values row by row.
template <typename T> struct Matrix {
    size_t rows = 0, columns = 0;
    std::vector<T> values;
    const T *row(size_t i) const {
        return values.data() + i * columns;
    }
};

// The first `limit` rows of the file; throws std::runtime_error where it is not such a file.
Matrix<float> read_fbin(const std::string &path, size_t limit = SIZE_MAX);
Matrix<int32_t> read_ibin(const std::string &path, size_t limit = SIZE_MAX);

// An index a stage opens: "PEER=FILE" on the command line.
struct Side {
    const peer *library;
    std::string path;
};

struct Options {
    std::string base, queries, truth, out;
    std::vector<const peer *> peers;
    std::vector<Side> sides;
    peer_params params{0, 16, 200, 1, 1, "i8", "bf16"};
    size_t k = 10;
    size_t rounds = 3;
    std::vector<double> targets;
    std::vector<size_t> efs;
    int cpu = -1;
    peer_place place = PEER_DRAM;
};

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Time spent computing tells more than the clock where other programs share the CPUs.
inline double clock_seconds(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline double thread_cpu_seconds() {
    return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

inline double process_cpu_seconds() {
    return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

// Throws what the peer says went wrong.
[[noreturn]] inline void fail(const peer &library, const char *what) {
    throw std::runtime_error(std::string(library.name) + ": " + what + ": " + library.error());
}

// Builds with every peer in turn, `rounds` times over, the order reversed every other round; saves the last ones.
void stage_build(const Options &options);

// Finds the ef of each recall target on each side, or takes the given efs, then times passes over all queries, side by
// side, the order reversed every other round. One pinned thread, one query a call.
void stage_search(const Options &options);

// Times opening one index and the first query after it; to be run in a fresh process each time.
void stage_first(const Options &options);

#endif
