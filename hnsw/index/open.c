#include "base/params.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/checksums.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/record.h"
#include "hnsw/graph/version.h"
#include "hnsw/index/lifecycle.h"
#include "hnsw/index/open_check.h"
#include "hnsw/index/recover.h"
#include "hnsw/place/dram_copy.h"
#include "hnsw/place/numa_place.h"
#include "hnsw/search/settings.h"
#include "storage/heal.h"
#include "storage/locks.h"
#include "storage/page_verify.h"

#include <string.h>

void sl_open_params_init_sized(sl_open_params *params, size_t struct_size) {
    const sl_open_params mine = {.struct_size = sizeof mine, .place = SL_PLACE_MAP};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* Takes parameters from a file's header and sections. Checks those that sl_index_new doesn't. */
static sl_status params_from(const sl_store *store, const sl_open_params *open, sl_index_params *params) {
    const sl_file_header *header = &store->header;
    sl_index_params_init(params);
    params->dim = header->dim;
    params->metric = (sl_metric)header->metric;
    params->dtype = (sl_dtype)header->dtype;
    params->codes = (sl_codes)header->codes;
    params->refine = (sl_refine)header->refine;
    params->m = header->m;
    params->ef_construction = header->ef_construction;
    params->seed = header->seed;
    params->clip = (sl_clip)header->clip;
    params->clip_share = header->clip_share;
    params->tags = sl_store_section(store, SL_SECTION_TAGS) != NULL;
    params->keys = sl_store_section(store, SL_SECTION_KEYS) != NULL;
    params->multi = sl_store_section(store, SL_SECTION_MULTI) != NULL;
    params->allocator = open->allocator;
    params->log = open->log;
    params->log_ctx = open->log_ctx;
    if (header->metric > SL_METRIC_L2 || header->dtype > SL_I16 || header->codes > SL_CODES_I4 ||
        header->refine > SL_REFINE_I16 || header->clip > SL_CLIP_QUANTILE)
        return sl_fail(SL_EVERSION, "metric, type, codes, refine or clip of a kind this library does not know");
    return SL_OK;
}

/* Checks the header's room. Only files that are written in place have room. */
static sl_status check_room_in(const sl_index *index, const sl_file_header *header) {
    int none = header->room == 0 && header->upper_room == 0 && header->rows_room == 0;
    int sane = header->room <= SL_MAX_VECTORS && header->upper_room < SL_NONE && header->rows_room < SL_NONE;
    if (none || (sane && sl_writable_head(index->store))) return SL_OK;
    return sl_fail(SL_ECORRUPT, "header says room for %llu vectors, %llu slots and %llu rows",
                   (unsigned long long)header->room, (unsigned long long)header->upper_room,
                   (unsigned long long)header->rows_room);
}

static sl_status check_header(const sl_index *index, const sl_file_header *header) {
    if (header->n > SL_MAX_VECTORS)
        return sl_fail(SL_ECORRUPT, "header says %llu vectors", (unsigned long long)header->n);
    size_t record = sl_record_of(&index->graph).pitch;
    SL_TRY(check_room_in(index, header));
    if (header->record_pitch && header->record_pitch != record)
        return sl_fail(SL_ECORRUPT, "header says records of %u bytes, where its parameters make %zu",
                       header->record_pitch, record);
    if (header->row_pitch != index->graph.arrays[SL_ARRAY_CODES].width ||
        header->refine_pitch != index->graph.arrays[SL_ARRAY_REFINE].width)
        return sl_fail(SL_ECORRUPT, "header says rows of %u and %u bytes, where its parameters make %zu and %zu",
                       header->row_pitch, header->refine_pitch, index->graph.arrays[SL_ARRAY_CODES].width,
                       index->graph.arrays[SL_ARRAY_REFINE].width);
    if ((header->id_width != 0 && header->id_width != 4 && header->id_width != 8) ||
        ((header->record_pitch || sl_writable_head(index->store)) && header->id_width != 8))
        return sl_fail(SL_ECORRUPT, "header says ids of %u bytes", header->id_width);
    if (header->dead_count > header->n)
        return sl_fail(SL_ECORRUPT, "header says that %llu of %llu vectors are deleted",
                       (unsigned long long)header->dead_count, (unsigned long long)header->n);
    if (header->n == 0) return SL_OK;
    int above = header->entry_slot != SL_NONE;
    if (header->entry_node >= header->n || header->max_level > SL_MAX_LEVEL || above != (header->max_level > 0) ||
        (above && header->entry_slot >= header->upper_count))
        return sl_fail(SL_ECORRUPT, "entry point (node %u, slot %u, level %u) is not in the index", header->entry_node,
                       header->entry_slot, header->max_level);
    return SL_OK;
}

/* The counts of the index, and the room in its sections: both are equal unless the file is written in place. */
typedef struct sl_sizes {
    sl_extent has, room;
    size_t deleted;
    uint64_t id_width;
    int in_place, records;
} sl_sizes;

static sl_status read_sizes(sl_index *index, const sl_file_header *header, sl_published *facts, sl_sizes *sizes) {
    *facts = (sl_published){.n = header->n,
                            .entry = (uint64_t)header->max_level << 32 |
                                     (header->max_level ? header->entry_slot : header->entry_node),
                            .next_id = header->next_id,
                            .upper_count = header->upper_count,
                            .upper_rows = header->upper_rows,
                            .quant_error_sum = header->quant_error_sum,
                            .quant_error_max = header->quant_error_max,
                            .quant_error_count = header->quant_error_count,
                            .dead = header->dead_count};
    sizes->id_width = header->id_width;
    sizes->in_place = sl_writable_head(index->store) != NULL;
    sizes->records = header->record_pitch != 0;
    if (sizes->in_place) {
        sizes->room = (sl_extent){(size_t)header->room, (size_t)header->upper_room, (size_t)header->rows_room};
        if (!sl_published_read_whole(sl_writable_head(index->store), facts))
            return sl_fail(SL_ECORRUPT, "%s: the words of the head page don't fit together; restore a copy of the file",
                           index->store->path);
        SL_TRY(sl_published_check(index, facts, sizes->room));
        if (index->graph.place == SL_PLACE_DRAM) SL_TRY(sl_published_check_mended(index, facts));
    }
    sizes->has = (sl_extent){(size_t)facts->n, (size_t)facts->upper_count, (size_t)facts->upper_rows};
    sizes->deleted = (size_t)facts->dead;
    if (!sizes->in_place) sizes->room = sizes->has;
    return SL_OK;
}

/* A section to load: it has `room` bytes, and the first `has` count. With a room of 0 the file has no such section. */
typedef struct sl_loading {
    uint32_t kind;
    uint64_t has, room;
    size_t slack; /* bytes behind a copy that kernels may read */
    const sl_allocator *allocator;
} sl_loading;

/* Finds a section and checks its size. `*out` is NULL if no section is due, or if it has no bytes to read. */
static sl_status find_section(const sl_index *index, uint32_t kind, uint64_t size, const sl_file_section **out) {
    *out = sl_store_section(index->store, kind);
    uint64_t found = *out ? (*out)->size : 0;
    if (size == 0) *out = NULL;
    if (found == size) return SL_OK;
    return sl_fail(SL_ECORRUPT, "%s: section %u (%s) is %llu bytes, where the header implies %llu", index->store->path,
                   kind, sl_section_name(kind), (unsigned long long)found, (unsigned long long)size);
}

/* Points `*out` into the mapping, or at a copy in memory. The index owns the copy, even after a failure. */
static sl_status load_section(const sl_index *index, const sl_loading *loading, void **out, sl_progress *progress) {
    const sl_file_section *section;
    const uint64_t has = loading->has;
    *out = NULL;
    SL_TRY(find_section(index, loading->kind, loading->room, &section));
    if (index->graph.place != SL_PLACE_DRAM) {
        if (section) *out = sl_store_data(index->store, section);
        return SL_OK;
    }
    if (has + loading->slack == 0) return SL_OK;
    SL_TRY(sl_mem_alloc_raw(loading->allocator, has + loading->slack, out));
    size_t copied = section ? (size_t)has : 0;
    memset((uint8_t *)*out + copied, 0, has + loading->slack - copied);
    return section ? sl_store_copy_first(index->store, section, *out, has, progress) : SL_OK;
}

static sl_status load_words(const sl_index *index, uint32_t kind, size_t has, size_t room, void **out,
                            sl_progress *progress) {
    const size_t word = sizeof(uint32_t);
    const sl_loading loading = {
        .kind = kind, .has = has * word, .room = room * word, .allocator = &index->graph.allocator};
    return load_section(index, &loading, out, progress);
}

static sl_status load_upper(sl_index *index, const sl_sizes *sizes, sl_progress *progress) {
    sl_upper *upper = &index->graph.upper;
    const sl_extent has = sizes->has, room = sizes->room;
    size_t starts = has.slots ? has.slots + 1 : 0, starts_room = room.slots ? room.slots + 1 : 0;
    int mapped = index->graph.place != SL_PLACE_DRAM;
    void *block;
    sl_status status = load_words(index, SL_SECTION_UPPER_NODES, has.slots, room.slots, &block, progress);
    upper->nodes = block;
    upper->nodes_capacity = !block ? 0 : mapped ? room.slots : has.slots;
    SL_TRY(status);
    status = load_words(index, SL_SECTION_UPPER_START, starts, starts_room, &block, progress);
    upper->start = block;
    upper->start_capacity = !block ? 0 : mapped ? starts_room : starts;
    SL_TRY(status);
    status = load_words(index, SL_SECTION_UPPER_LINKS, has.rows * index->graph.m, room.rows * index->graph.m, &block,
                        progress);
    upper->links = block;
    upper->rows_capacity = !block ? 0 : mapped ? room.rows : has.rows;
    SL_TRY(status);
    upper->count = has.slots;
    upper->rows = has.rows;
    return SL_OK;
}

/* Bytes of a row in the file, or 1 for tombstones; 0: the file lacks the array, or has it in records. A file that is
 * written in place lacks none. */
static size_t width_to_load(const sl_graph *graph, const sl_sizes *sizes, sl_array_kind kind) {
    const size_t whole = sl_array_lines[kind].whole;
    if (!whole) return graph->arrays[kind].width;
    if (sizes->in_place) return whole;
    if (kind == SL_ARRAY_IDS) return (size_t)sizes->id_width;
    return kind == SL_ARRAY_TOMBSTONES && sizes->deleted;
}

static sl_status load_array(sl_index *index, const sl_sizes *sizes, sl_array_kind kind, sl_progress *progress) {
    const sl_array_line *line = &sl_array_lines[kind];
    const size_t width = width_to_load(&index->graph, sizes, kind);
    const int single = (line->flags & SL_ARRAY_SINGLE) != 0;
    /* A file without vectors lacks the row that serves the whole index. */
    const int absent = !width || (sizes->records && sl_record_holds(&index->graph, kind)) ||
                       (single && sizes->has.n == 0 && !sizes->in_place);
    sl_loading loading = {.kind = line->section, .allocator = sl_array_allocator(index, kind)};
    if (!absent) {
        loading.has = sl_array_size(kind, width, sizes->has.n);
        loading.room = sl_array_size(kind, width, sizes->room.n);
        loading.slack = line->slack;
    }
    void *block = NULL;
    sl_status status = SL_OK;
    if (line->flags & SL_ARRAY_FILED) {
        const sl_file_section *section;
        SL_TRY(find_section(index, line->section, loading.room, &section));
        if (section) block = sl_store_data(index->store, section);
    } else {
        status = load_section(index, &loading, &block, progress);
    }
    /* Without an array of ids, ids are node numbers. Without tombstones, no node is deleted. */
    sl_array_put(&index->graph, kind, block, block || !line->whole ? width : 0);
    return status;
}

/* Copies the parts of records into arrays. The checksums stay in the mapping: the check of the copy reads them there.
 */
static sl_status part_records(sl_index *index, const sl_record *record, const sl_file_section *section, size_t n,
                              sl_progress *progress) {
    sl_split_rows rows = {.row = record->pitch};
    uint8_t *records = sl_store_data(index->store, section);
    void *block;
    index->graph.arrays[SL_ARRAY_IDS].width = record->size[SL_ARRAY_IDS];
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        if (!record->size[kind] || (sl_array_lines[kind].flags & SL_ARRAY_FILED)) continue;
        /* Kernels need padding of zeros in arrays. Rows in records have none. */
        SL_TRY(sl_array_lines[kind].slack
                   ? sl_mem_alloc(&index->layer0, sl_array_bytes(&index->graph, kind, n), &block)
                   : sl_mem_alloc_raw(&index->layer0, sl_array_bytes(&index->graph, kind, n), &block));
        sl_array_put(&index->graph, kind, block, index->graph.arrays[kind].width);
    }
    rows.count = sl_record_parts(&index->graph, record, NULL, rows.parts);
    SL_TRY(sl_store_copy_rows(index->store, section, &rows, n * record->pitch, progress));
    index->graph.arrays[SL_ARRAY_CHECKSUMS].width = sizeof(uint32_t);
    sl_array_put_part(&index->graph, SL_ARRAY_CHECKSUMS, records + record->at[SL_ARRAY_CHECKSUMS], sizeof(uint32_t),
                      record->pitch);
    return SL_OK;
}

