#include "harness.h"

#include <cstdio>

namespace {

// On the clock, and of all threads' own time together.
struct Cost {
    double seconds, cpu;
};

Cost build_once(const Options &options, const peer &library, const Matrix<float> &base, bool keep) {
    const double cpu = process_cpu_seconds();
    const auto start = Clock::now();
    void *index = library.build(&options.params, base.values.data(), base.rows);
    const Cost cost{seconds_since(start), process_cpu_seconds() - cpu};
    if (index == nullptr) fail(library, "build");
    const std::string path = options.out + "/" + library.name + "-" + options.params.refine + ".index";
    const bool saved = !keep || library.save(index, path.c_str()) == 0;
    library.close(index);
    if (!saved) fail(library, "save");
    return cost;
}

} // namespace

void stage_build(const Options &options) {
    const Matrix<float> base = read_fbin(options.base);
    Options sized = options;
    sized.params.dim = base.columns;
    const size_t count = options.peers.size();
    for (size_t round = 0; round < options.rounds; round++) {
        for (size_t turn = 0; turn < count; turn++) {
            const size_t side = round % 2 == 0 ? turn : count - 1 - turn;
            const peer &library = *options.peers[side];
            const Cost cost = build_once(sized, library, base, round + 1 == options.rounds);
            std::printf("{\"event\":\"build\",\"round\":%zu,\"turn\":%zu,\"side\":%zu,\"peer\":\"%s\",\"n\":%zu,"
                        "\"dim\":%zu,\"threads\":%zu,\"refine\":\"%s\",\"seconds\":%.6f,\"cpu_seconds\":%.6f}\n",
                        round, turn, side, library.name, base.rows, base.columns, options.params.threads,
                        options.params.refine, cost.seconds, cost.cpu);
            std::fflush(stdout);
            std::fprintf(stderr, "build %zu/%zu  %-10s refine %-5s %8.2f s\n", round + 1, options.rounds, library.name,
                         options.params.refine, cost.seconds);
        }
    }
}
