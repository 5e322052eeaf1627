#include "hnsw/construct/kmeans_rows.h"

#include "base/random.h"
#include "distance/codec/encode.h"
#include "hnsw/graph/vectors.h"

size_t sl_kmeans_random(const sl_kmeans *kmeans, uint64_t purpose, size_t i, size_t below) {
    return (size_t)(sl_random_at(kmeans->graph->seed ^ 0x7061727469746eu ^ purpose << 56, i) % below);
}

/* Draws one node from each of `sampled` equal stretches. */
uint32_t sl_kmeans_node(const sl_kmeans *kmeans, size_t i) {
    uint64_t n = kmeans->graph->n, first = i * n / kmeans->sampled, end = (i + 1) * n / kmeans->sampled;
    return (uint32_t)(first + sl_kmeans_random(kmeans, 0, i, end - first));
}

/* Under IP bands tell long vectors from short ones, so k-means compares directions alone. */
double sl_kmeans_vector(const sl_kmeans *kmeans, size_t i, float *out) {
    size_t dim = kmeans->codec.dim;
    if (kmeans->grouped) {
        const sl_codec *codec = &kmeans->grouped->codec;
        sl_decode_row(codec, kmeans->grouped->rows + i * codec->rows.pitch, out);
        return 1;
    }
    sl_coded_floats(kmeans->graph, sl_kmeans_node(kmeans, i), out);
    if (kmeans->graph->codec.metric == SL_METRIC_L2) return 1;
    double length = sl_vector_length(out, dim);
    if (length > 0) sl_vector_scale(out, dim, 1 / length);
    return length;
}

void sl_kmeans_prefetch(const sl_kmeans *kmeans, size_t i) {
    if (!kmeans->grouped) sl_coded_prefetch(kmeans->graph, sl_kmeans_node(kmeans, i));
}
