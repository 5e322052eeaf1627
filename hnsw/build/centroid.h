/* Centroids of a k-means: where they begin and how they move. */
#ifndef SL_HNSW_BUILD_CENTROID_H
#define SL_HNSW_BUILD_CENTROID_H

#include "hnsw/build/kmeans_rows.h"

/* Tells whether the index has nearly as many partitions already, whose centroids serve to begin at. */
int sl_centroids_reusable(const sl_kmeans *kmeans);
/* Begins at the centroids that serve, evenly drawn, or else at rows of the sample. */
void sl_centroids_start(sl_kmeans *kmeans);
/* Moves each centroid to the mean of the rows nearest to it, or to what these are likely to score at best.
 */
void sl_centroids_move(sl_kmeans *kmeans);
/* Moves centroids that no row was nearest to. Each moves to a row of the largest partition, which counts
 * as halved from then on. */
void sl_centroids_refill(sl_kmeans *kmeans, uint64_t turn);

#endif
