/* A k-means, and the rows that it clusters. */
#ifndef SL_HNSW_CONSTRUCT_KMEANS_ROWS_H
#define SL_HNSW_CONSTRUCT_KMEANS_ROWS_H

#include "distance/double.h"
#include "hnsw/construct/centre_groups.h"
#include "hnsw/graph/index.h"

#include <math.h>

/* One thread's scratch. */
typedef struct sl_learner {
    float *floats; /* a vector, and as much again for encoding it */
    double *sums;
    void *buffer;
    sl_top_centres top; /* keeps the nearest centroid of each row */
} sl_learner;

typedef struct sl_kmeans sl_kmeans;
struct sl_kmeans {
    const sl_graph *graph;
    const sl_kmeans *grouped; /* the k-means whose centroids this one clusters; NULL: it clusters the index's nodes */
    sl_codec codec;           /* of the centroids, set by sl_partition_codec */
    uint8_t *rows;
    sl_centre_groups groups; /* groups of the centroids, so that a row is compared with some centroids, not all */
    int in_query_form;       /* 1: centroids have the form that searches compare queries with, which differs under IP
                                (sl_centroids_move) */
    size_t count, threads;
    size_t sampled;        /* rows that the current iteration clusters: a sample, or all rows */
    uint32_t *nearest;     /* the centroid nearest to each row */
    uint32_t *by_centroid; /* rows of the sample, by centroid */
    uint32_t *ends;        /* end of each centroid's rows in `by_centroid` */
    uint32_t *splits;      /* for each centroid, how often sl_centroids_refill has halved its rows in this iteration */
    sl_learner *learners;
    sl_progress *progress;
    const sl_ranks *ranks; /* the ranks that share the rows and the centroids; NULL: this process alone */
};

/* Returns a random number from 0 to below - 1. It depends on the index's seed, `purpose` and `i` alone. Each use has a
 * `purpose` of its own. */
size_t sl_kmeans_random(const sl_kmeans *kmeans, uint64_t purpose, size_t i, size_t below);

/* Returns the node of the sample's i-th row. */
uint32_t sl_kmeans_node(const sl_kmeans *kmeans, size_t i);

/* Writes row i of the sample to `out` as a vector: a centroid of `grouped`, or a node's vector. A node's vector is
 * scaled to unit length, except under L2. Returns its length before the scaling; 1 for a centroid and under L2. */
double sl_kmeans_vector(const sl_kmeans *kmeans, size_t i, float *out);

/* Prefetches the memory that sl_kmeans_vector reads. */
void sl_kmeans_prefetch(const sl_kmeans *kmeans, size_t i);

/* Returns the range of a centroid's rows in `by_centroid`. */
static inline sl_range sl_kmeans_cell(const sl_kmeans *kmeans, size_t p) {
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
