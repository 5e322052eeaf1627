#include "base/params.h"
#include "hnsw/idle.h"
#include "hnsw/live.h"
#include "hnsw/placed.h"
#include "hnsw/settings.h"
#include "hnsw/tier.h"

#include <string.h>

void sl_index_params_init_sized(sl_index_params *params, size_t struct_size) {
    const sl_index_params mine = {.struct_size = sizeof mine,
                                  .metric = SL_METRIC_COSINE,
                                  .dtype = SL_F32,
                                  .codes = SL_CODES_I8,
                                  .refine = SL_REFINE_NONE,
                                  .m = 16,
                                  .ef_construction = 200,
                                  .seed = 1};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

sl_entry sl_entry_in(const sl_index *index, const sl_upper *upper) {
    uint64_t word = __atomic_load_n(&index->entry, __ATOMIC_ACQUIRE);
    uint32_t level = (uint32_t)(word >> 32), low = (uint32_t)word;
    if (level == 0) return (sl_entry){0, SL_NONE, low};
    return (sl_entry){level, low, upper->nodes[low]};
}

sl_entry sl_entry_get(const sl_index *index) {
    return sl_entry_in(index, &index->upper);
}

void sl_entry_set(sl_index *index, uint32_t level, uint32_t slot_or_node) {
    __atomic_store_n(&index->entry, (uint64_t)level << 32 | slot_or_node, __ATOMIC_RELEASE);
    sl_live_entry(index);
}

static sl_status check_params(const sl_index_params *p) {
    if (p->m < 2 || p->m > SL_MAX_M) return sl_fail(SL_EINVAL, "m is %zu; give 2 to %u", p->m, SL_MAX_M);
    if (p->ef_construction < p->m || p->ef_construction > SL_MAX_EF)
        return sl_fail(SL_EINVAL, "ef_construction is %zu; give m (%zu) to %u", p->ef_construction, p->m, SL_MAX_EF);
    if ((unsigned)p->refine > SL_REFINE_I16)
        return sl_fail(SL_EINVAL, "refine is %d; give SL_REFINE_NONE, F32, BF16 or I16", (int)p->refine);
    if (p->refine == SL_REFINE_NONE) return SL_OK;
    if (!sl_dtype_is_float(p->dtype))
        return sl_fail(SL_EINVAL, "%s vectors are kept exactly and need no refine tier; use none",
                       sl_dtype_name(p->dtype));
    if (p->codes == SL_CODES_F32)
        return sl_fail(SL_EINVAL, "codes f32 already hold the vectors; use refine none, or codes i8 or i16");
    if (p->codes == SL_CODES_I4 && p->refine == SL_REFINE_BF16 && !sl_coarse_wanted(p->dim, p->metric, p->dtype))
        return sl_fail(SL_EINVAL, "codes i4 keep 12 bits an element, and bf16 would hold hardly more; use refine none, "
                                  "i16 or f32");
    return SL_OK;
}

/* F32 and BF16 rows are the bare elements, the latter rounded up to 4 bytes; I16 rows are those of a codec. */
static sl_status set_refine(sl_index *index) {
    size_t dim = index->codec.dim;
    switch (index->refine) {
    case SL_REFINE_F32:
        index->refine_pitch = dim * sizeof(float);
        break;
    case SL_REFINE_BF16:
        index->refine_pitch = sl_round_up(dim * sizeof(uint16_t), 4);
        break;
    case SL_REFINE_I16:
        SL_TRY(sl_codec_init(&index->refine_codec, dim, SL_METRIC_IP, SL_F32, SL_CODES_I16));
        index->refine_pitch = index->refine_codec.rows.pitch;
        break;
    case SL_REFINE_NONE:
        break;
    }
    return SL_OK;
}

sl_status sl_index_new(const sl_index_params *params, sl_index **out) {
    *out = NULL;
    SL_TRY(check_params(params));
    sl_allocator allocator = sl_allocator_of(params->allocator);
    void *block;
    SL_TRY(sl_mem_alloc(&allocator, sizeof(sl_index), &block));
    sl_index *index = block;
    *index = (sl_index){.allocator = allocator,
                        .layer0 = allocator,
                        .log = params->log,
                        .log_ctx = params->log_ctx,
                        .kernels = sl_kernels_best(),
                        .refine = params->refine,
                        .m = params->m,
                        .m0 = 2 * params->m,
                        .link_step = 2 * params->m,
                        .ef_construction = params->ef_construction,
                        .seed = params->seed,
                        .place = SL_PLACE_DRAM};
    sl_status status;
    SL_TRY_GOTO(sl_walked_init(index, params), fail);
    SL_TRY_GOTO(set_refine(index), fail);
    SL_TRY_GOTO(sl_idle_init(index), fail);
    *out = index;
    return SL_OK;
fail:
    sl_mem_free(&allocator, index, sizeof *index);
    return status;
}

sl_status sl_index_create(const sl_index_params *params, sl_index **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    sl_index_params mine;
    sl_index_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_index_params_init"));
    sl_index *index;
    SL_TRY(sl_index_new(&mine, &index));
    sl_status status = sl_placed_init(index, mine.numa, mine.numa_node, mine.numa_ops);
    if (status == SL_OK)
        *out = index;
    else
        sl_index_free(index);
    return status;
}

size_t sl_refine_bytes(const sl_index *index, size_t n) {
    return n * index->refine_pitch + SL_ROW_STEP;
}

size_t sl_rest_bytes(const sl_index *index, size_t n) {
    return index->codec.rest.pitch ? n * index->codec.rest.pitch + SL_ROW_STEP : 0;
}

static size_t links_bytes(const sl_index *index, size_t n) {
    return n * index->m0 * sizeof(uint32_t);
}

void sl_index_release_arrays(sl_index *index) {
    const sl_allocator *allocator = &index->allocator, *layer0 = &index->layer0;
    if (index->place != SL_PLACE_DRAM) {
        /* Everything but the id map lies in the mapping. */
        sl_live_close(index->live);
        index->live = NULL;
        index->ids = NULL;
        index->id_width = 0;
        sl_ids_free(index);
    } else {
        sl_partitions_free(allocator, &index->partitions);
        sl_partitions_free(allocator, &index->groups);
        sl_ids_free(index);
        sl_mem_free(layer0, index->rows, sl_codec_rows_size(&index->codec, index->capacity));
        sl_mem_free(layer0, index->rest_rows, sl_rest_bytes(index, index->capacity));
        sl_mem_free(layer0, index->coarse_rows, sl_coarse_bytes(index, index->capacity));
        sl_mem_free(allocator, index->projection, sl_projection_bytes(index));
        sl_mem_free(layer0, index->links, links_bytes(index, index->capacity));
        sl_mem_free(layer0, index->refine_rows, sl_refine_bytes(index, index->capacity));
        sl_mem_free(layer0, index->dead, sl_dead_bytes(index->capacity));
        sl_upper_free(index);
    }
    sl_store_close(index->store, allocator);
    index->store = NULL;
}

void sl_index_free(sl_index *index) {
    if (!index) return;
    if (index->live && sl_live_checkpoint(index->live) != SL_OK && index->log)
        index->log(index->log_ctx, SL_LOG_WARN, sl_last_error());
    sl_tier_free(index);
    sl_idle_free(index);
    sl_index_release_arrays(index);
    sl_settings_free(index);
    sl_placed_free(index);
    sl_allocator allocator = index->allocator;
    sl_origin_free(index->origin, &allocator);
    sl_mem_free(&allocator, index, sizeof *index);
}

sl_status sl_check_stride(const void *vectors, sl_dtype dtype, size_t dim, size_t stride) {
    size_t size = sl_dtype_size(dtype);
    if (stride && stride < dim * size)
        return sl_fail(SL_EINVAL, "stride of %zu bytes is less than a row of %zu", stride, dim * size);
    if ((uintptr_t)vectors % size || stride % size)
        return sl_fail(SL_EINVAL, "rows of %s must lie at multiples of %zu bytes; copy them", sl_dtype_name(dtype),
                       size);
    return SL_OK;
}

sl_status sl_index_writable(const sl_index *index) {
    if (index->live) return sl_live_check_owner(index->live);
    if (index->place == SL_PLACE_DRAM) return SL_OK;
    return sl_fail(SL_EREADONLY,
                   "the index is mapped from its file and read-only; open it with place dram to change it, "
                   "or with writable set where the file has room");
}

/* The arrays of layer 0 that a larger capacity needs, all of them or none. */
static sl_status move_arrays(sl_index *index, size_t capacity) {
    const sl_allocator *allocator = &index->layer0;
    size_t old_rows = sl_codec_rows_size(&index->codec, index->capacity);
    size_t new_rows = sl_codec_rows_size(&index->codec, capacity), bytes;
    void *rows, *rest = NULL, *coarse = NULL, *links = NULL, *refine = NULL, *dead = NULL;
    sl_status status;
    if (!new_rows || !sl_mul(capacity, index->m0 * sizeof(uint32_t), &bytes) ||
        !sl_mul(capacity, index->refine_pitch, &bytes) || bytes > SIZE_MAX - SL_ROW_STEP ||
        !sl_mul(capacity, index->codec.rest.pitch, &bytes) || bytes > SIZE_MAX - SL_ROW_STEP ||
        !sl_mul(capacity, index->coarse.codec.rows.pitch, &bytes) || bytes > SIZE_MAX - SL_ROW_STEP)
        return sl_fail(SL_ENOMEM, "%zu vectors of %zu elements do not fit the address space", capacity,
                       index->codec.dim);
    SL_TRY(sl_mem_alloc(allocator, new_rows, &rows));
    if (index->codec.rest.pitch) SL_TRY_GOTO(sl_mem_alloc(allocator, sl_rest_bytes(index, capacity), &rest), fail);
    if (sl_coarse_bytes(index, capacity))
        SL_TRY_GOTO(sl_mem_alloc(allocator, sl_coarse_bytes(index, capacity), &coarse), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, links_bytes(index, capacity), &links), fail);
    if (index->refine_pitch) SL_TRY_GOTO(sl_mem_alloc(allocator, sl_refine_bytes(index, capacity), &refine), fail);
    if (index->dead) SL_TRY_GOTO(sl_mem_alloc(allocator, sl_dead_bytes(capacity), &dead), fail);
    SL_TRY_GOTO(sl_ids_resize(index, capacity), fail);

    if (index->n) {
        memcpy(rows, index->rows, index->n * index->codec.rows.pitch);
        if (rest) memcpy(rest, index->rest_rows, index->n * index->codec.rest.pitch);
        if (coarse) memcpy(coarse, index->coarse_rows, index->n * index->coarse.codec.rows.pitch);
        memcpy(links, index->links, links_bytes(index, index->n));
        if (refine) memcpy(refine, index->refine_rows, index->n * index->refine_pitch);
        if (dead) memcpy(dead, index->dead, sl_dead_bytes(index->n));
    }
    memset((char *)links + links_bytes(index, index->n), 0xff, links_bytes(index, capacity - index->n));
    sl_mem_free(allocator, index->rows, old_rows);
    sl_mem_free(allocator, index->rest_rows, sl_rest_bytes(index, index->capacity));
    sl_mem_free(allocator, index->coarse_rows, sl_coarse_bytes(index, index->capacity));
    sl_mem_free(allocator, index->links, links_bytes(index, index->capacity));
    sl_mem_free(allocator, index->refine_rows, sl_refine_bytes(index, index->capacity));
    sl_mem_free(allocator, index->dead, sl_dead_bytes(index->capacity));
    index->rows = rows;
    index->codec.rows.base = rows;
    index->rest_rows = rest;
    index->codec.rest.base = rest;
    index->coarse_rows = coarse;
    index->coarse.codec.rows.base = coarse;
    index->links = links;
    index->refine_rows = refine;
    index->dead = dead;
    index->capacity = capacity;
    return SL_OK;
fail:
    sl_mem_free(allocator, rows, new_rows);
    sl_mem_free(allocator, rest, sl_rest_bytes(index, capacity));
    sl_mem_free(allocator, coarse, sl_coarse_bytes(index, capacity));
    sl_mem_free(allocator, links, links_bytes(index, capacity));
    sl_mem_free(allocator, refine, sl_refine_bytes(index, capacity));
    sl_mem_free(allocator, dead, sl_dead_bytes(capacity));
    return status;
}

