#include "hnsw/graph/partition.h"

#include "distance/codec/encode4.h"
#include "distance/double.h"

#include <math.h>
#include <string.h>

size_t sl_partitions_size(const sl_partitions *partitions) {
    const size_t count = partitions->count;
    if (!partitions->starts) return 0;
    return (count + 1) * sizeof *partitions->starts + sl_codec_rows_size(&partitions->codec, count) +
           (partitions->bands ? count * SL_PARTITION_BANDS : 0);
}

void sl_partitions_free(const sl_allocator *allocator, sl_partitions *partitions) {
    size_t count = partitions->count;
    SL_FREE_ARRAY(allocator, partitions->starts, count + 1);
    sl_mem_free(allocator, partitions->rows, sl_codec_rows_size(&partitions->codec, count));
    sl_mem_free(allocator, partitions->bands, count * SL_PARTITION_BANDS);
    *partitions = (sl_partitions){0};
}

sl_status sl_partition_codec(const sl_graph *graph, sl_codes codes, sl_codec *codec) {
    /* IP needs a bias too: how far a partition reaches. See sl_partitions. */
    sl_metric metric = graph->codec.metric == SL_METRIC_COSINE ? SL_METRIC_IP : SL_METRIC_L2;
    return sl_codec_init(codec, graph->codec.dim, metric, SL_F32, codes);
}

/* These are the first eight bits of sl_encode_query4. The scores are the same, but for a factor under COSINE. */
void sl_partition_encode_query(const sl_graph *graph, const void *query, sl_dtype dtype, void *buffer, float *floats,
                               sl_query_code *out) {
    const sl_codec *codec = &graph->partitions.codec;
    size_t dim = graph->codec.dim;
    sl_to_float(dtype, query, floats, dim);
    if (codec->codes == SL_CODES_F32) {
        memset(buffer, 0, sl_query_size(codec));
        memcpy(buffer, floats, dim * sizeof *floats);
        *out = (sl_query_code){.code = buffer, .scale = 1, .bias_scale = 1};
        return;
    }
    float norm2 = (float)sl_dot_double(floats, floats, dim);
    memset(buffer, 0, sl_query_size(codec));
    sl_split_byte(floats, dim, 1, buffer, out);
    out->bias_scale = graph->codec.metric == SL_METRIC_IP ? sqrtf(norm2) : 1;
}

size_t sl_partition_of(const sl_partitions *partitions, size_t node) {
    size_t first = 0, end = partitions->count;
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        *(partitions->starts[middle] <= node ? &first : &end) = middle;
    }
    return first;
}

static int bands_fall(const sl_partitions *partitions, size_t p) {
    const uint8_t *bands = partitions->bands + p * SL_PARTITION_BANDS;
    for (size_t b = 1; partitions->bands && b < SL_PARTITION_BANDS; b++)
        if (bands[b] > bands[b - 1]) return 0;
    return 1;
}

/* For F32 rows the elements are tested, for others the factor and the bias. */
static int is_row_finite(const sl_codec *codec, const uint8_t *row) {
    const sl_code_rows *rows = &codec->rows;
    for (size_t i = 0; codec->codes == SL_CODES_F32 && i < codec->dim; i++)
        if (!sl_field_is_finite(row, i * sizeof(float))) return 0;
    return sl_field_is_finite(row, rows->factor) && (!rows->bias || sl_field_is_finite(row, rows->bias));
}

/* Checks partitions of n nodes or partitions. Messages call one `what` and several `several`. */
static sl_status check_partitions(const sl_partitions *partitions, size_t n, const char *what, const char *several) {
    const sl_code_rows *rows = &partitions->codec.rows;
    const uint32_t *starts = partitions->starts;
    size_t count = partitions->count;
    if (count && (starts[0] != 0 || starts[count] > n))
        return sl_fail(SL_ECORRUPT, "%s hold numbers %u to %u of %zu; build the index again from its vectors", several,
                       starts[0], starts[count], n);
    for (size_t p = 0; p < count; p++) {
        const uint8_t *row = partitions->rows + p * rows->pitch;
        if (starts[p] > starts[p + 1] || !is_row_finite(&partitions->codec, row) || !bands_fall(partitions, p))
            return sl_fail(SL_ECORRUPT, "%s %zu is broken; build the index again from its vectors", what, p);
    }
    return SL_OK;
}

sl_status sl_partitions_check(const sl_graph *graph) {
    const sl_partitions *partitions = &graph->partitions, *groups = &graph->groups;
    SL_TRY(check_partitions(partitions, graph->n, "partition", "partitions"));
    SL_TRY(check_partitions(groups, partitions->count, "group of partitions", "groups of partitions"));
    if (groups->count && groups->starts[groups->count] != partitions->count)
        return sl_fail(SL_ECORRUPT, "groups hold %u of %zu partitions; build the index again from its vectors",
                       groups->starts[groups->count], partitions->count);
    return SL_OK;
}

