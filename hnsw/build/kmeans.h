/*
 * K-means over the rows of an index (Lloyd 1982), by the kernels and in the codes that a walk uses. From
 * SL_KMEANS_BLOCK centroids on these are in groups of their own, by the same means, and a row looks at those of the
 * groups nearest to it: some of the square root of all of them, and hardly ever without the one it wants.
 */
#ifndef SL_HNSW_BUILD_KMEANS_H
#define SL_HNSW_BUILD_KMEANS_H

#include "distance/double.h"
#include "hnsw/graph/index.h"

#include <math.h>

/* Centroids scored at once; the groups that learning puts them in are no more. */
#define SL_KMEANS_BLOCK 256u

/* Of one thread. */
typedef struct sl_learner {
    float *floats; /* a vector, and as much again for its query */
    double *sums;
    void *buffer;
} sl_learner;

typedef struct sl_kmeans sl_kmeans;
struct sl_kmeans {
    const sl_index *index;
    const sl_kmeans *grouped; /* whose centroids are the rows; NULL: they are nodes of the index */
    sl_kmeans *groups;        /* of the centroids; NULL where all are looked at */
    sl_codec codec;           /* of the centroids while they are learnt: Euclidean, but under COSINE by their angle */
    uint8_t *rows;
    int is_asked; /* the centroids are in the form that queries are compared with */
    size_t count, threads;
    size_t sampled;    /* rows that are looked at: a sample, or all */
    uint32_t *of;      /* the centroid nearest to each */
    uint32_t *members; /* their places in the sample, by centroid */
    uint32_t *ends;    /* of each centroid's in `members` */
    uint32_t *splits;  /* of each centroid's, in this turn */
    sl_learner *learners;
    sl_progress *progress;
};

/* kmeans.c: memory; what was allocated is for the free of the same name, also on failure. Errors: SL_ENOMEM. */
sl_status sl_kmeans_alloc_learners(sl_kmeans *kmeans);
void sl_kmeans_free_learners(sl_kmeans *kmeans);
sl_status sl_kmeans_alloc_centroids(sl_kmeans *kmeans);
void sl_kmeans_free_centroids(sl_kmeans *kmeans);
/* kmeans.c: of a count of groups, of the centroids of `grouped`. */
sl_status sl_kmeans_init_groups(sl_kmeans *groups, const sl_kmeans *grouped, size_t count);
void sl_kmeans_free_groups(sl_kmeans *groups);

/* kmeans.c: a number from 0 to below - 1. */
size_t sl_kmeans_pick(const sl_kmeans *kmeans, uint64_t purpose, size_t i, size_t below);

/* kmeans.c: The vector that is clustered: a centroid, or a node's own, but under L2 made unit: returns what divided it.
 * Under IP lengths are for the bands, so that a partition may be narrow. */
double sl_kmeans_take(const sl_kmeans *kmeans, size_t i, float *out);

/* kmeans.c: all turns; then of every row the nearest centroid, and every centroid's rows. */
void sl_kmeans_learn(sl_kmeans *kmeans);
void sl_kmeans_learn_groups(sl_kmeans *groups);

/* centroid.c: to begin with, rows of the sample, evenly drawn. */
void sl_centroids_start(sl_kmeans *kmeans);
/* centroid.c: each to the mean of the rows nearest to it, or to what these are likely to score at best. */
void sl_centroids_move(sl_kmeans *kmeans);
/* centroid.c: those that no row was nearest to move to a row of what is largest, counting that they halve it. */
void sl_centroids_refill(sl_kmeans *kmeans, uint64_t turn);

/* A centroid's places in `members`. */
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
