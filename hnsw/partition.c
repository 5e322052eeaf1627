#include "hnsw/graph.h"

#include <math.h>
#include <string.h>

void sl_partitions_free(const sl_allocator *allocator, sl_partitions *partitions) {
    size_t count = partitions->count;
    sl_mem_free(allocator, partitions->starts, (count + 1) * sizeof *partitions->starts);
    sl_mem_free(allocator, partitions->rows, sl_codec_rows_size(&partitions->codec, count));
    *partitions = (sl_partitions){0};
}

sl_status sl_partition_codec(const sl_index *index, sl_codec *codec) {
    /* Under IP too with a bias, which then says how far a partition reaches; see sl_partitions. */
    sl_metric metric = index->codec.metric == SL_METRIC_COSINE ? SL_METRIC_IP : SL_METRIC_L2;
    return sl_codec_init(codec, index->codec.dim, metric, SL_F32, SL_CODES_I8);
}

/* By floats, of which only the direction counts but under L2. */
void sl_partition_ask(const sl_index *index, const void *query, sl_dtype dtype, void *buffer, float *floats,
                      sl_query_code *out) {
    size_t dim = index->codec.dim;
    float norm2;
    sl_to_float(dtype, query, floats, dim);
    sl_encode_query(&index->partitions.codec, floats, SL_F32, buffer, floats + dim, out, &norm2);
    if (index->codec.metric == SL_METRIC_IP) out->bias_scale = sqrtf(norm2);
}

sl_status sl_partitions_check(const sl_index *index) {
    const sl_partitions *partitions = &index->partitions;
    const sl_code_rows *rows = &partitions->codec.rows;
    const uint32_t *starts = partitions->starts;
    size_t count = partitions->count;
    if (count && (starts[0] != 0 || starts[count] > index->n))
        return sl_fail(SL_ECORRUPT, "partitions hold vectors %u to %u; build the index again from its vectors",
                       starts[0], starts[count]);
    for (size_t p = 0; p < count; p++) {
        const uint8_t *row = partitions->rows + p * rows->pitch;
        if (starts[p] > starts[p + 1] || !sl_field_is_finite(row, rows->factor) ||
            (rows->bias && !sl_field_is_finite(row, rows->bias)))
            return sl_fail(SL_ECORRUPT, "partition %zu is broken; build the index again from its vectors", p);
    }
    return SL_OK;
}

static sl_status copy(sl_index *index, const sl_file_section *starts, const sl_file_section *rows,
                      sl_progress *progress) {
    sl_partitions *partitions = &index->partitions;
    void *block;
    SL_TRY(sl_mem_alloc(&index->allocator, (size_t)starts->size, &block));
    partitions->starts = block;
    SL_TRY(sl_mem_alloc(&index->allocator, sl_codec_rows_size(&partitions->codec, partitions->count), &block));
    partitions->rows = block;
    SL_TRY(sl_store_copy(index->store, starts, partitions->starts, progress));
    return sl_store_copy(index->store, rows, partitions->rows, progress);
}

sl_status sl_partitions_load(sl_index *index, sl_progress *progress) {
    sl_partitions *partitions = &index->partitions;
    const sl_file_section *starts = sl_store_section(index->store, SL_SECTION_PARTITION_STARTS);
    const sl_file_section *rows = sl_store_section(index->store, SL_SECTION_PARTITION_ROWS);
    if (!starts && !rows) return SL_OK;
    sl_codec codec;
    SL_TRY(sl_partition_codec(index, &codec));
    uint64_t words = starts ? starts->size / sizeof(uint32_t) : 0, n = index->store->header.n;
    if (!rows || words < 2 || starts->size % sizeof(uint32_t) || words - 1 > SL_MAX_PARTITIONS || words - 1 > n ||
        rows->size != (words - 1) * codec.rows.pitch)
        return sl_fail(SL_ECORRUPT, "%s: partitions of %llu and %llu bytes do not fit together", index->store->path,
                       (unsigned long long)(starts ? starts->size : 0), (unsigned long long)(rows ? rows->size : 0));
    partitions->count = (size_t)words - 1;
    partitions->codec = codec;
    if (index->place == SL_PLACE_DRAM) {
        SL_TRY(copy(index, starts, rows, progress));
    } else {
        partitions->starts = (uint32_t *)(uintptr_t)sl_store_data(index->store, starts);
        partitions->rows = (uint8_t *)(uintptr_t)sl_store_data(index->store, rows);
    }
    partitions->codec.rows.base = partitions->rows;
    return SL_OK;
}
