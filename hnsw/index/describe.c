/* The sections of an index's file, in their order. */
#include "hnsw/index/describe.h"

#include "hnsw/graph/arrays.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/record.h"
#include "hnsw/search/settings.h"

#include <math.h>
#include <string.h>

uint32_t sl_file_id_width(const sl_graph *graph) {
    const size_t width = graph->arrays[SL_ARRAY_IDS].width;
    if (width == 0) return 0;
    return width == 4 || graph->next_id <= (uint64_t)UINT32_MAX + 1 ? 4 : 8;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The smallest file
 * ------------------------------------------------------------------------------------------------------------- */

static void add_section(sl_description *out, sl_section_kind kind, uint32_t flags, const void *data, uint64_t size) {
    out->sections[out->count++] =
        (sl_section_source){.kind = (uint32_t)kind, .flags = flags, .data = data, .size = size};
}

/* Adds a section of rows with `row` bytes each. The writer brings scattered rows together and fills in missing padding
 * with zeros. */
static void add_rows(sl_description *out, sl_section_kind kind, const sl_array *array, size_t row, uint64_t size,
                     const sl_described_as *as) {
    add_section(out, kind, SL_SECTION_REQUIRED, array->at, size);
    if (array->step == row && array->size == row) return;
    sl_split_rows *rows = &out->rows[out->row_count++];
    *rows = (sl_split_rows){.count = 1, .row = row, .window = as->window};
    rows->parts[0] = (sl_part){array->at, array->step, array->size, 0};
    out->sections[out->count - 1].rows = rows;
}

static void add_records(const sl_graph *graph, const sl_described_as *as, sl_description *out) {
    sl_record record = sl_record_of(graph);
    out->header.record_pitch = (uint32_t)record.pitch;
    /* Records are taken apart and put together again, so that the bytes between their parts are zeros. */
    sl_split_rows *rows = &out->rows[out->row_count++];
    *rows = (sl_split_rows){.row = record.pitch, .window = as->window};
    rows->count = sl_record_parts(graph, &record, as->made, rows->parts);
    add_section(out, SL_SECTION_RECORDS, SL_SECTION_REQUIRED, NULL, graph->n * record.pitch);
    out->sections[out->count - 1].rows = rows;
    /* A rank can sum only the nodes of which it has all rows. */
    if (graph->parted) out->sections[out->count - 1].parted = record.pitch;
}

/* Bytes of a row in the smallest file, or 1 for tombstones; 0: the file has no such array. */
static size_t width_in_file(const sl_graph *graph, const sl_described_as *as, sl_array_kind kind) {
    const size_t width = graph->arrays[kind].width;
    const unsigned flags = sl_array_lines[kind].flags;
    if (flags & SL_ARRAY_FILED) return 0;
    if (kind == SL_ARRAY_IDS) return as->id_width;
    if (kind == SL_ARRAY_TOMBSTONES) return graph->deleted_count != 0;
    /* The projection is learned from vectors, so an empty index has none. */
    return kind == SL_ARRAY_COARSE || (flags & SL_ARRAY_SINGLE) ? (graph->n ? width : 0) : width;
}

/* The array that the save made, or else the index's own. */
static const sl_array *array_to_save(const sl_graph *graph, const sl_described_as *as, sl_array_kind kind) {
    return as->made[kind].at ? &as->made[kind] : &graph->arrays[kind];
}

static int is_in_records(const sl_graph *graph, const sl_described_as *as, sl_array_kind kind) {
    return as->layout == SL_LAYOUT_RECORDS && sl_record_holds(graph, kind);
}

static void add_array(const sl_graph *graph, const sl_described_as *as, sl_array_kind kind, size_t width,
                      sl_description *out) {
    const sl_array_line *line = &sl_array_lines[kind];
    const sl_array *array = array_to_save(graph, as, kind);
    const uint64_t size = sl_array_size(kind, width, graph->n);
    if (line->flags & (SL_ARRAY_SINGLE | SL_ARRAY_BITS))
        add_section(out, line->section, SL_SECTION_REQUIRED, array->at, size);
    else
        add_rows(out, line->section, array, width, size, as);
    if (sl_is_parted(graph, kind)) out->sections[out->count - 1].parted = width;
}

static void add_layer0(const sl_graph *graph, const sl_described_as *as, sl_description *out) {
    if (as->layout == SL_LAYOUT_RECORDS) add_records(graph, as, out);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        size_t width = width_in_file(graph, as, kind);
        if (width && !is_in_records(graph, as, kind)) add_array(graph, as, kind, width, out);
    }
}

static void add_upper(const sl_graph *graph, sl_description *out) {
    const sl_upper *upper = &graph->upper;
    const size_t word = sizeof(uint32_t);
    if (!upper->count) return;
    add_section(out, SL_SECTION_UPPER_NODES, SL_SECTION_REQUIRED, upper->nodes, upper->count * word);
    add_section(out, SL_SECTION_UPPER_START, SL_SECTION_REQUIRED, upper->start, (upper->count + 1) * word);
    add_section(out, SL_SECTION_UPPER_LINKS, SL_SECTION_REQUIRED, upper->links, upper->rows * graph->m * word);
}

