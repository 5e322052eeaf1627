/*
 * K-means over the rows of an index (Lloyd 1982), by the kernels and in the codes that a walk uses.
 * Centroids are in groups, and a row is compared with the centroids of the groups nearest to it (centre_groups.h).
 */
#ifndef SL_HNSW_BUILD_KMEANS_H
#define SL_HNSW_BUILD_KMEANS_H

#include "hnsw/build/kmeans_rows.h"

/* Allocates. The caller frees with the function of the same name, also on failure. Errors: SL_ENOMEM. */
sl_status sl_kmeans_alloc_learners(sl_kmeans *kmeans);
void sl_kmeans_free_learners(sl_kmeans *kmeans);
sl_status sl_kmeans_alloc_centroids(sl_kmeans *kmeans);
void sl_kmeans_free_centroids(sl_kmeans *kmeans);
/* Bytes that sl_kmeans_alloc_centroids allocates, and what `threads` allocate while centroids are grouped.
 * Bytes that sl_kmeans_alloc_learners allocates for a thread. */
size_t sl_kmeans_bytes(const sl_codec *codec, size_t count, size_t threads);
size_t sl_kmeans_learner_bytes(const sl_codec *codec, size_t count);
/* Counts the comparisons of rows with centroids while these are learnt from n rows, and all n assigned. */
double sl_kmeans_comparisons(size_t n, size_t count);
/* Makes the k-means of `count` groups of the centroids of `grouped`. Errors: SL_ENOMEM. */
sl_status sl_kmeans_init_groups(sl_kmeans *groups, const sl_kmeans *grouped, size_t count);
void sl_kmeans_free_groups(sl_kmeans *groups);

/* Learns in all turns. Then it assigns every row to the nearest centroid, and sorts the rows by centroid.
 * Errors: SL_ENOMEM. */
sl_status sl_kmeans_learn(sl_kmeans *kmeans);
sl_status sl_kmeans_learn_groups(sl_kmeans *groups);

#endif