static sl_status load_records(sl_index *index, const sl_sizes *sizes, sl_progress *progress) {
    const sl_file_section *section;
    sl_record record = sl_record_of(&index->graph);
    SL_TRY(find_section(index, SL_SECTION_RECORDS, sizes->records ? sizes->room.n * record.pitch : 0, &section));
    if (!sizes->records) return SL_OK;
    section = sl_store_section(index->store, SL_SECTION_RECORDS);
    if (!section)
        return sl_fail(SL_ECORRUPT, "%s: there is no section %u (%s)", index->store->path, SL_SECTION_RECORDS,
                       sl_section_name(SL_SECTION_RECORDS));
    if (index->graph.place == SL_PLACE_DRAM) return part_records(index, &record, section, sizes->has.n, progress);
    sl_record_adopt(&index->graph, &record, sl_store_data(index->store, section));
    return SL_OK;
}

static sl_status load_layer0(sl_index *index, const sl_sizes *sizes, sl_progress *progress) {
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        SL_TRY(load_array(index, sizes, kind, progress));
    SL_TRY(load_records(index, sizes, progress));
    const uint8_t *projection = index->graph.arrays[SL_ARRAY_PROJECTION].at;
    if (projection) sl_coarse_set_projection(&index->graph.coarse, projection);
    index->graph.deleted_count = sizes->deleted;
    return SL_OK;
}

