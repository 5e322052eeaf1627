/* What a file of an index is made of. */
#include "hnsw/graph/publish.h"
#include "hnsw/graph/record.h"
#include "hnsw/search/settings.h"

#include <math.h>

uint32_t sl_file_id_width(const sl_index *index) {
    if (index->id_width == 0) return 0;
    return index->id_width == 4 || index->next_id <= (uint64_t)UINT32_MAX + 1 ? 4 : 8;
}

/* ---------------------------------------------------------------------------------------------------------------
 * As small as it can be
 * ------------------------------------------------------------------------------------------------------------- */

static void put(sl_description *out, sl_section_kind kind, uint32_t flags, const void *data, uint64_t size) {
    out->sections[out->count++] = (sl_section_source){(uint32_t)kind, flags, data, size, 0, NULL};
}

/* Rows of `row` bytes, `size` of which, and zeros, lie `step` bytes from one another: as they lie, or brought together
 * on the way. */
static void put_each(sl_description *out, sl_section_kind kind, const void *at, size_t step, size_t size, size_t row,
                     const sl_described_as *as) {
    put(out, kind, SL_SECTION_REQUIRED, at, out->header.n * row);
    if (step == row && size == row) return;
    sl_split_rows *rows = &out->rows[out->row_count++];
    *rows = (sl_split_rows){.count = 1, .row = row, .window = as->window};
    rows->parts[0] = (sl_part){(uint8_t *)(uintptr_t)at, step, size, 0};
    out->sections[out->count - 1].rows = rows;
}

static void put_records(const sl_index *index, const sl_described_as *as, sl_description *out) {
    sl_record record = sl_record_of(index);
    out->header.record_pitch = (uint32_t)record.pitch;
    /* From records too: what lies between the parts is no part of them, and zero in the file. */
    sl_split_rows *rows = &out->rows[out->row_count++];
    *rows = (sl_split_rows){.count = SL_RECORD_PARTS, .row = record.pitch, .window = as->window};
    sl_record_parts(index, &record, as->ids, as->sums, rows->parts);
    put(out, SL_SECTION_RECORDS, SL_SECTION_REQUIRED, NULL, index->n * record.pitch);
    out->sections[out->count - 1].rows = rows;
}

static void put_layer0(const sl_index *index, const sl_described_as *as, sl_description *out) {
    const sl_codec *codec = &index->codec;
    int records = as->layout == SL_LAYOUT_RECORDS;
    if (records) put_records(index, as, out);
    if (!records || !sl_record_holds(index, SL_SECTION_CODES))
        put_each(out, SL_SECTION_CODES, index->rows, codec->rows.pitch, codec->rows.size, index->row_pitch, as);
    if (codec->rest.pitch && !records)
        put_each(out, SL_SECTION_REST, index->rest_rows, codec->rest.pitch, codec->rest.size, index->rest_pitch, as);
    if (index->coarse.codec.rows.pitch && index->n) {
        put(out, SL_SECTION_COARSE, SL_SECTION_REQUIRED, index->coarse_rows, index->n * index->coarse.codec.rows.pitch);
        put(out, SL_SECTION_PROJECTION, SL_SECTION_REQUIRED, index->projection,
            sl_coarse_projection_size(&index->coarse));
    }
    const size_t word = sizeof(uint32_t), links = index->m0 * word;
    if (!records) put_each(out, SL_SECTION_LINKS, index->links, index->link_step * word, links, links, as);
    if (!records && as->id_width) {
        size_t step = as->ids ? as->id_width : sl_id_step(index);
        put_each(out, SL_SECTION_IDS, as->ids ? as->ids : index->ids, step, as->id_width, as->id_width, as);
    }
    if (index->refine_pitch)
        put(out, SL_SECTION_REFINE, SL_SECTION_REQUIRED, index->refine_rows, index->n * index->refine_pitch);
    if (index->dead_count) put(out, SL_SECTION_DEAD, SL_SECTION_REQUIRED, index->dead, sl_dead_bytes(index->n));
}

