// An index that one thread searches while others change it; beside.cpp is the program around it. One file a library
// implements open_living().
#ifndef BENCH_LIVING_BESIDE_H
#define BENCH_LIVING_BESIDE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

enum {
    K = 10,
    EF_CONSTRUCTION = 200,
    SEARCHER = 0,
    WRITERS = 2
}; // threads have numbers: the searcher's, then writers'

struct Shape {
    std::string metric; // "cosine", "ip" or "l2"; under cosine rows and queries are of length one
    size_t dim, m, room;
};

class Living {
  public:
    virtual ~Living() = default;
    // Any thread may call these at once, each with a number below 1 + WRITERS; `thread` is the caller's.
    virtual void add(uint64_t id, const float *row, size_t thread) = 0;
    virtual void remove(uint64_t id, size_t thread) = 0;
    // Rows of ids begin, begin + 1, ... by so many threads: the library's call for many rows, where it has one.
    virtual bool add_many(uint64_t begin, const float *rows, size_t count, size_t threads);
    // For one thread, the searcher. search writes K ids and returns how many it found.
    virtual void set(size_t ef) = 0;
    virtual size_t search(const float *query, uint64_t *ids) = 0;
};

std::unique_ptr<Living> open_living(const Shape &shape);

#endif
