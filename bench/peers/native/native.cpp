// One library's speed without Python: native_NAME INDEX QUERIES METRIC CPU K [KIND]
// Each line of the input is answered by one JSON object a line, as bench/peers/worker.py answers.
//   SECONDS IDS SETTING...   whole passes over the queries, one query a call, for at least SECONDS; with IDS 1 also
//   what
//                            was found
//   cell QUERIES BITS MOST   from here on these queries, and ids whose bits are set in the words of a file ("-": all);
//   a
//                            pass ends behind the first query that ends after MOST seconds
#include "native.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <sched.h>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double processor_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void pin(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(cpu), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) throw std::runtime_error("cannot be pinned to that CPU");
}

struct Queries {
    size_t count = 0, dim = 0, row_bytes = 0;
    std::string element;
    std::vector<char> bytes;
    const void *row(size_t i) const {
        return bytes.data() + i * row_bytes;
    }
};

std::string element_of(const std::string &path) {
    const std::string suffix = path.substr(path.rfind('.') + 1);
    if (suffix == "fbin") return "f32";
    if (suffix == "u8bin") return "u8";
    if (suffix == "i8bin") return "i8";
    throw std::runtime_error(path + ": neither .fbin nor .u8bin nor .i8bin");
}

Queries read(const std::string &path) {
    Queries queries;
    queries.element = element_of(path);
    std::ifstream file(path, std::ios::binary);
    uint32_t shape[2];
    if (!file.read(reinterpret_cast<char *>(shape), sizeof shape)) throw std::runtime_error(path + ": cannot be read");
    queries.count = shape[0];
    queries.dim = shape[1];
    queries.row_bytes = queries.dim * (queries.element == "f32" ? sizeof(float) : 1);
    queries.bytes.resize(queries.count * queries.row_bytes);
    if (queries.count == 0 || !file.read(queries.bytes.data(), static_cast<std::streamsize>(queries.bytes.size())))
        throw std::runtime_error(path + ": shorter than its header says");
    return queries;
}

// The words of the file. "-": none.
std::vector<uint64_t> read_bits(const std::string &path) {
    std::vector<uint64_t> words;
    if (path == "-") return words;
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    words.resize(static_cast<size_t>(file.tellg()) / sizeof(uint64_t));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(words.data()), static_cast<std::streamsize>(words.size() * sizeof(uint64_t)));
    return words;
}

struct Found {
    size_t k;
    std::vector<uint64_t> ids; // k a query
    std::vector<size_t> counts;
};

// The question, and for how long it is asked.
struct Cell {
    Queries queries;
    double most = std::numeric_limits<double>::infinity(); // seconds of a pass
    bool limited() const {
        return most < std::numeric_limits<double>::infinity();
    }
};

// Returns how many queries were asked.
size_t pass(Peer &peer, const Cell &cell, Found &found) {
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < cell.queries.count; i++) {
        found.counts[i] = peer.search(cell.queries.row(i), found.ids.data() + i * found.k);
        if (cell.limited() && since(start) > cell.most) return i + 1;
    }
    return cell.queries.count;
}

void print_ids(const Found &found, size_t asked) {
    std::cout << ", \"ids\": [";
    for (size_t i = 0; i < asked; i++) {
        std::cout << (i ? ", [" : "[");
        for (size_t j = 0; j < found.counts[i]; j++)
            std::cout << (j ? ", " : "") << found.ids[i * found.k + j];
        std::cout << ']';
    }
    std::cout << ']';
}

// The median and the 99th percentile of single queries, in microseconds: one more pass, the clock read after each
// query.
void print_latencies(Peer &peer, const Queries &queries, Found &found) {
    std::vector<double> each(queries.count);
    Clock::time_point last = Clock::now();
    for (size_t i = 0; i < queries.count; i++) {
        found.counts[i] = peer.search(queries.row(i), found.ids.data() + i * found.k);
        const Clock::time_point now = Clock::now();
        each[i] = std::chrono::duration<double, std::micro>(now - last).count();
        last = now;
    }
    std::sort(each.begin(), each.end());
    std::cout << ", \"p50_us\": " << each[each.size() / 2] << ", \"p99_us\": " << each[each.size() * 99 / 100];
}

