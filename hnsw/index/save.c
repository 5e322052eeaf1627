#include "hnsw/index/save.h"
#include "base/params.h"
#include "hnsw/construct/reach.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/checksums.h"
#include "hnsw/graph/tombstones.h"
#include "hnsw/graph/version.h"
#include "hnsw/index/describe.h"
#include "hnsw/index/save_source.h"
#include "hnsw/search/settings.h"
#include "storage/locks.h"

#include <string.h>

void sl_save_params_init_sized(sl_save_params *params, size_t struct_size) {
    const sl_save_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* Memory that a save holds until its end. */
typedef struct save_parts {
    /* ids in the file's width; checksums and tombstones that the index lacks */
    sl_array made[SL_ARRAY_KINDS];
    uint8_t *changing;
    void *window;
} save_parts;

static void free_parts(const sl_graph *graph, const save_parts *parts) {
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        sl_mem_free(&graph->allocator, parts->made[kind].at, sl_array_size(kind, parts->made[kind].width, graph->n));
    sl_mem_free(&graph->allocator, parts->changing, SL_LIVE_SIZE);
    sl_mem_free(&graph->allocator, parts->window, SL_SPLIT_WINDOW);
}

static int is_whole(const sl_save_params *save) {
    return save->layout == SL_LAYOUT_RECORDS || save->room;
}

static uint32_t id_width_of(const sl_graph *graph, const sl_save_params *save) {
    return is_whole(save) ? (uint32_t)sizeof(uint64_t) : sl_file_id_width(graph);
}

size_t sl_save_bytes(const sl_graph *graph, const sl_save_params *save) {
    const size_t n = graph->n, width = id_width_of(graph, save);
    size_t bytes = width == graph->arrays[SL_ARRAY_IDS].width ? 0 : n * width;
    if (is_whole(save)) bytes += n * sizeof(uint32_t);
    if (save->layout == SL_LAYOUT_RECORDS) bytes += SL_SPLIT_WINDOW;
    if (save->room) bytes += SL_LIVE_SIZE + sl_tombstones_bytes(n);
    return bytes;
}

uint64_t sl_save_file_size(const sl_graph *graph, const sl_save_params *save) {
    const sl_described_as as = {.layout = save->layout, .id_width = id_width_of(graph, save)};
    sl_description file;
    if (save->room)
        sl_describe_writable(graph, sl_room_for(graph, save->room), &as, NULL, &file);
    else
        sl_describe(graph, &as, &file);
    return sl_store_file_size(file.sections, file.count);
}

static sl_status make_array(const sl_graph *graph, save_parts *parts, sl_array_kind kind, size_t width) {
    void *block;
    SL_TRY(sl_mem_alloc(&graph->allocator, sl_array_size(kind, width, graph->n), &block));
    parts->made[kind] = (sl_array){block, width, width, width};
    return SL_OK;
}

static sl_status make_ids(const sl_graph *graph, size_t width, save_parts *parts) {
    if (width == graph->arrays[SL_ARRAY_IDS].width) return SL_OK;
    SL_TRY(make_array(graph, parts, SL_ARRAY_IDS, width));
    uint32_t *narrow = (uint32_t *)(void *)parts->made[SL_ARRAY_IDS].at;
    uint64_t *whole = (uint64_t *)(void *)parts->made[SL_ARRAY_IDS].at;
    for (size_t node = 0; node < graph->n; node++) {
        uint64_t id = sl_id_of(graph, (uint32_t)node);
        if (width == sizeof *whole)
            whole[node] = id;
        else
            narrow[node] = (uint32_t)id;
    }
    return SL_OK;
}

/* Makes checksums for the file. Keeps those that the index has, so that damaged nodes stay known. */
static sl_status make_sums(const sl_graph *graph, save_parts *parts) {
    if (sl_has(graph, SL_ARRAY_CHECKSUMS)) return SL_OK;
    SL_TRY(make_array(graph, parts, SL_ARRAY_CHECKSUMS, sizeof(uint32_t)));
    const sl_array *sums = &parts->made[SL_ARRAY_CHECKSUMS];
    const sl_range own = sl_share_mine(graph->parted ? graph->ranks : NULL, graph->n, SL_SHARED_ROWS);
    for (size_t node = own.first; node < own.end; node++)
        sl_checksum_row(graph, (uint32_t)node, sums->at + node * sums->step);
    return SL_OK;
}

static sl_status make_changing(const sl_save_source *source, save_parts *parts) {
    void *block;
    SL_TRY(sl_mem_alloc(&source->graph->allocator, SL_LIVE_SIZE, &block));
    parts->changing = block;
    return sl_writable_format(parts->changing, &source->facts, sizeof source->facts);
}

/* Describes the smallest file, or a file with room. */
static sl_status describe_file(const sl_save_source *source, const sl_save_params *save, save_parts *parts,
                               sl_description *out) {
    const sl_graph *graph = source->graph;
    int records = save->layout == SL_LAYOUT_RECORDS;
    sl_described_as as = {.layout = save->layout, .id_width = id_width_of(graph, save)};
    SL_TRY(make_ids(graph, as.id_width, parts));
    if (is_whole(save)) SL_TRY(make_sums(graph, parts));
    if (records || graph->record.pitch) SL_TRY(sl_mem_alloc(&graph->allocator, SL_SPLIT_WINDOW, &parts->window));
    if (save->room) SL_TRY(make_changing(source, parts));
    /* Tombstones of zeros are written, so that no reader meets a hole in the file. */
    if (save->room && !graph->deleted_count && graph->n) SL_TRY(make_array(graph, parts, SL_ARRAY_TOMBSTONES, 1));
    memcpy(as.made, parts->made, sizeof as.made);
    as.window = parts->window;
    if (!save->room) {
        sl_describe(graph, &as, out);
        return SL_OK;
    }
    sl_describe_writable(graph, sl_room_for(graph, save->room), &as, parts->changing, out);
    return SL_OK;
}

sl_status sl_save_check(const sl_graph *graph, const sl_save_params *save) {
    const size_t room = save->room;
    if ((unsigned)save->layout > SL_LAYOUT_RECORDS)
        return sl_fail(SL_EINVAL, "layout %d is none of sl_layout", (int)save->layout);
    if (room > SL_MAX_VECTORS)
        return sl_fail(SL_ELIMIT, "room for %zu vectors; an index holds up to %u", room, SL_MAX_VECTORS);
    if (room && room < graph->n)
        return sl_fail(SL_EINVAL, "room for %zu vectors, where there are %zu; give as many or more", room, graph->n);
    return SL_OK;
}

/* Verifies the old file before its bytes get new checksums. */
static sl_status verify_source(const sl_index *index, sl_progress *progress) {
    sl_verified found;
    return index->store ? sl_store_verify_all(index->store, &found, progress) : SL_OK;
}

/* Returns whether the save writes settings alone. A mapped index that nobody writes changes only by tuning, so a save
 * over its own file writes only the tuned settings. */
static int only_settings_change(const sl_index *index, const char *path, const sl_save_params *save) {
    int records = save->layout == SL_LAYOUT_RECORDS;
    return index->store && !sl_writable_head(index->store) && !save->room &&
           records == (index->graph.record.pitch != 0) && index->origin->mapped && sl_origin_is(index->origin, path);
}

static sl_status save_settings(const sl_index *index, const char *path, const sl_save_params *save) {
    const sl_section_source tuned = {.kind = SL_SECTION_TUNED,
                                     .data = index->graph.tuned,
                                     .size = index->graph.tuned_count * sizeof *index->graph.tuned};
    sl_progress progress;
    sl_progress_start(&progress, save->progress, save->progress_ctx, index->store->size);
    return sl_store_amend(index->store, path, save->file_ops, &tuned, index->origin, &progress);
}

static sl_status save_graph(const sl_index *index, const sl_save_source *source, const char *path,
                            const sl_save_params *save) {
    const sl_graph *graph = source->graph;
    sl_description file;
    sl_progress progress;
    save_parts parts = {.changing = NULL};
    sl_status status;
    SL_TRY_GOTO(describe_file(source, save, &parts, &file), done);
    sl_progress_start(&progress, save->progress, save->progress_ctx, sl_store_file_size(file.sections, file.count));
    const sl_file_content content = {&sl_index_file, &file.header, file.sections, file.count};
    const sl_ranks *ranks = graph->ranks;
    /* A file with room has sums of its pages, which one process makes as it writes. */
    if (ranks && !save->room)
        status = sl_store_save_shared(path, &content, ranks, save->file_ops, &progress);
    else if (!ranks || ranks->rank == 0)
        status = sl_store_save(path, &content, save->file_ops, index->origin, &progress);
    status = sl_ranks_agree(ranks, status);
done:
    free_parts(graph, &parts);
    return status;
}

/* Checks the parameters, and starts the progress over the present bytes. */
static sl_status begin_save(const sl_index *index, const sl_save_params *save, sl_progress *progress) {
    sl_reading reading;
    sl_description file;
    const sl_graph *graph = sl_reading_begin(index, &reading);
    sl_status status = sl_save_check(graph, save);
    sl_describe_own(graph, &file);
    sl_progress_start(progress, save->progress, save->progress_ctx, sl_store_file_size(file.sections, file.count));
    sl_reading_end(&reading);
    return status;
}

/* Saves the present version. If it may change words meanwhile, the save holds the gate. */
static sl_status save_version(sl_index *index, const char *path, const sl_save_params *save, int *inside) {
    sl_save_source source;
    sl_save_source_open(index, &source);
    if (source.block) sl_change_end(index);
    *inside = !source.block;
    sl_status status = save_graph(index, &source, path, save);
    sl_save_source_close(index, &source);
    return status;
}

/* Leaves the gate early if it can. *inside becomes 0 then. */
static sl_status save_index(sl_index *index, const char *path, const sl_save_params *params, int *inside) {
    sl_save_params mine;
    sl_save_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_save_params_init"));
    if (index->writer) SL_TRY(sl_writable_check_owner(index->writer));
    sl_progress progress;
    SL_TRY(begin_save(index, &mine, &progress));
    if (only_settings_change(index, path, &mine)) return save_settings(index, path, &mine);
    /* Places stay during a save. Saves one after another would keep them for good. */
    if (!index->writer) sl_reclaim_step(index, 0);
    sl_reclaim_free_swept(index);
    SL_TRY(sl_reach_settle_swept(index));
    SL_TRY(verify_source(index, &progress));
    sl_renumber_compact(index, 1);
    sl_renumber_settle(index, 2, index->threads, &progress);
    if (sl_progress_cancelled(&progress)) return sl_progress_end(&progress);
    return save_version(index, path, &mine, inside);
}

/* Saves, as the only save. */
static sl_status save_alone(sl_index *index, const char *path, const sl_save_params *params) {
    int inside = 1;
    SL_TRY(sl_change_begin(index));
    sl_status status = sl_spill_explain(index->spill, save_index(index, path, params, &inside));
    if (inside) sl_change_end(index);
    if (status == SL_OK) sl_work_remove(index->work);
    return status;
}

/* A save over a mapped file that others may write first keeps writers off, then takes its view. An earlier view would
 * lack later writes. A handle with an exclusive claim keeps writers off already. */
sl_status sl_index_save(sl_index *index, const char *path, const sl_save_params *params) {
    if (!index || !path) return sl_fail(SL_EINVAL, "index or path is NULL");
    int held = -1;
    int over = index->published && sl_origin_is(index->origin, path);
    if (over && !sl_origin_claims(index->origin, index->origin->path)) {
        sl_status status = sl_writable_hold(index->store, &held);
        if (status != SL_OK) {
            sl_writable_release(held);
            /* The lock may be on another file that has replaced this one. */
            if (index->origin->mapped) SL_TRY(sl_origin_check(index->origin, index->origin->path, -1));
            return status;
        }
    }
    sl_status status = sl_gate_enter(&index->versions->saves);
    if (status == SL_OK) {
        status = save_alone(index, path, params);
        sl_gate_leave(&index->versions->saves);
    }
    sl_writable_release(held);
    return status;
}