/* Points into the mapping, or at a copy for an index in memory. `*out` gets the memory, even on failure. */
static sl_status take_section(sl_index *index, const sl_file_section *section, size_t size, sl_progress *progress,
                              void **out) {
    *out = NULL;
    if (index->graph.place != SL_PLACE_DRAM) {
        *out = sl_store_data(index->store, section);
        return SL_OK;
    }
    SL_TRY(sl_mem_alloc(&index->graph.allocator, size, out));
    return sl_store_copy(index->store, section, *out, progress);
}

/* The sections of partitions, or of groups. */
typedef struct sl_partition_sections {
    sl_section_kind starts, rows;
    uint64_t most;    /* the most that a file may have */
    const char *what; /* their name in messages */
} sl_partition_sections;

/* Tells the codec of `count` centroids by the bytes of their rows. I8 rows are shorter than F32. */
static sl_status codec_of_rows(const sl_graph *graph, uint64_t count, uint64_t size, sl_codec *codec) {
    SL_TRY(sl_partition_codec(graph, SL_CODES_I8, codec));
    if (graph->codec.metric != SL_METRIC_L2 || size == count * codec->rows.pitch) return SL_OK;
    return sl_partition_codec(graph, SL_CODES_F32, codec);
}

/* Loads partitions of n nodes, or groups of n partitions. */
static sl_status load_partitions(sl_index *index, const sl_partition_sections *sections, uint64_t n,
                                 sl_progress *progress, sl_partitions *out) {
    const sl_file_section *starts = sl_store_section(index->store, sections->starts);
    const sl_file_section *rows = sl_store_section(index->store, sections->rows);
    if (!starts && !rows) return SL_OK;
    sl_codec codec;
    uint64_t words = starts ? starts->size / sizeof(uint32_t) : 0;
    SL_TRY(codec_of_rows(&index->graph, words - 1, rows ? rows->size : 0, &codec));
    if (!rows || words < 2 || starts->size % sizeof(uint32_t) || words - 1 > sections->most || words - 1 > n ||
        rows->size != (words - 1) * codec.rows.pitch)
        return sl_fail(SL_ECORRUPT, "%s: %s of %llu and %llu bytes do not fit together", index->store->path,
                       sections->what, (unsigned long long)(starts ? starts->size : 0),
                       (unsigned long long)(rows ? rows->size : 0));
    void *block;
    *out = (sl_partitions){.count = (size_t)words - 1, .codec = codec};
    sl_status status = take_section(index, starts, (size_t)starts->size, progress, &block);
    out->starts = block;
    SL_TRY(status);
    status = take_section(index, rows, sl_codec_rows_size(&codec, out->count), progress, &block);
    out->codec.rows.base = out->rows = block;
    return status;
}

static sl_status load_bands(sl_index *index, sl_progress *progress, sl_partitions *out) {
    const sl_file_section *bands = sl_store_section(index->store, SL_SECTION_PARTITION_BANDS);
    size_t size = out->count * SL_PARTITION_BANDS;
    if (!bands) return SL_OK;
    if (index->graph.codec.metric != SL_METRIC_IP || bands->size != size || !size)
        return sl_fail(SL_ECORRUPT, "%s: %llu bytes of bands do not fit %zu partitions of metric %s",
                       index->store->path, (unsigned long long)bands->size, out->count,
                       sl_metric_name(index->graph.codec.metric));
    void *block;
    sl_status status = take_section(index, bands, size, progress, &block);
    out->bands = block;
    if (block) out->band_bits = SL_BAND_BITS;
    return status;
}

sl_status sl_partitions_load(sl_index *index, sl_progress *progress) {
    static const sl_partition_sections partitions = {SL_SECTION_PARTITION_STARTS, SL_SECTION_PARTITION_ROWS,
                                                     SL_MAX_PARTITIONS, "partitions"};
    static const sl_partition_sections groups = {SL_SECTION_GROUP_STARTS, SL_SECTION_GROUP_ROWS, SL_MAX_GROUPS,
                                                 "groups of partitions"};
    sl_graph *graph = &index->graph;
    SL_TRY(load_partitions(index, &partitions, index->store->header.n, progress, &graph->partitions));
    SL_TRY(load_partitions(index, &groups, graph->partitions.count, progress, &graph->groups));
    if (graph->groups.count && graph->groups.codec.codes != graph->partitions.codec.codes)
        return sl_fail(SL_ECORRUPT, "%s: partitions have codes %s and their groups codes %s", index->store->path,
                       sl_codes_name(graph->partitions.codec.codes), sl_codes_name(graph->groups.codec.codes));
    return load_bands(index, progress, &graph->partitions);
}
