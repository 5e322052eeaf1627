/* Parameters of an all-reduce, and what it costs. */
#ifndef SL_CLUSTER_ALLREDUCE_PARAMS_H
#define SL_CLUSTER_ALLREDUCE_PARAMS_H

#include <shortlist.h>
#include <stdint.h>

/* Name, word on the command line. New algorithms come last: tables of `tune` hold the words.
 *   auto          by a table of `tune`, else by the number of ranks and the bytes
 *   mpi           MPI_Iallreduce
 *   ring          reduce-scatter and all-gather round a ring (Patarasuk and Yuan 2009)
 *   rabenseifner  recursive halving, then recursive doubling (Rabenseifner 2004); other numbers of ranks are first
 *                 folded to the next lower power of two
 *   torus         reduce-scatter in rows, all-reduce in columns, all-gather in rows (Mikami et al. 2018)
 *   torus-put     the same; MPI_Put by recursive doubling replaces the all-gather
 *   bine          as rabenseifner, with the nearer partners of binomial negabinary trees (De Sensi et al. 2025,
 *                 arXiv 2508.17311) */
#define SL_ALLREDUCE_MAP(X)                                                                                            \
    X(AUTO, "auto")                                                                                                    \
    X(MPI, "mpi")                                                                                                      \
    X(RING, "ring")                                                                                                    \
    X(RABENSEIFNER, "rabenseifner")                                                                                    \
    X(TORUS, "torus")                                                                                                  \
    X(TORUS_PUT, "torus-put")                                                                                          \
    X(BINE, "bine")

typedef enum sl_allreduce_algorithm {
#define SL_X(name, word) SL_ALLREDUCE_##name,
    SL_ALLREDUCE_MAP(SL_X)
#undef SL_X
        SL_ALLREDUCE_COUNT
} sl_allreduce_algorithm;

/* How numbers travel. bf16 halves the bytes; each sum is made in f32 and rounded when it travels on. */
typedef enum sl_wire { SL_WIRE_F32, SL_WIRE_BF16 } sl_wire;
#define SL_WIRE_WORDS "f32|bf16"

/* How a row or column of a torus reduces: by its prime factors (halving, if the length is a power of two), or round a
 * ring. */
typedef enum sl_lane { SL_LANE_HALVING, SL_LANE_RING } sl_lane;
#define SL_LANE_WORDS "halving|ring"

/* How the windows of torus-put synchronise: all ranks of a row (MPI_Win_fence), or partners alone
 * (MPI_Win_post, start, complete, test). */
typedef enum sl_window_sync { SL_SYNC_FENCE, SL_SYNC_PSCW } sl_window_sync;
#define SL_SYNC_WORDS "fence|pscw"

typedef struct sl_tuning sl_tuning;

/* Zeroes are the defaults. All ranks give the same. */
typedef struct sl_allreduce_params {
    sl_allreduce_algorithm algorithm;
    /* Of a torus, whose product is the number of ranks. 0: as near the square as they can be, columns the larger. */
    size_t rows, columns;
    sl_wire wire;
    sl_lane lane; /* of a torus */
    sl_window_sync sync;
    int put_reduces;         /* torus-put: the reduce-scatter is by MPI_Put too */
    int shared;              /* ranks of one machine first add up through shared memory; one of them goes on the wire */
    size_t machine_ranks;    /* ranks that share memory, at most; 0: all of a machine */
    size_t chunk;            /* numbers that torus-put and shared memory handle at a time; 0: chosen */
    const sl_tuning *tuning; /* for `auto`; NULL: no table. The object keeps no pointer to it */
    /* Gets a line, on the first rank, if another algorithm has to replace the chosen one. NULL: nobody hears. */
    sl_log_fn log;
    void *log_ctx;
} sl_allreduce_params;

/* Refuses numbers that stand for nothing. Errors: SL_EINVAL. */
sl_status sl_allreduce_params_check(const sl_allreduce_params *params);

/* The word of an algorithm, and back. Returns SL_ALLREDUCE_COUNT for an unknown word. */
const char *sl_allreduce_name(sl_allreduce_algorithm algorithm);
sl_allreduce_algorithm sl_allreduce_of_name(const char *name);

/* What a sum costs a rank. A message is one transfer or one MPI_Put; synchronisation without data is not counted. A
 * collective call of `mpi` counts as cluster/comm counts it: one message, the bytes that the rank hands over. */
typedef struct sl_allreduce_cost {
    uint64_t messages, bytes; /* that this rank sends */
    size_t steps;             /* messages that follow one another, on the longest way */
    size_t sums, roundings;   /* additions and roundings to bf16 that a number goes through, at most */
} sl_allreduce_cost;

#endif
