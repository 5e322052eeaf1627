/*
 * The seam between the harness and the libraries it compares. Each library stands behind one table of operations, in
 * its own shared library that exports nothing else: its compiler flags, its inline functions and its exceptions stay
 * on its side, and the harness treats every peer alike.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peer_params {
    size_t dim;
    size_t m;
    size_t ef_construction;
    size_t threads;     /* of the build */
    uint64_t seed;      /* of the levels */
    const char *codes;  /* "i8", "i16", "f32"; peers that know one form only ignore both */
    const char *refine; /* "none", "bf16", "f32", "i16" */
};

/* Where a search reads the index from: the peer's own memory, or the mapped file where it can do that. */
enum peer_place { PEER_DRAM = 0, PEER_MAP = 1 };

/* Indexes answer for the cosine, over f32 rows; row i has id i. One handle is one thread's. Functions that give a
 * handle give NULL on failure, the others give 0 on success; error() then tells what went wrong. */
struct peer {
    const char *name;
    const char *(*version)(void);
    const char *compiled; /* compiler and flags of the peer's own code */

    void *(*build)(const struct peer_params *params, const float *rows, size_t n);
    void *(*open)(const char *path, size_t dim, enum peer_place place);
    int (*save)(void *index, const char *path);
    void (*close)(void *index);

    int (*set_ef)(void *index, size_t ef);
    /* ids has room for k; those not found are set to UINT64_MAX. evaluations, if given, is set to the number of
     * distances this query computed; timed passes do not ask for it. */
    int (*search_one)(void *index, const float *query, size_t k, uint64_t *ids, size_t *evaluations);

    const char *(*error)(void);
};

/* A peer's shared library exports its table by such a function. */
const struct peer *peer_shortlist(void);
const struct peer *peer_hnswlib(void);

#ifdef __cplusplus
}
#endif

#endif