static void put_upper(const sl_index *index, sl_description *out) {
    const sl_upper *upper = &index->upper;
    const size_t word = sizeof(uint32_t);
    if (!upper->count) return;
    put(out, SL_SECTION_UPPER_NODES, SL_SECTION_REQUIRED, upper->nodes, upper->count * word);
    put(out, SL_SECTION_UPPER_START, SL_SECTION_REQUIRED, upper->start, (upper->count + 1) * word);
    put(out, SL_SECTION_UPPER_LINKS, SL_SECTION_REQUIRED, upper->links, upper->rows * index->m * word);
}

static void put_partitions(const sl_partitions *partitions, sl_section_kind starts, sl_section_kind rows,
                           sl_description *out) {
    if (!partitions->count) return;
    put(out, starts, 0, partitions->starts, (partitions->count + 1) * sizeof(uint32_t));
    put(out, rows, 0, partitions->rows, partitions->count * partitions->codec.rows.pitch);
}

static void put_optional(const sl_index *index, sl_description *out) {
    put_partitions(&index->partitions, SL_SECTION_PARTITION_STARTS, SL_SECTION_PARTITION_ROWS, out);
    put_partitions(&index->groups, SL_SECTION_GROUP_STARTS, SL_SECTION_GROUP_ROWS, out);
    if (index->partitions.band_bits)
        put(out, SL_SECTION_PARTITION_BANDS, 0, index->partitions.bands, index->partitions.count * SL_PARTITION_BANDS);
    if (index->tuned_count) put(out, SL_SECTION_TUNED, 0, index->tuned, index->tuned_count * sizeof *index->tuned);
}

void sl_describe(const sl_index *index, const sl_described_as *as, sl_description *out) {
    sl_entry entry = index->n ? sl_entry_get(index) : (sl_entry){0, SL_NONE, 0};
    out->count = out->row_count = 0;
    out->header = (sl_file_header){.n = index->n,
                                   .dim = (uint32_t)index->codec.dim,
                                   .metric = (uint8_t)index->codec.metric,
                                   .dtype = (uint8_t)index->codec.dtype,
                                   .codes = (uint8_t)index->codes,
                                   .refine = (uint8_t)index->refine,
                                   .m = (uint32_t)index->m,
                                   .ef_construction = (uint32_t)index->ef_construction,
                                   .seed = index->seed,
                                   .row_pitch = (uint32_t)index->row_pitch,
                                   .refine_pitch = (uint32_t)index->refine_pitch,
                                   .id_width = as->id_width,
                                   .entry_node = entry.node,
                                   .entry_slot = entry.slot,
                                   .max_level = entry.level,
                                   .upper_count = (uint32_t)index->upper.count,
                                   .upper_rows = (uint32_t)index->upper.rows,
                                   .next_id = index->next_id,
                                   .quant_error_sum = index->quant_error.sum,
                                   .quant_error_max = index->quant_error.max,
                                   .quant_error_count = index->quant_error.count,
                                   .dead_count = index->dead_count};
    put_layer0(index, as, out);
    put_upper(index, out);
    put_optional(index, out);
}

void sl_describe_own(const sl_index *index, sl_description *out) {
    int records = index->record.pitch != 0;
    sl_described_as as = {.layout = records ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS,
                          .id_width = records ? sizeof(uint64_t) : sl_file_id_width(index)};
    sl_describe(index, &as, out);
}

/* ---------------------------------------------------------------------------------------------------------------
 * With room
 * ------------------------------------------------------------------------------------------------------------- */

/* A node stands on level 1 with probability 1/m and is on 1/(m - 1) upper levels in the mean; ten standard deviations
 * more are never met. */
sl_extent sl_room_for(const sl_index *index, size_t n) {
    double count = (double)n, p = 1 / (double)index->m, mean = p / (1 - p);
    double slots = count * p + 10 * sqrt(count * p * (1 - p)) + 64;
    double rows = count * mean + 10 * sqrt(count * p) / (1 - p) + SL_MAX_LEVEL;
    size_t most = SL_NONE - 1;
    sl_extent room = {n, slots < count ? (size_t)slots : n, rows < (double)most ? (size_t)rows : most};
    if (room.slots < index->upper.count) room.slots = index->upper.count;
    if (room.rows < index->upper.rows) room.rows = index->upper.rows;
    return room;
}

