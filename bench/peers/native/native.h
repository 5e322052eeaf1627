// A library's index as the race asks it without Python: opened from the file that its Python module saved, one query a
// call. native.cpp is the program around it; one file a library implements open_peer().
#ifndef BENCH_PEERS_NATIVE_H
#define BENCH_PEERS_NATIVE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct Opening {
    std::string index;   // the file, or the folder
    std::string metric;  // "cosine", "ip" or "l2"; under cosine the queries are of length one
    std::string element; // of the queries: "f32", "u8" or "i8"
    size_t dim, k;
    std::string kind; // of what the index holds, where its file does not say
};

class Peer {
  public:
    virtual ~Peer() = default;
    // The settings that trade speed for recall, as the race chose them.
    virtual void set(const std::vector<double> &values) = 0;
    // Writes up to k ids and returns how many. Throws std::exception, as all of these do.
    virtual size_t search(const void *query, uint64_t *ids) = 0;
    // From here on searches return ids whose bit is set: bit i % 64 of word i / 64 is that of id i. No words: all ids.
    virtual void allow(const std::vector<uint64_t> &bits);
    // The counts of the library since the last call: members of a JSON object, a comma before each.
    virtual std::string counted();
};

std::unique_ptr<Peer> open_peer(const Opening &opening);

#endif
