/* A k-means under way, and the rows that it clusters. */
#ifndef SL_HNSW_BUILD_KMEANS_ROWS_H
#define SL_HNSW_BUILD_KMEANS_ROWS_H

#include "distance/double.h"
#include "hnsw/build/centre_groups.h"
#include "hnsw/graph/index.h"

#include <math.h>

/* One thread's scratch. */
typedef struct sl_learner {
    float *floats; /* a vector, and as much again for encoding it */
    double *sums;
    void *buffer;
    sl_top_centres top; /* of one centroid a row */
} sl_learner;

typedef struct sl_kmeans sl_kmeans;
struct sl_kmeans {
    const sl_graph *graph;
    const sl_kmeans *grouped; /* k-means whose centroids are clustered here; NULL: nodes of the index are */
    sl_codec codec; /* codec of the centroids while they are learnt: Euclidean, but under COSINE by their angle */
    uint8_t *rows;
    sl_centre_groups groups; /* of the centroids, while rows are compared with them */
    int in_query_form;       /* the centroids are in the form that queries are compared with */
    size_t count, threads;
    size_t sampled;        /* rows that are looked at: a sample, or all rows */
    uint32_t *nearest;     /* the centroid nearest to each row */
    uint32_t *by_centroid; /* places of the rows in the sample, by centroid */
    uint32_t *ends;        /* end of each centroid's places in `members` */
    uint32_t *splits;      /* how often each centroid's rows were halved in this turn */
    sl_learner *learners;
    sl_progress *progress;
};

/* Returns a number from 0 to below - 1, the same for the same seed, purpose and i. */
size_t sl_kmeans_random(const sl_kmeans *kmeans, uint64_t purpose, size_t i, size_t below);

/* Returns the node of the i-th row of the sample. */
uint32_t sl_kmeans_node(const sl_kmeans *kmeans, size_t i);

/* Puts the vector that is clustered into `out`: a centroid, or a node's own vector. A node's is made unit
 * except under L2; returns what it was divided by. */
double sl_kmeans_vector(const sl_kmeans *kmeans, size_t i, float *out);

/* Asks for the memory that sl_kmeans_vector reads. */
void sl_kmeans_prefetch(const sl_kmeans *kmeans, size_t i);

/* Returns a centroid's places in `members`. */
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