static void add_partitions(const sl_partitions *partitions, sl_section_kind starts, sl_section_kind rows,
                           sl_description *out) {
    if (!partitions->count) return;
    add_section(out, starts, 0, partitions->starts, (partitions->count + 1) * sizeof(uint32_t));
    add_section(out, rows, 0, partitions->rows, partitions->count * partitions->codec.rows.pitch);
}

static void add_optional(const sl_graph *graph, sl_description *out) {
    add_partitions(&graph->partitions, SL_SECTION_PARTITION_STARTS, SL_SECTION_PARTITION_ROWS, out);
    add_partitions(&graph->groups, SL_SECTION_GROUP_STARTS, SL_SECTION_GROUP_ROWS, out);
    if (graph->partitions.band_bits)
        add_section(out, SL_SECTION_PARTITION_BANDS, 0, graph->partitions.bands,
                    graph->partitions.count * SL_PARTITION_BANDS);
    if (graph->tuned_count)
        add_section(out, SL_SECTION_TUNED, 0, graph->tuned, graph->tuned_count * sizeof *graph->tuned);
}

void sl_describe(const sl_graph *graph, const sl_described_as *as, sl_description *out) {
    sl_entry entry = graph->n ? sl_entry_get(graph) : (sl_entry){0, SL_NONE, 0};
    out->count = out->row_count = 0;
    out->header = (sl_file_header){.n = graph->n,
                                   .dim = (uint32_t)graph->codec.dim,
                                   .metric = (uint8_t)graph->codec.metric,
                                   .dtype = (uint8_t)graph->codec.dtype,
                                   .codes = (uint8_t)graph->codes,
                                   .refine = (uint8_t)graph->refine,
                                   .m = (uint32_t)graph->m,
                                   .ef_construction = (uint32_t)graph->ef_construction,
                                   .seed = graph->seed,
                                   .row_pitch = (uint32_t)graph->arrays[SL_ARRAY_CODES].width,
                                   .refine_pitch = (uint32_t)graph->arrays[SL_ARRAY_REFINE].width,
                                   .id_width = as->id_width,
                                   .entry_node = entry.node,
                                   .entry_slot = entry.slot,
                                   .max_level = entry.level,
                                   .upper_count = (uint32_t)graph->upper.count,
                                   .upper_rows = (uint32_t)graph->upper.rows,
                                   .next_id = graph->next_id,
                                   .quant_error_sum = graph->quant_error.sum,
                                   .quant_error_max = graph->quant_error.max,
                                   .quant_error_count = graph->quant_error.count,
                                   .dead_count = graph->deleted_count,
                                   .clip = (uint8_t)sl_codec_of_walks(graph)->clip.clip,
                                   .clip_share = sl_codec_of_walks(graph)->clip.share};
    add_layer0(graph, as, out);
    if (graph->multi) add_section(out, SL_SECTION_MULTI, SL_SECTION_REQUIRED, NULL, 0);
    add_upper(graph, out);
    add_optional(graph, out);
}

void sl_describe_own(const sl_graph *graph, sl_description *out) {
    int records = graph->record.pitch != 0;
    sl_described_as as = {.layout = records ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS,
                          .id_width = records ? sizeof(uint64_t) : sl_file_id_width(graph)};
    sl_describe(graph, &as, out);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The file with room
 * ------------------------------------------------------------------------------------------------------------- */

/* A node is on level 1 with probability 1/m, and on 1/(m - 1) upper levels on average. Ten standard deviations above
 * the mean don't happen. */
sl_extent sl_room_for(const sl_graph *graph, size_t n) {
    double count = (double)n, p = 1 / (double)graph->m, mean = p / (1 - p);
    double slots = count * p + 10 * sqrt(count * p * (1 - p)) + 64;
    double rows = count * mean + 10 * sqrt(count * p) / (1 - p) + SL_MAX_LEVEL;
    size_t most = SL_NONE - 1;
    sl_extent room = {n, slots < count ? (size_t)slots : n, rows < (double)most ? (size_t)rows : most};
    if (room.slots < graph->upper.count) room.slots = graph->upper.count;
    if (room.rows < graph->upper.rows) room.rows = graph->upper.rows;
    return room;
}

/* The section of this kind; a new one if there is none. */
static sl_section_source *section_for(sl_description *out, sl_section_kind kind) {
    for (size_t i = 0; i < out->count; i++)
        if (out->sections[i].kind == (uint32_t)kind) return &out->sections[i];
    add_section(out, kind, 0, NULL, 0);
    return &out->sections[out->count - 1];
}

/* Gives a section room for `bytes`, so that it can be written in place. With 0 bytes there is no section, and the
 * function returns NULL. */
static sl_section_source *make_room_in_section(sl_description *out, sl_section_kind kind, uint64_t bytes) {
    if (!bytes) return NULL;
    sl_section_source *section = section_for(out, kind);
    section->flags = SL_SECTION_REQUIRED | SL_SECTION_CHANGING;
    section->room = bytes;
    return section;
}

/* Gives room to the arrays with the flag SL_ARRAY_FILED, or to those without. */
static void make_room_in_arrays(const sl_graph *graph, size_t n, const sl_described_as *as, int filed,
                                sl_description *out) {
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const sl_array_line *line = &sl_array_lines[kind];
        const size_t width = line->whole ? line->whole : graph->arrays[kind].width;
        if (((line->flags & SL_ARRAY_FILED) != 0) != filed || is_in_records(graph, as, kind)) continue;
        if (filed) add_array(graph, as, kind, width, out);
        sl_section_source *section = make_room_in_section(out, line->section, sl_array_size(kind, width, n));
        if (!section || section->size || !as->made[kind].at) continue;
        section->data = as->made[kind].at;
        section->size = sl_array_size(kind, width, graph->n);
    }
}