static sl_status check_address_space(const sl_index *index, const sl_file_header *header) {
    uint64_t most, n = header->n > header->room ? header->n : header->room;
    uint64_t rows = header->upper_rows > header->rows_room ? header->upper_rows : header->rows_room;
    /* If a node's rows together, times the nodes, fit the address space, so does every array. */
    uint64_t row = sl_record_of(&index->graph).pitch + sizeof(uint64_t);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        row += index->graph.arrays[kind].width;
    if (__builtin_mul_overflow(n, row, &most) || most > SIZE_MAX ||
        __builtin_mul_overflow(rows, index->graph.m * sizeof(uint32_t), &most) || most > SIZE_MAX ||
        header->upper_room >= SL_NONE)
        return sl_fail(SL_ENOMEM, "%s: %llu vectors do not fit the address space", index->store->path,
                       (unsigned long long)n);
    return SL_OK;
}

/* If the section is there, an id may have several vectors. */
static sl_status check_multi(const sl_index *index) {
    const sl_file_section *section;
    return find_section(index, SL_SECTION_MULTI, 0, &section);
}

/* Finds the lives that a file has for other processes. A reader goes by them. Files without them were made by an
 * earlier version of the library. */
static sl_status load_lives(sl_index *index, const sl_sizes *sizes, const sl_published *facts) {
    const sl_file_section *section = sl_store_section(index->store, SL_SECTION_LIFETIMES);
    if (!section || !sizes->in_place) return SL_OK;
    SL_TRY(find_section(index, SL_SECTION_LIFETIMES, sl_lives_room(sizes->room.n), &section));
    if (index->graph.place == SL_PLACE_DRAM || !section || sl_index_is_direct(index)) return SL_OK;
    sl_lives *lives = index->writer ? &index->file_lives : &index->graph.lives;
    *lives = sl_lives_in(sl_store_data(index->store, section), sizes->room.n);
    index->graph.free_count = (size_t)facts->free;
    return SL_OK;
}

