/* Partitions of an index's nodes, and their groups, put in order after k-means. */
#include "hnsw/construct/partition_make.h"

#include "hnsw/construct/centroid.h"
#include "hnsw/construct/kmeans.h"
#include "hnsw/construct/resolution.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/vectors.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With more partitions than this, queries look at groups of them. */
enum { UNGROUPED = 128 };

size_t sl_partition_count(size_t n) {
    size_t count = n / SL_PARTITION_ROWS;
    if (count > SL_MAX_PARTITIONS) count = SL_MAX_PARTITIONS;
    return count ? count : 1;
}

size_t sl_partition_groups(size_t partitions) {
    return partitions > UNGROUPED ? partitions / SL_GROUP_PARTITIONS : 0;
}

/* Makes the centroids again, from all rows, in the form that queries are compared with. */
static sl_status encode_for_queries(sl_kmeans *kmeans) {
    const sl_allocator *allocator = &kmeans->graph->allocator;
    sl_codec codec;
    void *rows;
    SL_TRY(sl_partition_codec(kmeans->graph, kmeans->codec.codes, &codec));
    SL_TRY(sl_ranks_agree(kmeans->ranks, sl_mem_alloc(allocator, sl_codec_rows_size(&codec, kmeans->count), &rows)));
    sl_mem_free(allocator, kmeans->rows, sl_codec_rows_size(&kmeans->codec, kmeans->count));
    kmeans->codec = codec;
    kmeans->codec.rows.base = kmeans->rows = rows;
    kmeans->in_query_form = 1;
    return sl_centroids_move(kmeans);
}

/* Removes partitions without rows from the groups. */
static void drop_empty_partitions(sl_kmeans *groups) {
    uint32_t kept = 0, from = 0;
    for (size_t g = 0; g < groups->count; g++) {
        uint32_t end = groups->ends[g];
        for (; from < end; from++) {
            uint32_t p = groups->by_centroid[from];
            sl_range range = sl_kmeans_cell(groups->grouped, p);
            if (range.first < range.end) groups->by_centroid[kept++] = p;
        }
        groups->ends[g] = kept;
    }
}

/* Numbers of centroids, in the order that their partitions will have. */
typedef struct sl_centroid_list {
    const uint32_t *centroids;
    size_t count;
} sl_centroid_list;

/* Sorts `order`, which names n items, by centroid: centroids in the order of `list`, items of one centroid in their own
 * order. Writes the listed centroids and the begin of each one's items to `out`. `scratch`: n entries. Errors:
 * SL_ENOMEM. */
static sl_status arrange_by_centroid(const sl_kmeans *kmeans, sl_centroid_list list, uint32_t *order, size_t n,
                                     uint32_t *scratch, sl_partitions *out) {
    const sl_allocator *allocator = &kmeans->graph->allocator;
    const uint32_t *of = kmeans->nearest;
    const size_t listed = list.count;
    size_t pitch = kmeans->codec.rows.pitch, end = 0;
    sl_partitions arranged = {.count = listed, .codec = kmeans->codec};
    void *block, *places = NULL;
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(allocator, kmeans->count * sizeof(uint32_t), &places), done);
    uint32_t *place_of = places;
    SL_TRY_GOTO(sl_mem_alloc(allocator, (listed + 1) * sizeof(uint32_t), &block), done);
    arranged.starts = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, sl_codec_rows_size(&arranged.codec, listed), &block), done);
    arranged.rows = block;
    arranged.codec.rows.base = block;
    for (size_t i = 0; i < listed; i++) {
        place_of[list.centroids[i]] = (uint32_t)i + 1;
        memcpy(arranged.rows + i * pitch, kmeans->rows + list.centroids[i] * pitch, pitch);
    }
    /* First starts[i + 2] gets the number of items of centroid i. The sums then make starts[i + 1] their begin. Filling
     * moves that to their end, which is the begin of centroid i + 1. */
    for (size_t i = 0; i < n; i++)
        if (place_of[of[order[i]]] < listed) arranged.starts[place_of[of[order[i]]] + 1]++;
    for (size_t p = 1; p <= listed; p++) {
        end += arranged.starts[p];
        arranged.starts[p] = (uint32_t)end;
    }
    for (size_t i = 0; i < n; i++)
        scratch[arranged.starts[place_of[of[order[i]]]]++] = order[i];
    memcpy(order, scratch, n * sizeof *order);
    *out = arranged;
    arranged = (sl_partitions){.codec = kmeans->codec};