void measure(Peer &peer, const Cell &cell, Found &found, double seconds, bool ids) {
    if (seconds > 0) pass(peer, cell, found); // a process that was just started has yet to be given the pages it reads
    size_t passes = 0, asked = 0, answered = 0;
    double took = 0;
    peer.counted();
    const double worked = processor_seconds();
    const Clock::time_point start = Clock::now();
    do {
        asked = pass(peer, cell, found);
        answered += asked;
        passes++;
        took = since(start);
    } while (took < seconds);
    const double count = static_cast<double>(answered);
    std::cout << "{\"qps\": " << count / took << ", \"cpu_qps\": " << count / (processor_seconds() - worked)
              << ", \"passes\": " << passes << ", \"answered\": " << answered << peer.counted();
    if (!cell.limited()) print_latencies(peer, cell.queries, found);
    if (ids) print_ids(found, asked);
    std::cout << '}' << std::endl;
}

Found room_for(const Queries &queries, size_t k) {
    return {k, std::vector<uint64_t>(queries.count * k), std::vector<size_t>(queries.count)};
}

// Takes the queries and the filter of an order; tells how long the library took to make the filter.
void change(std::istringstream &order, Peer &peer, Cell &cell) {
    std::string queries, bits;
    double most;
    if (!(order >> queries >> bits >> most)) throw std::runtime_error("not cell QUERIES BITS MOST");
    cell = {read(queries), most};
    const std::vector<uint64_t> words = read_bits(bits);
    const Clock::time_point start = Clock::now();
    peer.allow(words);
    std::cout << "{\"allow_s\": " << since(start) << '}' << std::endl;
}

void answer(const std::string &line, Peer &peer, Cell &cell, Found &found) {
    std::istringstream order(line);
    double seconds;
    int ids;
    if (line.rfind("cell ", 0) == 0) {
        order.ignore(5);
        change(order, peer, cell);
        found = room_for(cell.queries, found.k);
        return;
    }
    if (!(order >> seconds >> ids)) throw std::runtime_error("not SECONDS IDS SETTING...: " + line);
    const std::vector<double> settings{std::istream_iterator<double>(order), {}};
    if (settings.empty()) throw std::runtime_error("no setting: " + line);
    peer.set(settings);
    measure(peer, cell, found, seconds, ids != 0);
}

void serve(const char *const *words, const std::string &kind) {
    Cell cell;
    cell.queries = read(words[2]);
    pin(std::stoi(words[4]));
    const size_t k = std::stoul(words[5]);
    const Clock::time_point start = Clock::now();
    const std::unique_ptr<Peer> peer = open_peer({words[1], words[3], cell.queries.element, cell.queries.dim, k, kind});
    Found found = room_for(cell.queries, k);
    std::cout.precision(12);
    std::cout << "{\"load_s\": " << since(start) << '}' << std::endl;
    for (std::string line; std::getline(std::cin, line);)
        answer(line, *peer, cell, found);
}

} // namespace

void Peer::allow(const std::vector<uint64_t> &bits) {
    if (!bits.empty()) throw std::runtime_error("this program's searches take no filter");
}

std::string Peer::counted() {
    return "";
}

int main(int argc, char **argv) {
    if (argc != 6 && argc != 7) {
        std::fprintf(stderr, "usage: %s INDEX QUERIES METRIC CPU K [KIND]\n", argv[0]);
        return 2;
    }
    try {
        serve(argv, argc > 6 ? argv[6] : "");
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "%s: %s\n", argv[0], problem.what());
        return 1;
    }
    return 0;
}