static sl_status load_arrays(sl_index *index, const sl_file_header *header, sl_progress *progress) {
    sl_sizes sizes = {0};
    sl_published facts;
    SL_TRY(check_address_space(index, header));
    SL_TRY(read_sizes(index, header, &facts, &sizes));
    index->graph.capacity = index->graph.place == SL_PLACE_DRAM ? sizes.has.n : sizes.room.n;
    SL_TRY(check_multi(index));
    SL_TRY(load_layer0(index, &sizes, progress));
    SL_TRY(load_upper(index, &sizes, progress));
    SL_TRY(sl_partitions_load(index, progress));
    SL_TRY(sl_settings_load(index, sizes.in_place ? (size_t)facts.tuned : SIZE_MAX, progress));
    index->graph.n = sizes.has.n;
    index->ordered = sl_partition_rest(&index->graph.partitions, index->graph.n).first;
    index->unverified = (size_t)facts.unverified;
    index->commit = facts.commit;
    SL_TRY(load_lives(index, &sizes, &facts));
    index->graph.next_id = facts.next_id;
    index->graph.quant_error = (sl_quant_error){facts.quant_error_sum, facts.quant_error_max, facts.quant_error_count};
    /* The file may hold any slot. Readers check its node. */
    index->graph.entry = facts.entry;
    return SL_OK;
}

