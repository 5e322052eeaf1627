#include "harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sched.h>

namespace {

// A timed pass asks all queries as often as it takes to last this long, so that a small set does not measure noise.
const double least_seconds = 0.3;

// Beyond this pool a target counts as out of reach.
const size_t most_ef = 16384;

void pin(int cpu) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) throw std::runtime_error("sched_getaffinity failed");
    if (cpu < 0) { // the last one: the first usually takes the interrupts
        for (int i = 0; i < CPU_SETSIZE; i++) {
            if (CPU_ISSET(i, &allowed)) cpu = i;
        }
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        throw std::runtime_error("cannot pin the thread to CPU " + std::to_string(cpu));
}

struct Pass {
    double seconds, cpu; // for all queries once
    double recall;
};

// One open index with the room its passes need.
class Runner {
  public:
    Runner(const Side &side, const Options &options, const Matrix<float> &queries, const Matrix<int32_t> &truth)
        : library_(*side.library), k_(options.k), queries_(queries), truth_(truth), ids_(queries.rows * options.k) {
        index_ = library_.open(side.path.c_str(), queries.columns, options.place);
        if (index_ == nullptr) fail(library_, "open");
    }
    ~Runner() {
        library_.close(index_);
    }
    Runner(const Runner &) = delete;
    Runner &operator=(const Runner &) = delete;

    const char *name() const {
        return library_.name;
    }

    // All queries, one a call, `times` over, timed; latencies gets the microseconds of each call.
    Pass pass(size_t ef, size_t times, std::vector<float> &latencies) {
        if (library_.set_ef(index_, ef) != 0) fail(library_, "set_ef");
        latencies.reserve(latencies.size() + times * queries_.rows);
        const double cpu = thread_cpu_seconds();
        const auto start = Clock::now();
        auto before = start;
        for (size_t call = 0; call < times * queries_.rows; call++) {
            const size_t q = call % queries_.rows;
            if (library_.search_one(index_, queries_.row(q), k_, &ids_[q * k_], nullptr) != 0) fail(library_, "search");
            const auto after = Clock::now();
            latencies.push_back(std::chrono::duration<float, std::micro>(after - before).count());
            before = after;
        }
        const double share = 1.0 / static_cast<double>(times);
        return {std::chrono::duration<double>(before - start).count() * share, (thread_cpu_seconds() - cpu) * share,
                recall()};
    }

    // Distances computed a query, by an untimed pass.
    double evaluations(size_t ef) {
        if (library_.set_ef(index_, ef) != 0) fail(library_, "set_ef");
        size_t total = 0;
        for (size_t q = 0; q < queries_.rows; q++) {
            size_t made = 0;
            if (library_.search_one(index_, queries_.row(q), k_, &ids_[q * k_], &made) != 0) fail(library_, "search");
            total += made;
        }
        return static_cast<double>(total) / static_cast<double>(queries_.rows);
    }

    // The least ef whose recall over all queries is at least the target, by doubling and bisection; 0 if out of reach.
    size_t least_ef(double target) {
        size_t low = k_ - 1, high = k_;
        while (recall_at(high) < target) {
            low = high;
            high *= 2;
            if (high > most_ef) return 0;
        }
        while (high - low > 1) {
            const size_t middle = low + (high - low) / 2;
            (recall_at(middle) < target ? low : high) = middle;
        }
        return high;
    }

  private:
    double recall() const {
        size_t hits = 0;
        for (size_t q = 0; q < queries_.rows; q++) {
            const int32_t *wanted = truth_.row(q);
            for (size_t i = 0; i < k_; i++) {
                const uint64_t id = ids_[q * k_ + i];
                hits += std::any_of(wanted, wanted + k_, [id](int32_t t) { return static_cast<uint32_t>(t) == id; });
            }
        }
        return static_cast<double>(hits) / static_cast<double>(queries_.rows * k_);
    }

    double recall_at(size_t ef) {
        const auto known = recalls_.find(ef);
        if (known != recalls_.end()) return known->second;
        std::vector<float> unused;
        return recalls_[ef] = pass(ef, 1, unused).recall;
    }

    const peer &library_;
    const size_t k_;
    const Matrix<float> &queries_;
    const Matrix<int32_t> &truth_;
    std::vector<uint64_t> ids_;
    std::map<size_t, double> recalls_;
    void *index_ = nullptr;
};

// What is compared with what: the ef of each side, for a recall target or (target 0) as given.
struct Point {
    double target;
    std::vector<size_t> ef;
};

