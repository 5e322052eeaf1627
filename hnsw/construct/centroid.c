#include "hnsw/construct/centroid.h"

#include "distance/codec/encode.h"

#include <float.h>
#include <string.h>

/* Centroids are reused if the index has at least this share of the number wanted. */
enum { REUSED = 3, REUSED_OF = 4 };
/* Rows are prefetched this many rows ahead. */
enum { PREFETCH_AHEAD = 4 };

/* Writes the mean of the rows whose squared length is at least `least` into learner->floats. Returns the mean of their
 * squared lengths. A node's length counts as 1 under COSINE, where it is 1, and under L2, where it doesn't matter. */
static double mean_of(const sl_kmeans *kmeans, const sl_learner *learner, const uint32_t *cell, size_t count,
                      double least) {
    const int measured = kmeans->grouped || kmeans->graph->codec.metric == SL_METRIC_IP;
    size_t dim = kmeans->codec.dim, counted = 0;
    double *sums = learner->sums, norm2 = 0;
    memset(sums, 0, dim * sizeof *sums);
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH_AHEAD < count) sl_kmeans_prefetch(kmeans, cell[i + PREFETCH_AHEAD]);
        sl_kmeans_vector(kmeans, cell[i], learner->floats);
        double own = measured ? sl_dot_double(learner->floats, learner->floats, dim) : 1;
        if (own < least) continue;
        norm2 += own;
        counted++;
        for (size_t j = 0; j < dim; j++)
            sums[j] += (double)learner->floats[j];
    }
    for (size_t j = 0; j < dim; j++)
        learner->floats[j] = (float)(sums[j] / (double)counted);
    return norm2 / (double)counted;
}

/* Makes the mean as long as its rows are. Inner products depend on length, and the mean of several directions is
 * shorter than the rows. */
static void stretch_mean(const sl_kmeans *kmeans, const sl_learner *learner, double norm2) {
    size_t dim = kmeans->codec.dim;
    double own = sl_dot_double(learner->floats, learner->floats, dim);
    if (own > 0) sl_vector_scale(learner->floats, dim, sqrt(norm2 / own));
}

static void encode_mean(const sl_kmeans *kmeans, const sl_learner *learner, size_t p, const uint32_t *cell,
                        size_t count) {
    const sl_codec *codec = &kmeans->codec;
    double norm2 = mean_of(kmeans, learner, cell, count, 0);
    if (codec->metric == SL_METRIC_IP) stretch_mean(kmeans, learner, norm2);
    sl_encode_row(codec, learner->floats, SL_F32, kmeans->rows + p * codec->rows.pitch, learner->floats + codec->dim,
                  NULL);
}

/* Returns a squared length that about a quarter of the rows reach, if lengths are normally distributed. At least one
 * row reaches it. */
static double long_quarter(const sl_kmeans *kmeans, const sl_learner *learner, const uint32_t *cell, size_t count) {
    double sum = 0, squares = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        sl_kmeans_vector(kmeans, cell[i], learner->floats);
        double own = sl_dot_double(learner->floats, learner->floats, kmeans->codec.dim);
        sum += own;
        squares += own * own;
        if (own > most) most = own;
    }
    double mean = sum / (double)count, variance = squares / (double)count - mean * mean;
    double least = mean + (variance > 0 ? 0.674 * sqrt(variance) : 0);
    return least < most ? least : most;
}

/* Returns the mean of the centroids' biases. */
static double mean_reach(const sl_kmeans *centroids, const uint32_t *cell, size_t count) {
    const sl_code_rows *rows = &centroids->codec.rows;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)sl_field_get(centroids->rows + cell[i] * rows->pitch, rows->bias);
    return sum / (double)count;
}

/* Returns how far the best vectors score above their mean, which learner->floats holds: three standard deviations in
 * one direction, if the vectors spread alike in all directions. */
static double deviation(const sl_learner *learner, size_t dim, double norm2) {
    double variance = norm2 - sl_dot_double(learner->floats, learner->floats, dim);
    return variance > 0 ? 3 * sqrt(variance / (double)dim) : 0;
}

/* Encodes a centroid whose score estimates the best score among a partition's vectors. The best vector is taken to be
 * as long as the longest, and to lie in the directions of the partition. */
static void encode_reach(const sl_kmeans *kmeans, const sl_learner *learner, size_t p, const uint32_t *cell,
                         size_t count) {
    const sl_codec *codec = &kmeans->codec;
    uint8_t *row = kmeans->rows + p * codec->rows.pitch;
    double longest = 0;
    for (size_t i = 0; i < count; i++)
        longest = fmax(longest, sl_kmeans_vector(kmeans, cell[i], learner->floats));
    double norm2 = mean_of(kmeans, learner, cell, count, 0);
    double reach = longest * deviation(learner, codec->dim, norm2);
    sl_vector_scale(learner->floats, codec->dim, longest);
    sl_encode_row(codec, learner->floats, SL_F32, row, learner->floats + codec->dim, NULL);
    sl_field_put(row, codec->rows.bias, reach);
}