/* Prepares a file that is written in place: for writing, for reading beside a writer, or for a copy. A copy needs a
 * lock that keeps writers off: `*held`, which the caller releases. */
static sl_status take_file(sl_index *index, const sl_open_params *open, int *held) {
    sl_store *store = index->store;
    const sl_file_section *section = sl_store_section(store, SL_SECTION_LIVE);
    int writes = open->writable && open->place != SL_PLACE_DRAM;
    if (!section && writes)
        return sl_fail(SL_EUNSUPPORTED,
                       "%s: has no room to be written in place; save it with room, or open it with place dram",
                       store->path);
    if (!section) return SL_OK;
    sl_page_sums sums;
    SL_TRY(sl_page_sums_find(store, &sums));
    if (section->size != SL_LIVE_SIZE || section->offset + section->size + SL_SECTION_SLACK != store->header.file_size)
        return sl_fail(SL_ECORRUPT, "%s: section %u (%s) is of a wrong size or place; make it or copy it again",
                       store->path, section->kind, sl_section_name(section->kind));
    if (writes)
        return sl_writable_open(store, &index->graph.allocator, open->file_ops, (uint64_t)open->log_bytes,
                                &index->writer);
    SL_TRY(sl_writable_heal(store));
    return open->place == SL_PLACE_DRAM && !open->exclusive ? sl_writable_hold(store, held) : SL_OK;
}

/* Notes the file's state, which a later save over the file checks. Takes an exclusive claim, if asked for, before the
 * data is read. */
static sl_status take_origin(sl_index *index, const sl_open_params *open) {
    const sl_store *store = index->store;
    SL_TRY(sl_origin_make(store, &index->graph.allocator, &index->origin));
    if (open->exclusive) SL_TRY(sl_origin_claim(index->origin, store));
    return sl_writable_head(store) && (open->exclusive || open->place == SL_PLACE_DRAM) ? sl_writable_check_log(store)
                                                                                        : SL_OK;
}

/* Verifies what copying has not: it verifies sections with a CRC. The zeros between sections aren't copied, and a save
 * would hide damage there, so they are verified too. */
static sl_status verify_rest(const sl_index *index, sl_progress *progress) {
    sl_pages_found found;
    if (sl_writable_head(index->store)) SL_TRY(sl_page_sums_verify(index->store, &found, progress));
    return sl_store_verify_gaps(index->store, progress);
}

/* Checks the copy in memory against the file, then closes the file. */
static sl_status settle_copy(sl_index *index, size_t threads, sl_progress *progress) {
    sl_status status = sl_open_check(&index->graph, threads);
    if (status != SL_OK) return sl_fail_in(status, "%s", index->store->path);
    /* Pages come last, because records can name the damaged vectors. */
    index->store->threads = threads;
    SL_TRY(verify_rest(index, progress));
    sl_store_close(index->store, &index->graph.allocator);
    index->store = NULL;
    sl_array_put(&index->graph, SL_ARRAY_CHECKSUMS, NULL, 0);
    return SL_OK;
}

/* An index that may change has lives whenever it has tombstones. So searches that run during its first changes go by
 * lives too. */