done:
    sl_mem_free(allocator, places, kmeans->count * sizeof(uint32_t));
    sl_partitions_free(allocator, &arranged);
    return status;
}

/* Lists the centroids of n items in the order in which `order` first reaches them, in `room`. `seen`: zeroes. */
static sl_centroid_list list_in_order(const sl_kmeans *kmeans, const uint32_t *order, size_t n, uint32_t *seen,
                                      uint32_t *room) {
    size_t listed = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t centroid = kmeans->nearest[order[i]];
        if (!seen[centroid]) room[listed++] = centroid;
        seen[centroid] = 1;
    }
    return (sl_centroid_list){room, listed};
}

/* Sorts nodes by partition, and partitions by group if there are groups. Groups lie in the order in which they are
 * first reached. */
static sl_status order_nodes(const sl_kmeans *kmeans, const sl_kmeans *groups, const sl_partition_work *work) {
    const sl_allocator *allocator = &kmeans->graph->allocator;
    size_t n = kmeans->graph->n, count = kmeans->count, size = 4 * count * sizeof(uint32_t);
    void *block;
    sl_status status;
    SL_TRY(sl_mem_alloc(allocator, size, &block));
    uint32_t *listed = block, *seen = listed + count, *groups_listed = seen + count,
             *groups_seen = groups_listed + count;
    sl_centroid_list list = list_in_order(kmeans, work->order, n, seen, listed);
    if (groups->count) {
        sl_centroid_list groups_list = list_in_order(groups, listed, list.count, groups_seen, groups_listed);
        SL_TRY_GOTO(arrange_by_centroid(groups, groups_list, listed, list.count, work->scratch, work->groups), done);
    }
    status = arrange_by_centroid(kmeans, list, work->order, n, work->scratch, work->partitions);
done:
    sl_mem_free(allocator, block, size);
    return status;
}

/* A node's length, and its place in the order. */
typedef struct sl_measured {
    float length;
    uint32_t place;
} sl_measured;

static int longer_first(const void *a, const void *b) {
    const sl_measured *one = a, *other = b;
    if (one->length != other->length) return one->length > other->length ? -1 : 1;
    return one->place < other->place ? -1 : 1;
}

/* Writes the length of each band's longest vector, as a share of the partition's longest. Nodes lie by falling
 * length. */
static void write_bands(const sl_measured *nodes, size_t count, uint8_t *bands) {
    for (size_t b = 0; b < SL_PARTITION_BANDS; b++) {
        size_t first = sl_partition_band_rows(count, b);
        if (first == count) first--; /* the band is empty */
        double share = nodes[0].length > 0 ? (double)nodes[first].length / (double)nodes[0].length : 1;
        bands[b] = (uint8_t)ceil(255 * share);
    }
}

/* Sorts each partition's nodes by falling length and makes its bands. Nodes of equal length keep their order. */
static sl_status make_bands(const sl_kmeans *kmeans, uint32_t *order, uint32_t *scratch, sl_partitions *out) {
    const sl_allocator *allocator = &kmeans->graph->allocator;
    size_t n = kmeans->graph->n, dim = kmeans->codec.dim;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, out->count * SL_PARTITION_BANDS, &block));
    out->bands = block;
    out->band_bits = SL_BAND_BITS;
    SL_TRY(sl_mem_alloc(allocator, n * sizeof(sl_measured), &block));
    sl_measured *nodes = block;
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)kmeans->threads) if (kmeans->threads > 1)
    for (size_t p = 0; p < out->count; p++) {
        float *x = kmeans->learners[sl_thread_number()].floats;
        sl_range range = sl_partition_nodes(out, p, n);
        if (sl_progress_cancelled(kmeans->progress)) continue;
        for (size_t i = range.first; i < range.end; i++) {
            sl_coded_floats(kmeans->graph, order[i], x);
            double length = sl_vector_length(x, dim); /* a damaged file may give NaN, or too large a length */
            nodes[i] = (sl_measured){length <= (double)FLT_MAX ? (float)length : 0, (uint32_t)i};
        }
        qsort(nodes + range.first, range.end - range.first, sizeof *nodes, longer_first);
        for (size_t i = range.first; i < range.end; i++)
            scratch[i] = order[nodes[i].place];
        write_bands(nodes + range.first, range.end - range.first, out->bands + p * SL_PARTITION_BANDS);
    }
    SL_FREE_ARRAY(allocator, nodes, n);
    if (sl_progress_cancelled(kmeans->progress)) return sl_progress_end(kmeans->progress);
    memcpy(order, scratch, n * sizeof *order);
    return SL_OK;
}