/* Bytes of a section that follows those described before it. */
static uint64_t room_of(const sl_index *index, sl_section_kind kind, sl_extent room, const sl_description *before) {
    const uint64_t word = sizeof(uint32_t);
    switch (kind) {
    case SL_SECTION_CODES:
        return room.n * index->row_pitch;
    case SL_SECTION_REST:
        return room.n * index->rest_pitch;
    case SL_SECTION_COARSE:
        return room.n * index->coarse.codec.rows.pitch;
    case SL_SECTION_PROJECTION:
        return index->coarse.codec.rows.pitch ? sl_coarse_projection_size(&index->coarse) : 0;
    case SL_SECTION_LINKS:
        return room.n * index->m0 * word;
    case SL_SECTION_IDS:
        return room.n * sizeof(uint64_t);
    case SL_SECTION_REFINE:
        return room.n * index->refine_pitch;
    case SL_SECTION_UPPER_NODES:
        return room.slots * word;
    case SL_SECTION_UPPER_START:
        return (room.slots + 1) * word;
    case SL_SECTION_UPPER_LINKS:
        return room.rows * index->m * word;
    case SL_SECTION_DEAD:
        return sl_dead_bytes(room.n);
    case SL_SECTION_TUNED:
        return SL_MAX_TUNED * sizeof(sl_tuned_record);
    case SL_SECTION_SUMS:
        return room.n * word;
    case SL_SECTION_RECORDS:
        return room.n * sl_record_of(index).pitch;
    case SL_SECTION_LIVE:
        return SL_LIVE_SIZE;
    case SL_SECTION_PAGE_SUMS:
        return sl_page_sums_size(sl_store_file_size(before->sections, before->count));
    case SL_SECTION_PARTITION_STARTS:
    case SL_SECTION_PARTITION_ROWS:
    case SL_SECTION_PARTITION_BANDS:
    case SL_SECTION_GROUP_STARTS:
    case SL_SECTION_GROUP_ROWS:
        return 0;
    }
    return 0;
}

/* The section of a kind among those described, made where there is none. */
static sl_section_source *section_for(sl_description *out, sl_section_kind kind) {
    for (size_t i = 0; i < out->count; i++)
        if (out->sections[i].kind == (uint32_t)kind) return &out->sections[i];
    put(out, kind, 0, NULL, 0);
    return &out->sections[out->count - 1];
}

static void put_sums(const sl_index *index, const sl_described_as *as, sl_description *out) {
    const size_t word = sizeof(uint32_t);
    size_t step = as->sums ? word : index->sum_step;
    put_each(out, SL_SECTION_SUMS, as->sums ? as->sums : index->sums, step, word, word, as);
}

void sl_describe_writable(const sl_index *index, sl_extent room, const sl_described_as *as, const uint8_t *live,
                          sl_description *out) {
    /* The last is SL_SECTION_LIVE, so that the file ends with a whole line. */
    const sl_section_kind kinds[] = {
        SL_SECTION_RECORDS,    SL_SECTION_CODES,       SL_SECTION_REST,        SL_SECTION_COARSE,
        SL_SECTION_PROJECTION, SL_SECTION_LINKS,       SL_SECTION_IDS,         SL_SECTION_REFINE,
        SL_SECTION_DEAD,       SL_SECTION_UPPER_NODES, SL_SECTION_UPPER_START, SL_SECTION_UPPER_LINKS,
        SL_SECTION_TUNED,      SL_SECTION_SUMS,        SL_SECTION_PAGE_SUMS,   SL_SECTION_LIVE};
    int records = as->layout == SL_LAYOUT_RECORDS;
    sl_describe(index, as, out);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint64_t bytes = room_of(index, kinds[i], room, out);
        if (!bytes || (kinds[i] == SL_SECTION_RECORDS ? !records : records && sl_record_holds(index, kinds[i])))
            continue;
        if (kinds[i] == SL_SECTION_SUMS) put_sums(index, as, out);
        if (kinds[i] == SL_SECTION_LIVE) put(out, SL_SECTION_LIVE, 0, live, SL_LIVE_SIZE);
        sl_section_source *section = section_for(out, kinds[i]);
        if (kinds[i] == SL_SECTION_DEAD && !section->size && as->dead) {
            section->data = as->dead;
            section->size = sl_dead_bytes(index->n);
        }
        section->flags = SL_SECTION_REQUIRED | SL_SECTION_CHANGING;
        section->room = bytes;
    }
    out->header.room = room.n;
    out->header.upper_room = room.slots;
    out->header.rows_room = room.rows;
}