sl_status sl_index_reserve(sl_index *index, size_t n) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_index_writable(index));
    if (n > SL_MAX_VECTORS) return sl_fail(SL_ELIMIT, "%zu vectors; an index holds up to %u", n, SL_MAX_VECTORS);
    if (n > index->capacity && index->live)
        return sl_fail(SL_ELIMIT,
                       "%s has room for %zu vectors, not for %zu; save the index to another file with more room",
                       index->store->path, index->capacity, n);
    return n > index->capacity ? move_arrays(index, n) : SL_OK;
}

size_t sl_index_size(const sl_index *index) {
    sl_index view;
    return index ? sl_live_count(sl_live_seen(index, &view)) : 0;
}

/* To the part it belongs to; of records, what each holds. */
static void add_section(const sl_index *index, uint32_t kind, uint64_t size, sl_index_stats *stats) {
    switch ((sl_section_kind)kind) {
    case SL_SECTION_CODES:
    case SL_SECTION_REST:
    case SL_SECTION_COARSE:
    case SL_SECTION_PROJECTION:
        stats->bytes_codes += size;
        break;
    case SL_SECTION_LINKS:
        stats->bytes_links += size;
        break;
    case SL_SECTION_IDS:
        stats->bytes_ids += size;
        break;
    case SL_SECTION_RECORDS:
        stats->bytes_links += index->n * index->m0 * sizeof(uint32_t);
        stats->bytes_ids += index->n * sizeof(uint64_t);
        stats->bytes_codes += size - index->n * (index->m0 * sizeof(uint32_t) + sizeof(uint64_t));
        break;
    case SL_SECTION_REFINE:
        stats->bytes_refine += size;
        break;
    case SL_SECTION_UPPER_NODES:
    case SL_SECTION_UPPER_START:
    case SL_SECTION_UPPER_LINKS:
        stats->bytes_upper += size;
        break;
    case SL_SECTION_PARTITION_STARTS:
    case SL_SECTION_PARTITION_ROWS:
    case SL_SECTION_PARTITION_BANDS:
    case SL_SECTION_GROUP_STARTS:
    case SL_SECTION_GROUP_ROWS:
        stats->bytes_partitions += size;
        break;
    case SL_SECTION_TUNED:
    case SL_SECTION_LIVE:
    case SL_SECTION_SUMS:
    case SL_SECTION_PAGE_SUMS:
    case SL_SECTION_DEAD:
        break;
    }
}

