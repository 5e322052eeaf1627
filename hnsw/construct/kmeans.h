/* K-means over the rows of an index (Lloyd 1982), with the kernels and the codes of a walk. Centroids are in groups,
 * and a row is compared with the centroids of the nearest groups (centre_groups.h). */
#ifndef SL_HNSW_CONSTRUCT_KMEANS_H
#define SL_HNSW_CONSTRUCT_KMEANS_H

#include "hnsw/construct/kmeans_rows.h"

/* Allocate memory. The caller frees it with the matching sl_kmeans_free_*, also on failure. Errors: SL_ENOMEM. */
sl_status sl_kmeans_alloc_learners(sl_kmeans *kmeans);
void sl_kmeans_free_learners(sl_kmeans *kmeans);
sl_status sl_kmeans_alloc_centroids(sl_kmeans *kmeans);
void sl_kmeans_free_centroids(sl_kmeans *kmeans);
/* Bytes that sl_kmeans_alloc_centroids allocates, including the threads' scratch while they group the centroids; and
 * bytes that sl_kmeans_alloc_learners allocates per thread. */
size_t sl_kmeans_bytes(const sl_codec *codec, size_t count, size_t threads);
size_t sl_kmeans_learner_bytes(const sl_codec *codec, size_t count);
/* Number of comparisons of rows with centroids: in all iterations, and then to assign all n rows. */
double sl_kmeans_comparisons(size_t n, size_t count);
/* Prepares the k-means that puts the centroids of `grouped` into `count` groups. It uses the learners of `grouped`. The
 * caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_kmeans_init_groups(sl_kmeans *groups, const sl_kmeans *grouped, size_t count);
void sl_kmeans_free_groups(sl_kmeans *groups);

/* Run all iterations, then assign every row to its nearest centroid and sort the rows by centroid. A cancelled progress
 * ends the call early, still with SL_OK. Errors: SL_ENOMEM. */
sl_status sl_kmeans_learn(sl_kmeans *kmeans);
sl_status sl_kmeans_learn_groups(sl_kmeans *groups);

#endif
