/* Centroids of a k-means: where they start and how they move. */
#ifndef SL_HNSW_CONSTRUCT_CENTROID_H
#define SL_HNSW_CONSTRUCT_CENTROID_H

#include "hnsw/construct/kmeans_rows.h"

/* Returns whether the index has three quarters of the partitions wanted already. K-means then starts from their
 * centroids. */
int sl_centroids_reusable(const sl_kmeans *kmeans);
/* Starts from the reusable centroids, evenly drawn. Without them, or for the rest, starts from rows of the sample. */
void sl_centroids_start(sl_kmeans *kmeans);
/* Moves each centroid to the mean of its rows. Under IP with in_query_form, encodes a vector instead whose score
 * estimates the best score among the rows. Errors: those of kmeans->share; none without it. */
sl_status sl_centroids_move(sl_kmeans *kmeans);
/* Moves each centroid without rows to a row of the largest partition. That partition counts as halved from then on. */
void sl_centroids_refill(sl_kmeans *kmeans, uint64_t turn);

#endif