/* Encodes a centroid whose score estimates the best score among a group's vectors. The best vectors are in the
 * partitions with the longest centroids, and score above these centroids too. */
static void encode_group_reach(const sl_kmeans *kmeans, const sl_learner *learner, size_t p, const uint32_t *cell,
                               size_t count) {
    const sl_codec *codec = &kmeans->codec;
    uint8_t *row = kmeans->rows + p * codec->rows.pitch;
    double least = long_quarter(kmeans, learner, cell, count);
    double norm2 = mean_of(kmeans, learner, cell, count, least);
    double reach = deviation(learner, codec->dim, norm2) + mean_reach(kmeans->grouped, cell, count);
    sl_encode_row(codec, learner->floats, SL_F32, row, learner->floats + codec->dim, NULL);
    sl_field_put(row, codec->rows.bias, reach);
}

void sl_centroids_refill(sl_kmeans *kmeans, uint64_t turn) {
    memset(kmeans->splits, 0, kmeans->count * sizeof *kmeans->splits);
    for (size_t p = 0; p < kmeans->count; p++) {
        sl_range range = sl_kmeans_cell(kmeans, p);
        if (range.first < range.end) continue;
        size_t largest = 0, most = 0;
        for (size_t other = 0; other < kmeans->count; other++) {
            range = sl_kmeans_cell(kmeans, other);
            size_t size = (range.end - range.first) / (kmeans->splits[other] + 1);
            if (size <= most) continue;
            most = size;
            largest = other;
        }
        range = sl_kmeans_cell(kmeans, largest);
        size_t at = range.first + sl_kmeans_random(kmeans, turn + 2, p, range.end - range.first);
        encode_mean(kmeans, &kmeans->learners[0], p, kmeans->by_centroid + at, 1);
        kmeans->splits[largest]++;
    }
}

sl_status sl_centroids_move(sl_kmeans *kmeans) {
    const sl_range mine = sl_share_mine(kmeans->ranks, kmeans->count, 1);
    int by_reach = kmeans->in_query_form && kmeans->graph->codec.metric == SL_METRIC_IP;
    void (*encode)(const sl_kmeans *, const sl_learner *, size_t, const uint32_t *, size_t) = !by_reach ? encode_mean
                                                                                              : kmeans->grouped
                                                                                                  ? encode_group_reach
                                                                                                  : encode_reach;
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)kmeans->threads) if (kmeans->threads > 1)
    for (size_t p = mine.first; p < mine.end; p++) {
        sl_range range = sl_kmeans_cell(kmeans, p);
        if (range.first == range.end) continue;
        encode(kmeans, &kmeans->learners[sl_thread_number()], p, kmeans->by_centroid + range.first,
               range.end - range.first);
    }
    return sl_share_gather(kmeans->ranks, SL_OK, kmeans->rows, kmeans->codec.rows.pitch, kmeans->count, 1);
}

int sl_centroids_reusable(const sl_kmeans *kmeans) {
    const sl_partitions *had = &kmeans->graph->partitions;
    return !kmeans->grouped && REUSED_OF * had->count >= REUSED * kmeans->count;
}

/* Starts from a centroid of the index's partitions. Under IP that centroid is longer than a mean direction, so it's
 * scaled. Returns 0 if no vectors can have such a centroid, as in a damaged file. */
static int begin_at_centroid(const sl_kmeans *kmeans, size_t p, size_t had) {
    const sl_learner *learner = &kmeans->learners[0];
    const sl_codec *codec = &kmeans->codec, *from = &kmeans->graph->partitions.codec;
    sl_decode_row(from, from->rows.base + had * from->rows.pitch, learner->floats);
    const double length = sl_vector_length(learner->floats, codec->dim);
    if (!(length > 0 && length < FLT_MAX)) return 0;
    if (kmeans->graph->codec.metric == SL_METRIC_IP) sl_vector_scale(learner->floats, codec->dim, 1 / length);
    sl_encode_row(codec, learner->floats, SL_F32, kmeans->rows + p * codec->rows.pitch, learner->floats + codec->dim,
                  NULL);
    return 1;
}

/* Starts from a row of the sample's p-th stretch. */
static void begin_at_row(const sl_kmeans *kmeans, size_t p) {
    const size_t stretch = kmeans->sampled / kmeans->count;
    const uint32_t row = (uint32_t)(p * stretch + sl_kmeans_random(kmeans, 1, p, stretch));
    encode_mean(kmeans, &kmeans->learners[0], p, &row, 1);
}

void sl_centroids_start(sl_kmeans *kmeans) {
    const size_t had = sl_centroids_reusable(kmeans) ? kmeans->graph->partitions.count : 0;
    const size_t reused = had < kmeans->count ? had : kmeans->count;
    for (size_t p = 0; p < kmeans->count; p++)
        if (p >= reused || !begin_at_centroid(kmeans, p, p * had / reused)) begin_at_row(kmeans, p);
}
