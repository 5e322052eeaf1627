// Searches on one core while a writer adds and deletes on another; adds by several threads.
//   native_beside_LIBRARY BASE QUERIES METRIC M LIVE SEARCH_CPU WRITE_CPU
// Orders come by lines, and each is answered by a line of JSON:
//   build                     adds the first LIVE rows to a new index
//   ids EF COUNT              the ids that the first COUNT queries find
//   idle EF SECONDS           time of single queries
//   beside EF SECONDS         the same while the writer deletes the oldest vector and adds a new one, without pause
//   apart EF SECONDS          the same while the writer changes another index of the same vectors
//   adds THREADS COUNT many   seconds in which COUNT further rows are added by the library's call for many rows
//   adds THREADS COUNT one    the same by as many threads of ours, one row a call
#include "beside.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <pthread.h>
#include <sched.h>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Matrix {
    uint32_t rows = 0, dim = 0;
    std::vector<float> values;

    explicit Matrix(const std::string &path) {
        std::ifstream file(path, std::ios::binary);
        file.read(reinterpret_cast<char *>(&rows), sizeof rows);
        file.read(reinterpret_cast<char *>(&dim), sizeof dim);
        values.resize(size_t{rows} * dim);
        file.read(reinterpret_cast<char *>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
        if (!file) throw std::runtime_error(path + " is no whole matrix of floats");
    }

    const float *row(size_t number) const {
        return &values[number % rows * dim];
    }
};

void pin(int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<size_t>(cpu), &cpus);
    if (pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus) != 0)
        throw std::runtime_error("a thread could not be pinned to CPU " + std::to_string(cpu));
}

// Lets the calling thread run where the process may.
void unpin(const cpu_set_t &everywhere) {
    pthread_setaffinity_np(pthread_self(), sizeof everywhere, &everywhere);
}

std::string quantiles(std::vector<int64_t> &ns) {
    std::sort(ns.begin(), ns.end());
    const auto at = [&](double share) {
        return static_cast<double>(ns[static_cast<size_t>(share * static_cast<double>(ns.size() - 1))]) / 1000;
    };
    std::ostringstream out;
    out << "\"searches\": " << ns.size() << ", \"p50_us\": " << at(0.5) << ", \"p99_us\": " << at(0.99)
        << ", \"p999_us\": " << at(0.999) << ", \"max_us\": " << at(1);
    return out.str();
}

class Bench {
  public:
    Bench(Shape shape, const std::string &base, const std::string &queries, size_t live, int search_cpu, int write_cpu)
        : base_(base), queries_(queries), shape_(std::move(shape)), live_(live), search_cpu_(search_cpu),
          write_cpu_(write_cpu) {
        shape_.dim = base_.dim;
        shape_.room = 2 * live + 1;
        if (live == 0 || live > base_.rows) throw std::runtime_error("LIVE is 0, or more than the rows");
        if (queries_.dim != base_.dim) throw std::runtime_error("base and queries differ in dimension");
        sched_getaffinity(0, sizeof everywhere_, &everywhere_);
    }

    std::string answer(const std::string &line) {
        std::istringstream words(line);
        std::string order;
        words >> order;
        if (order == "build") return build();
        if (!index_) throw std::runtime_error("build comes first");
        if (order == "ids") {
            const size_t ef = number(words), count = number(words);
            return ids(ef, count);
        }
        if (order == "idle" || order == "beside" || order == "apart") {
            const size_t ef = number(words);
            double seconds = 0;
            words >> seconds;
            if (order == "idle") return idle(ef, seconds);
            return beside(ef, seconds, order == "beside" ? changing_ : apart());
        }
        if (order == "adds") {
            const size_t threads = number(words), count = number(words);
            std::string how;
            words >> how;
            return adds(threads, count, how == "many");
        }
        throw std::runtime_error("no order " + order);
    }

  private:
    static size_t number(std::istringstream &words) {
        size_t value = 0;
        if (!(words >> value)) throw std::runtime_error("a number is missing");
        return value;
    }

    std::string build() {
        const auto begin = Clock::now();
        index_ = filled();
        changing_ = {index_.get(), 0, live_};
        return "{\"s\": " + std::to_string(seconds_since(begin)) + "}";
    }

    // A new index of the first rows.
    std::unique_ptr<Living> filled() {
        unpin(everywhere_);
        auto index = open_living(shape_);
        if (!index->add_many(0, base_.row(0), live_, WRITERS)) each(*index, 0, live_, WRITERS);
        return index;
    }

    // An index that a writer changes, and its rows.
    struct Changing {
        Living *index;
        size_t oldest, next;
    };