sl_status sl_index_get_stats(const sl_index *index, sl_index_stats *out) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_params_check_out(out, "sl_index_stats"));
    sl_index view;
    index = sl_live_seen(index, &view);
    sl_description file;
    sl_index_stats mine = {.n = sl_live_count(index),
                           .dim = index->codec.dim,
                           .m = index->m,
                           .ef_construction = index->ef_construction,
                           .seed = index->seed,
                           .metric = index->codec.metric,
                           .dtype = index->codec.dtype,
                           .codes = index->codes,
                           .refine = index->refine,
                           .place = index->place,
                           .max_level = index->n ? sl_entry_get(index).level : 0,
                           .quant_error_max = index->quant_error.max,
                           .isa = sl_isa_name(index->kernels->isa),
                           .tuned = index->tuned_count,
                           .deleted = index->dead_count,
                           .partitions = index->partitions.count,
                           .groups = index->groups.count,
                           .room = index->live || index->facts ? index->capacity : 0,
                           .layout = index->record.pitch ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS};
    sl_describe_own(index, &file);
    for (size_t i = 0; i < file.count; i++)
        add_section(index, file.sections[i].kind, file.sections[i].size, &mine);
    mine.bytes_total = sl_store_file_size(file.sections, file.count);
    if (index->quant_error.count) mine.quant_error_mean = index->quant_error.sum / (double)index->quant_error.count;
    sl_params_out(out, &mine, sizeof mine);
    return SL_OK;
}