using Runners = std::vector<std::unique_ptr<Runner>>;

std::vector<Point> points_of(const Options &options, Runners &runners) {
    std::vector<Point> points;
    for (size_t ef : options.efs)
        points.push_back({0.0, std::vector<size_t>(runners.size(), ef)});
    for (double target : options.targets) {
        Point point{target, {}};
        for (auto &runner : runners) {
            const size_t ef = runner->least_ef(target);
            if (ef == 0)
                throw std::runtime_error(std::string(runner->name()) + " does not reach recall " +
                                         std::to_string(target) + " with an ef of up to " + std::to_string(most_ef));
            point.ef.push_back(ef);
            std::fprintf(stderr, "recall %.2f   %-10s needs ef %zu\n", target, runner->name(), ef);
        }
        points.push_back(point);
    }
    return points;
}

// The value below which the given share of them lies, by nearest rank.
float percentile(std::vector<float> &values, double share) {
    const size_t rank = std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
    return values[rank];
}

void measure(const Options &options, Runners &runners, const Point &point, size_t queries) {
    std::vector<std::vector<float>> latencies(runners.size());
    std::vector<size_t> times(runners.size());
    for (size_t s = 0; s < runners.size(); s++) { // warm, and at this ef
        times[s] = 1 + static_cast<size_t>(least_seconds / runners[s]->pass(point.ef[s], 1, latencies[s]).seconds);
        latencies[s].clear();
    }
    for (size_t round = 0; round < options.rounds; round++) {
        for (size_t turn = 0; turn < runners.size(); turn++) {
            const size_t s = round % 2 == 0 ? turn : runners.size() - 1 - turn;
            const Pass pass = runners[s]->pass(point.ef[s], times[s], latencies[s]);
            std::printf("{\"event\":\"pass\",\"target\":%g,\"round\":%zu,\"turn\":%zu,\"side\":%zu,\"peer\":\"%s\","
                        "\"ef\":%zu,\"recall\":%.6f,\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"qps\":%.2f}\n",
                        point.target, round, turn, s, runners[s]->name(), point.ef[s], pass.recall, pass.seconds,
                        pass.cpu, static_cast<double>(queries) / pass.seconds);
        }
    }
    for (size_t s = 0; s < runners.size(); s++) {
        std::printf("{\"event\":\"point\",\"target\":%g,\"side\":%zu,\"peer\":\"%s\",\"ef\":%zu,\"p50_us\":%.2f,"
                    "\"p99_us\":%.2f,\"evaluations\":%.1f}\n",
                    point.target, s, runners[s]->name(), point.ef[s], percentile(latencies[s], 0.50),
                    percentile(latencies[s], 0.99), runners[s]->evaluations(point.ef[s]));
    }
    std::fflush(stdout);
}

} // namespace

void stage_search(const Options &options) {
    pin(options.cpu); // before the indexes are in memory, so that they are near
    const Matrix<float> queries = read_fbin(options.queries);
    const Matrix<int32_t> truth = read_ibin(options.truth);
    if (truth.rows != queries.rows || truth.columns < options.k || queries.rows == 0)
        throw std::runtime_error(options.truth + ": not the truth of these queries: rows " +
                                 std::to_string(truth.rows) + ", neighbours " + std::to_string(truth.columns));
    Runners runners;
    for (const Side &side : options.sides)
        runners.push_back(std::make_unique<Runner>(side, options, queries, truth));
    for (const Point &point : points_of(options, runners))
        measure(options, runners, point, queries.rows);
}

void stage_first(const Options &options) {
    const Matrix<float> query = read_fbin(options.queries, 1);
    const Side &side = options.sides.at(0);
    const peer &library = *side.library;
    std::vector<uint64_t> ids(options.k);
    const auto start = Clock::now();
    void *index = library.open(side.path.c_str(), query.columns, options.place);
    if (index == nullptr) fail(library, "open");
    const double opened = seconds_since(start);
    if (library.set_ef(index, options.efs.at(0)) != 0) fail(library, "set_ef");
    if (library.search_one(index, query.row(0), options.k, ids.data(), nullptr) != 0) fail(library, "search");
    const double answered = seconds_since(start);
    std::printf("{\"event\":\"first\",\"peer\":\"%s\",\"open_ms\":%.4f,\"answer_ms\":%.4f}\n", library.name,
                opened * 1e3, answered * 1e3);
    library.close(index);
}