    // Another index than the one that is searched.
    Changing &apart() {
        if (!apart_) {
            apart_ = filled();
            changing_apart_ = {apart_.get(), 0, live_};
        }
        return changing_apart_;
    }

    // Adds rows by threads that each take the next one.
    void each(Living &index, size_t begin, size_t count, size_t threads) {
        std::atomic<size_t> next{begin};
        std::vector<std::thread> adding;
        std::exception_ptr problem;
        for (size_t t = 0; t < threads; t++)
            adding.emplace_back([&, t] {
                try {
                    for (size_t i = next++; i < begin + count; i = next++)
                        index.add(i, base_.row(i), 1 + t);
                } catch (...) {
                    problem = std::current_exception();
                }
            });
        for (auto &thread : adding)
            thread.join();
        if (problem) std::rethrow_exception(problem);
    }

    std::string ids(size_t ef, size_t count) {
        index_->set(ef);
        std::ostringstream out;
        out << "{\"ids\": [";
        uint64_t found[K];
        for (size_t q = 0; q < count; q++) {
            const size_t n = index_->search(queries_.row(q), found);
            out << (q ? ", [" : "[");
            for (size_t i = 0; i < n; i++)
                out << (i ? ", " : "") << found[i];
            out << "]";
        }
        out << "]}";
        return out.str();
    }

    std::vector<int64_t> searched(double seconds) {
        std::vector<int64_t> took;
        took.reserve(1u << 20);
        uint64_t found[K];
        const auto begin = Clock::now();
        while (seconds_since(begin) < seconds) {
            const float *query = queries_.row(asked_++);
            const auto before = Clock::now();
            index_->search(query, found);
            took.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - before).count());
        }
        return took;
    }

    std::string idle(size_t ef, double seconds) {
        pin(search_cpu_);
        index_->set(ef);
        auto took = searched(seconds);
        return "{" + quantiles(took) + "}";
    }

    std::string beside(size_t ef, double seconds, Changing &to) {
        pin(search_cpu_);
        index_->set(ef);
        std::atomic<bool> stop{false}, started{false};
        size_t changed = 0;
        double wrote = 0;
        std::exception_ptr problem;
        std::thread writer([&] {
            try {
                pin(write_cpu_);
                const auto begin = Clock::now();
                while (!stop.load(std::memory_order_relaxed)) {
                    to.index->remove(to.oldest++, 1);
                    to.index->add(to.next, base_.row(to.next), 1);
                    to.next++, changed++;
                    started.store(true);
                }
                wrote = seconds_since(begin);
            } catch (...) {
                problem = std::current_exception();
                started.store(true);
            }
        });
        while (!started.load())
            std::this_thread::yield();
        auto took = searched(seconds);
        stop.store(true);
        writer.join();
        if (problem) std::rethrow_exception(problem);
        return "{" + quantiles(took) + ", \"changed\": " + std::to_string(changed) +
               ", \"wrote_s\": " + std::to_string(wrote) + "}";
    }

    std::string adds(size_t threads, size_t count, bool many) {
        if (threads == 0 || threads > WRITERS) throw std::runtime_error("one thread or two");
        size_t &next = changing_.next;
        if (next + count > base_.rows) throw std::runtime_error("too few rows; build first");
        unpin(everywhere_);
        const auto begin = Clock::now();
        if (!many)
            each(*index_, next, count, threads);
        else if (!index_->add_many(next, base_.row(next), count, threads))
            return "{\"s\": null}";
        const double took = seconds_since(begin);
        next += count;
        return "{\"s\": " + std::to_string(took) + "}";
    }

    Matrix base_, queries_;
    Shape shape_;
    size_t live_;
    int search_cpu_, write_cpu_;
    cpu_set_t everywhere_{};
    size_t asked_ = 0;
    std::unique_ptr<Living> index_, apart_;
    Changing changing_{}, changing_apart_{};
};

} // namespace

bool Living::add_many(uint64_t, const float *, size_t, size_t) {
    return false;
}

int main(int argc, char **argv) {
    if (argc != 8) {
        std::cerr << "usage: " << argv[0] << " BASE QUERIES METRIC M LIVE SEARCH_CPU WRITE_CPU\n";
        return 2;
    }
    try {
        Bench bench({argv[3], 0, std::stoul(argv[4]), 0}, argv[1], argv[2], std::stoul(argv[5]), std::stoi(argv[6]),
                    std::stoi(argv[7]));
        std::cout << "{}" << std::endl;
        for (std::string line; std::getline(std::cin, line);)
            std::cout << bench.answer(line) << std::endl;
    } catch (const std::exception &problem) {
        std::cerr << argv[0] << ": " << problem.what() << "\n";
        return 1;
    }
    return 0;
}