static sl_status make_lives(sl_index *index) {
    sl_graph *graph = &index->graph;
    const int changes = index->writer || graph->place == SL_PLACE_DRAM;
    if (!changes || !sl_tombstones(graph) || graph->lives.nodes) return SL_OK;
    return sl_lives_grow(&graph->lives, graph->capacity, &graph->lives);
}

static sl_status open_store(const sl_open_params *open, sl_store *store, sl_index **out) {
    sl_index_params params;
    sl_index *index;
    int held = -1;
    sl_status status = params_from(store, open, &params);
    if (status != SL_OK) return sl_fail_in(status, "%s", store->path);
    status = sl_index_new(&params, &index);
    if (status == SL_ENOMEM) return status;
    if (status == SL_EUNSUPPORTED) return sl_fail_in(status, "%s", store->path);
    if (status != SL_OK) return sl_fail_in(SL_ECORRUPT, "%s: header", store->path);
    index->store = store;
    index->graph.place = open->place;
    status = check_header(index, &store->header);
    if (status != SL_OK) {
        sl_fail_in(status, "%s", store->path);
        goto fail;
    }
    SL_TRY_GOTO(sl_dram_copy_check(index, open->tier), fail);
    SL_TRY_GOTO(take_file(index, open, &held), fail);
    SL_TRY_GOTO(take_origin(index, open), fail);
    SL_TRY_GOTO(sl_numa_place_init(index, open->numa, open->numa_node, open->numa_ops), fail);
    /* The local policy places a page at the thread that writes it first. So only the caller's thread copies. */
    const size_t copying = open->numa == SL_NUMA_LOCAL ? 1 : open->threads;
    store->threads = copying;
    sl_progress progress;
    sl_progress_start(&progress, open->progress, open->progress_ctx, store->size);
    SL_TRY_GOTO(load_arrays(index, &store->header, &progress), fail);
    store->threads = 1; /* a check sets its own number */
    SL_TRY_GOTO(sl_numa_place_read(index, open->prefault, &progress), fail);
    SL_TRY_GOTO(sl_progress_end(&progress), fail);
    SL_TRY_GOTO(sl_version_reserve(index, 1), fail);
    if (open->place != SL_PLACE_DRAM && !index->writer) index->published = sl_writable_head(store);
    if (index->published && index->graph.lives.nodes && !store->healed)
        index->readers = sl_readers_open(store, &index->graph.allocator);
    if (open->place == SL_PLACE_DRAM) SL_TRY_GOTO(settle_copy(index, copying, &progress), fail);
    if (index->writer) sl_publish_unsealed(index);
    if (index->writer) SL_TRY_GOTO(sl_index_recover(index), fail);
    SL_TRY_GOTO(make_lives(index), fail);
    sl_version_publish_now(index);
    sl_writable_release(held);
    sl_dram_copy_start(index, open->tier);
    *out = index;
    return SL_OK;
fail:
    sl_writable_release(held);
    sl_writable_close(index->writer);
    index->writer = NULL;
    sl_readers_close(index->readers);
    index->readers = NULL;
    /* The caller closes the store. */
    index->store = NULL;
    sl_index_free(index);
    return status;
}

static sl_status open_once(const char *path, const sl_open_params *open, sl_index **out) {
    sl_allocator allocator = sl_allocator_of(open->allocator);
    sl_store *store;
    SL_TRY(sl_store_open(path, &sl_index_file, open->place, &allocator, &store));
    sl_status status = open_store(open, store, out);
    if (status != SL_OK) sl_store_close(store, &allocator);
    return status;
}

sl_status sl_index_open(const char *path, const sl_open_params *params, sl_index **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!path) return sl_fail(SL_EINVAL, "path is NULL");
    sl_open_params mine;
    sl_open_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_open_params_init"));
    if (!(mine.wait_s >= 0)) return sl_fail(SL_EINVAL, "wait_s is %g; give 0 or more seconds", mine.wait_s);
    if (mine.exclusive && mine.writable && mine.place != SL_PLACE_DRAM)
        return sl_fail(SL_EINVAL, "exclusive and writable are two ways to change a file; give one");
    sl_waiting waiting = sl_waiting_for(mine.wait_s, mine.progress, mine.progress_ctx);
    sl_status status;
    do
        status = open_once(path, &mine, out);
    while (status == SL_EBUSY && sl_wait_more(&waiting, &status));
    return status;
}