/* Makes centroids, and assigns all rows to them. */
static sl_status make_partitions(sl_kmeans *kmeans) {
    SL_TRY(sl_kmeans_learn(kmeans));
    return sl_progress_cancelled(kmeans->progress) ? sl_progress_end(kmeans->progress) : encode_for_queries(kmeans);
}

/* Makes the groups that queries look at, from centroids in their form for queries. */
static sl_status make_groups(sl_kmeans *groups, const sl_kmeans *kmeans) {
    SL_TRY(sl_kmeans_init_groups(groups, kmeans, sl_partition_groups(kmeans->count)));
    SL_TRY(sl_kmeans_learn_groups(groups));
    if (sl_progress_cancelled(kmeans->progress)) return sl_progress_end(kmeans->progress);
    drop_empty_partitions(groups);
    return encode_for_queries(groups);
}

sl_status sl_partitions_make(const sl_graph *graph, size_t threads, sl_progress *progress,
                             const sl_partition_work *work) {
    sl_kmeans kmeans = {.graph = graph,
                        .count = sl_partition_count(graph->n),
                        .threads = threads,
                        .nearest = work->of,
                        .by_centroid = work->scratch,
                        .progress = progress,
                        .ranks = graph->ranks};
    sl_kmeans groups = {0};
    sl_codes codes;
    sl_status status;
    SL_TRY(sl_compared_codes(graph, threads, progress, &codes));
    SL_TRY(sl_partition_codec(graph, codes, &kmeans.codec));
    status = sl_kmeans_alloc_centroids(&kmeans);
    if (status == SL_OK) status = sl_kmeans_alloc_learners(&kmeans);
    SL_TRY_GOTO(sl_ranks_agree(graph->ranks, status), done);
    SL_TRY_GOTO(make_partitions(&kmeans), done);
    if (sl_partition_groups(kmeans.count)) SL_TRY_GOTO(make_groups(&groups, &kmeans), done);
    SL_TRY_GOTO(order_nodes(&kmeans, &groups, work), done);
    if (graph->codec.metric == SL_METRIC_IP) status = make_bands(&kmeans, work->order, work->scratch, work->partitions);
done:
    sl_kmeans_free_groups(&groups);
    sl_kmeans_free_learners(&kmeans);
    sl_kmeans_free_centroids(&kmeans);
    return status;
}

static size_t partitions_bytes(const sl_codec *codec, size_t count) {
    return (count + 1) * sizeof(uint32_t) + sl_codec_rows_size(codec, count);
}

sl_codes sl_partition_codes_at_most(const sl_graph *graph) {
    return sl_is_finer_than_bytes(&graph->codec) ? SL_CODES_F32 : SL_CODES_I8;
}

/* encode_for_queries() has the centroids twice. order_nodes() and arrange_by_centroid() have five numbers per
 * partition. */
sl_status sl_partitions_bytes(const sl_graph *graph, size_t threads, sl_bytes *bytes) {
    const size_t count = sl_partition_count(graph->n), groups = sl_partition_groups(count);
    const int banded = graph->codec.metric == SL_METRIC_IP;
    sl_codec codec;
    SL_TRY(sl_partition_codec(graph, sl_partition_codes_at_most(graph), &codec));
    bytes->kept = partitions_bytes(&codec, count) + (groups ? partitions_bytes(&codec, groups) : 0) +
                  (banded ? count * SL_PARTITION_BANDS : 0);
    bytes->most = bytes->kept + threads * sl_kmeans_learner_bytes(&codec, count) +
                  sl_kmeans_bytes(&codec, count, threads) + sl_codec_rows_size(&codec, count) +
                  5 * count * sizeof(uint32_t) + (banded ? graph->n * sizeof(sl_measured) : 0);
    if (groups)
        bytes->most += 2 * count * sizeof(uint32_t) + sl_kmeans_bytes(&codec, groups, threads) +
                       sl_codec_rows_size(&codec, groups);
    return SL_OK;
}

double sl_partitions_comparisons(size_t n) {
    return sl_kmeans_comparisons(n, sl_partition_count(n));
}