/* Puts the lives before all sections. A commit writes a file from its beginning to its end. So a reader that finds a
 * new vector in a place finds the new life of the place, too. */
static void put_lives_first(size_t room, sl_description *out) {
    if (!room) return;
    (void)make_room_in_section(out, SL_SECTION_LIFETIMES, sl_lives_room(room));
    const sl_section_source lives = out->sections[out->count - 1];
    memmove(out->sections + 1, out->sections, (out->count - 1) * sizeof lives);
    out->sections[0] = lives;
}

/* SL_SECTION_LIVE is the last section, so that the file ends with a whole line of it. */
void sl_describe_writable(const sl_graph *graph, sl_extent room, const sl_described_as *as, const uint8_t *live,
                          sl_description *out) {
    const uint64_t word = sizeof(uint32_t);
    sl_describe(graph, as, out);
    if (as->layout == SL_LAYOUT_RECORDS)
        make_room_in_section(out, SL_SECTION_RECORDS, room.n * sl_record_of(graph).pitch);
    make_room_in_arrays(graph, room.n, as, 0, out);
    make_room_in_section(out, SL_SECTION_UPPER_NODES, room.slots * word);
    make_room_in_section(out, SL_SECTION_UPPER_START, (room.slots + 1) * word);
    make_room_in_section(out, SL_SECTION_UPPER_LINKS, room.rows * graph->m * word);
    make_room_in_section(out, SL_SECTION_TUNED, SL_MAX_TUNED * sizeof(sl_tuned_record));
    make_room_in_arrays(graph, room.n, as, 1, out);
    put_lives_first(room.n, out);
    make_room_in_section(out, SL_SECTION_PAGE_SUMS, sl_page_sums_size(sl_store_file_size(out->sections, out->count)));
    add_section(out, SL_SECTION_LIVE, 0, live, SL_LIVE_SIZE);
    make_room_in_section(out, SL_SECTION_LIVE, SL_LIVE_SIZE);
    out->header.room = room.n;
    out->header.upper_room = room.slots;
    out->header.rows_room = room.rows;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Counting
 * ------------------------------------------------------------------------------------------------------------- */

/* The counted sections that array_table.def doesn't list. */
static const struct {
    sl_section_kind section;
    size_t in_stats, in_plan;
} parts[] = {
#define PART(section, member)                                                                                          \
    { SL_SECTION_##section, offsetof(sl_index_stats, member), offsetof(sl_plan, member) }
    PART(UPPER_NODES, bytes_upper),         PART(UPPER_START, bytes_upper),
    PART(UPPER_LINKS, bytes_upper),         PART(PARTITION_STARTS, bytes_partitions),
    PART(PARTITION_ROWS, bytes_partitions), PART(PARTITION_BANDS, bytes_partitions),
    PART(GROUP_STARTS, bytes_partitions),   PART(GROUP_ROWS, bytes_partitions),
#undef PART
};

static const sl_array_line *line_of(uint32_t section) {
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if ((uint32_t)sl_array_lines[kind].section == section) return &sl_array_lines[kind];
    return NULL;
}

static void count_bytes(void *all, size_t member, uint64_t bytes) {
    if (member) *(uint64_t *)(void *)((char *)all + member) += bytes;
}

void sl_count_in_stats(const sl_section_source *section, sl_index_stats *stats) {
    const sl_array_line *line = line_of(section->kind);
    if (line) count_bytes(stats, line->in_stats, section->size);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if ((uint32_t)parts[i].section == section->kind) count_bytes(stats, parts[i].in_stats, section->size);
}

void sl_count_in_plan(const sl_section_source *section, sl_plan *plan) {
    const sl_array_line *line = line_of(section->kind);
    if (line) count_bytes(plan, line->in_plan, section->size);
    if (line && (line->flags & SL_ARRAY_PLACED)) plan->bytes_layer0 += section->size;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if ((uint32_t)parts[i].section == section->kind) count_bytes(plan, parts[i].in_plan, section->size);
}
