/*
 * K-means over the rows of an index (Lloyd 1982), by the kernels and in the codes that a walk uses.
 * Centroids are in groups, and a row is compared with the centroids of the groups nearest to it (centre_groups.h).
 */
#ifndef SL_HNSW_BUILD_KMEANS_H
#define SL_HNSW_BUILD_KMEANS_H

#include "distance/double.h"
#include "hnsw/build/centre_groups.h"
#include "hnsw/graph/index.h"

#include <math.h>

/* One thread's scratch. */
typedef struct sl_learner {
    float *floats; /* a vector, and as much again for encoding it */
    double *sums;
    void *buffer;
    sl_centre_finds finds; /* of one centroid a row */
} sl_learner;

typedef struct sl_kmeans sl_kmeans;
struct sl_kmeans {
    const sl_graph *graph;
    const sl_kmeans *grouped; /* k-means whose centroids are clustered here; NULL: nodes of the index are */
    sl_codec codec; /* codec of the centroids while they are learnt: Euclidean, but under COSINE by their angle */
    uint8_t *rows;
    sl_centre_groups groups; /* of the centroids, while rows are compared with them */
    int is_asked;            /* the centroids are in the form that queries are compared with */
    size_t count, threads;
    size_t sampled;    /* rows that are looked at: a sample, or all rows */
    uint32_t *of;      /* the centroid nearest to each row */
    uint32_t *members; /* places of the rows in the sample, by centroid */
    uint32_t *ends;    /* end of each centroid's places in `members` */
    uint32_t *splits;  /* how often each centroid's rows were halved in this turn */
    sl_learner *learners;
    sl_progress *progress;
};

/* kmeans.c: allocates. The caller frees with the function of the same name, also on failure. Errors: SL_ENOMEM. */
sl_status sl_kmeans_alloc_learners(sl_kmeans *kmeans);
void sl_kmeans_free_learners(sl_kmeans *kmeans);
sl_status sl_kmeans_alloc_centroids(sl_kmeans *kmeans);
void sl_kmeans_free_centroids(sl_kmeans *kmeans);
/* kmeans.c: bytes that sl_kmeans_alloc_centroids allocates, and what `threads` allocate while centroids are grouped.
 * Bytes that sl_kmeans_alloc_learners allocates for a thread. */
size_t sl_kmeans_bytes(const sl_codec *codec, size_t count, size_t threads);
size_t sl_kmeans_learner_bytes(const sl_codec *codec, size_t count);
/* kmeans.c: counts the comparisons of rows with centroids while these are learnt from n rows, and all n assigned. */
double sl_kmeans_compared(size_t n, size_t count);
/* kmeans.c: makes the k-means of `count` groups of the centroids of `grouped`. Errors: SL_ENOMEM. */
sl_status sl_kmeans_init_groups(sl_kmeans *groups, const sl_kmeans *grouped, size_t count);
void sl_kmeans_free_groups(sl_kmeans *groups);

/* kmeans.c: returns a number from 0 to below - 1, the same for the same seed, purpose and i. */
size_t sl_kmeans_pick(const sl_kmeans *kmeans, uint64_t purpose, size_t i, size_t below);

/* kmeans.c: puts the vector that is clustered into `out`: a centroid, or a node's own vector. A node's is made unit
 * except under L2; returns what it was divided by. */
double sl_kmeans_take(const sl_kmeans *kmeans, size_t i, float *out);

/* kmeans.c: asks for the memory that sl_kmeans_take reads. */
void sl_kmeans_ahead(const sl_kmeans *kmeans, size_t i);

/* kmeans.c: sorts the numbers 0 to n - 1 by the centroid that each is nearest to, SL_NONE left out. ends: `count`
 * entries, which get the end of each centroid's numbers in `members`. */
void sl_sort_members(const uint32_t *of, size_t n, size_t count, uint32_t *ends, uint32_t *members);

/* kmeans.c: learns in all turns. Then it assigns every row to the nearest centroid, and sorts the rows by centroid.
 * Errors: SL_ENOMEM. */
sl_status sl_kmeans_learn(sl_kmeans *kmeans);
sl_status sl_kmeans_learn_groups(sl_kmeans *groups);

/* centroid.c: tells whether the index has nearly as many partitions already, whose centroids serve to begin at. */
int sl_centroids_serve(const sl_kmeans *kmeans);
/* centroid.c: begins at the centroids that serve, evenly drawn, or else at rows of the sample. */
void sl_centroids_start(sl_kmeans *kmeans);
/* centroid.c: moves each centroid to the mean of the rows nearest to it, or to what these are likely to score at best.
 */
void sl_centroids_move(sl_kmeans *kmeans);
/* centroid.c: moves centroids that no row was nearest to. Each moves to a row of the largest partition, which counts
 * as halved from then on. */
void sl_centroids_refill(sl_kmeans *kmeans, uint64_t turn);

/* Returns a centroid's places in `members`. */
static inline sl_range sl_kmeans_members(const sl_kmeans *kmeans, size_t p) {
    return (sl_range){p ? kmeans->ends[p - 1] : 0, kmeans->ends[p]};
}

static inline void sl_vector_scale(float *x, size_t dim, double factor) {
    for (size_t i = 0; i < dim; i++)
        x[i] = (float)((double)x[i] * factor);
}

static inline double sl_vector_length(const float *x, size_t dim) {
    return sqrt(sl_dot_double(x, x, dim));
}

#endif
