// Compares libraries of nearest-neighbour search side by side in one process. Run by run.py; see
// docs/internals/bench.md.
#include "harness.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <getopt.h>
#include <sstream>
#include <sys/stat.h>

namespace {

using Library = const peer *(*)(void);
const Library libraries[] = {peer_shortlist, peer_hnswlib};

template <typename T> Matrix<T> read_matrix(const std::string &path, size_t limit) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path + ": cannot open");
    uint32_t head[2];
    file.read(reinterpret_cast<char *>(head), sizeof head);
    struct stat facts;
    const bool known = file && stat(path.c_str(), &facts) == 0;
    if (!known || static_cast<uint64_t>(facts.st_size) != sizeof head + uint64_t{head[0]} * head[1] * sizeof(T))
        throw std::runtime_error(path + ": its size is not what its first two words (rows, columns) say");
    Matrix<T> matrix;
    matrix.rows = std::min<size_t>(head[0], limit);
    matrix.columns = head[1];
    matrix.values.resize(matrix.rows * matrix.columns);
    file.read(reinterpret_cast<char *>(matrix.values.data()),
              static_cast<std::streamsize>(matrix.values.size() * sizeof(T)));
    if (!file) throw std::runtime_error(path + ": cannot read");
    return matrix;
}

const peer *library_named(const std::string &name) {
    for (Library library : libraries) {
        if (name == library()->name) return library();
    }
    throw std::invalid_argument("no such peer: " + name);
}

std::vector<std::string> split(const std::string &list) {
    std::vector<std::string> words;
    std::istringstream rest(list);
    for (std::string word; std::getline(rest, word, ',');)
        words.push_back(word);
    return words;
}

Side side_of(const std::string &word) {
    const size_t at = word.find('=');
    if (at == std::string::npos) throw std::invalid_argument("--index takes PEER=FILE, not " + word);
    return {library_named(word.substr(0, at)), word.substr(at + 1)};
}

size_t count_of(const std::string &word) {
    size_t used = 0;
    const long long value = std::stoll(word, &used);
    if (used != word.size() || value < 1) throw std::invalid_argument("not a positive number: " + word);
    return static_cast<size_t>(value);
}

void about() {
    for (Library library : libraries) {
        const peer &one = *library();
        std::printf("{\"event\":\"peer\",\"peer\":\"%s\",\"version\":\"%s\",\"compiled\":\"%s\"}\n", one.name,
                    one.version(), one.compiled);
    }
}

enum Option {
    BASE = 1,
    QUERIES,
    TRUTH,
    OUT,
    PEERS,
    INDEX,
    CODES,
    REFINE,
    M,
    EF_BUILD,
    THREADS,
    SEED,
    K,
    ROUNDS,
    TARGETS,
    EF,
    CPU,
    PLACE
};

const option long_options[] = {{"base", required_argument, nullptr, BASE},
                               {"queries", required_argument, nullptr, QUERIES},
                               {"truth", required_argument, nullptr, TRUTH},
                               {"out", required_argument, nullptr, OUT},
                               {"peers", required_argument, nullptr, PEERS},
                               {"index", required_argument, nullptr, INDEX},
                               {"codes", required_argument, nullptr, CODES},
                               {"refine", required_argument, nullptr, REFINE},
                               {"m", required_argument, nullptr, M},
                               {"ef-build", required_argument, nullptr, EF_BUILD},
                               {"threads", required_argument, nullptr, THREADS},
                               {"seed", required_argument, nullptr, SEED},
                               {"k", required_argument, nullptr, K},
                               {"rounds", required_argument, nullptr, ROUNDS},
                               {"targets", required_argument, nullptr, TARGETS},
                               {"ef", required_argument, nullptr, EF},
                               {"cpu", required_argument, nullptr, CPU},
                               {"place", required_argument, nullptr, PLACE},
                               {nullptr, 0, nullptr, 0}};

void take_list(Options &options, int option, const std::string &value) {
    for (const std::string &word : split(value)) {
        if (option == PEERS) options.peers.push_back(library_named(word));
        if (option == TARGETS) options.targets.push_back(std::stod(word));
        if (option == EF) options.efs.push_back(count_of(word));
    }
}

void take(Options &options, int option) {
    const std::string value = optarg == nullptr ? "" : optarg;
    switch (option) {
    case BASE:
        options.base = value;
        break;
    case QUERIES:
        options.queries = value;
        break;
    case TRUTH:
        options.truth = value;
        break;
    case OUT:
        options.out = value;
        break;
    case INDEX:
        options.sides.push_back(side_of(value));
        break;
    case CODES:
        options.params.codes = optarg;
        break;
    case REFINE:
        options.params.refine = optarg;
        break;
    case M:
        options.params.m = count_of(value);
        break;
    case EF_BUILD:
        options.params.ef_construction = count_of(value);
        break;
    case THREADS:
        options.params.threads = count_of(value);
        break;
    case SEED:
        options.params.seed = count_of(value);
        break;
    case K:
        options.k = count_of(value);
        break;
    case ROUNDS:
        options.rounds = count_of(value);
        break;
    case CPU:
        options.cpu = std::stoi(value);
        break;
    case PLACE:
        options.place = value == "map" ? PEER_MAP : PEER_DRAM;
        break;
    case PEERS:
    case TARGETS:
    case EF:
        take_list(options, option, value);
        break;
    default:
        throw std::invalid_argument("see docs/internals/bench.md for the options");
    }
}

int run(int argc, char **argv) {
    const std::string stage = argc > 1 ? argv[1] : "";
    Options options;
    for (int option; (option = getopt_long(argc - 1, argv + 1, "", long_options, nullptr)) != -1;)
        take(options, option);
    if (stage == "about")
        about();
    else if (stage == "build")
        stage_build(options);
    else if (stage == "search")
        stage_search(options);
    else if (stage == "first")
        stage_first(options);
    else
        throw std::invalid_argument("usage: compare about|build|search|first [--option value]...");
    return 0;
}

} // namespace

Matrix<float> read_fbin(const std::string &path, size_t limit) {
    return read_matrix<float>(path, limit);
}

Matrix<int32_t> read_ibin(const std::string &path, size_t limit) {
    return read_matrix<int32_t>(path, limit);
}

int main(int argc, char **argv) {
    try {
        return run(argc, argv);
    } catch (const std::invalid_argument &failure) {
        std::fprintf(stderr, "compare: %s\n", failure.what());
        return 2;
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "compare: %s\n", failure.what());
        return 1;
    }
}
