/* sl_index_rebuild: builds a file's index again and replaces the file. */
#include "base/params.h"
#include "hnsw/graph/index.h"
#include "storage/replace.h"
#include "storage/store.h"

typedef struct sl_rebuild {
    const char *path;
    sl_rebuild_params params;
    sl_index *old;   /* mapped; holds the claim until the save takes it over */
    sl_index *fresh; /* in memory */
    sl_rebuild_report report;
} sl_rebuild;

void sl_rebuild_params_init_sized(sl_rebuild_params *params, size_t struct_size) {
    const sl_rebuild_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* A dead writer may have left a log, and the log goes by the file's name. Opening the file for writing replays the log,
 * and closing removes it. */
static sl_status settle_log(const sl_rebuild *rebuild, const sl_open_params *params) {
    sl_index *writer;
    sl_open_params open = *params;
    open.writable = 1;
    sl_status status = sl_index_open(rebuild->path, &open, &writer);
    if (status == SL_OK) sl_index_free(writer);
    return status == SL_EUNSUPPORTED ? SL_OK : status;
}

static sl_status open_claimed(sl_rebuild *rebuild) {
    const sl_rebuild_params *asked = &rebuild->params;
    sl_open_params open;
    sl_open_params_init(&open);
    open.tier = SL_TIER_NONE;
    open.allocator = asked->allocator;
    open.log = asked->log;
    open.log_ctx = asked->log_ctx;
    open.progress = asked->progress;
    open.progress_ctx = asked->progress_ctx;
    open.wait_s = asked->wait_s;
    SL_TRY(settle_log(rebuild, &open));
    open.exclusive = 1;
    return sl_index_open(rebuild->path, &open, &rebuild->old);
}

static sl_status report_old(sl_rebuild *rebuild) {
    sl_index_stats stats = {.struct_size = sizeof stats};
    SL_TRY(sl_index_get_stats(rebuild->old, &stats));
    const size_t asked = rebuild->params.room;
    size_t room = asked > stats.room ? asked : stats.room;
    if (room && room < stats.n) room = stats.n;
    if (room > SL_MAX_VECTORS)
        return sl_fail(SL_ELIMIT, "room for %zu vectors; an index holds up to %u", room, SL_MAX_VECTORS);
    rebuild->report = (sl_rebuild_report){.n = stats.n,
                                          .deleted = stats.deleted,
                                          .bytes_before = stats.bytes_total,
                                          .room = room,
                                          .layout = stats.layout,
                                          .linked_from = rebuild->old->graph.codec.codes == SL_CODES_I4
                                                             ? "i4+8"
                                                             : sl_codes_name(rebuild->old->graph.codec.codes)};
    return SL_OK;
}

static sl_status link_anew(sl_rebuild *rebuild) {
    const sl_rebuild_params *asked = &rebuild->params;
    sl_merge_params merge;
    sl_merge_params_init(&merge);
    merge.m = asked->m;
    merge.ef_construction = asked->ef_construction;
    merge.threads = asked->threads;
    merge.builder = asked->builder;
    merge.max_memory = asked->max_memory;
    merge.work_path = asked->work_path;
    merge.progress = asked->progress;
    merge.progress_ctx = asked->progress_ctx;
    return sl_index_merge(&rebuild->old, 1, &merge, &rebuild->fresh);
}

/* Without `output`, the new file goes where the claim is, even if links lead elsewhere by now. */
static const char *output_of(const sl_rebuild *rebuild) {
    return rebuild->params.output ? rebuild->params.output : rebuild->old->store->resolved;
}

/* Saves over the file that the old handle claims. The claim moves to the fresh handle, and the save moves it to the new
 * file. */
static sl_status save_fresh(sl_rebuild *rebuild) {
    const sl_rebuild_params *asked = &rebuild->params;
    sl_save_params params;
    sl_save_params_init(&params);
    params.file_ops = asked->file_ops;
    params.progress = asked->progress;
    params.progress_ctx = asked->progress_ctx;
    params.room = rebuild->report.room;
    params.layout = rebuild->report.layout;
    rebuild->fresh->origin = rebuild->old->origin;
    rebuild->old->origin = NULL;
    return sl_index_save(rebuild->fresh, output_of(rebuild), &params);
}

/* The claim protects the new file. The rebuild is done by now, so it doesn't fail if the file can't be opened. */
static void report_new(sl_rebuild *rebuild) {
    const sl_rebuild_params *asked = &rebuild->params;
    sl_index *index;
    sl_open_params open;
    sl_index_stats stats = {.struct_size = sizeof stats};
    sl_open_params_init(&open);
    open.tier = SL_TIER_NONE;
    open.allocator = asked->allocator;
    if (sl_index_open(output_of(rebuild), &open, &index) != SL_OK) return;
    if (sl_index_get_stats(index, &stats) == SL_OK) rebuild->report.bytes_after = stats.bytes_total;
    sl_index_free(index);
}

static sl_status rebuild_file(sl_rebuild *rebuild) {
    SL_TRY(open_claimed(rebuild));
    SL_TRY(sl_replace_try(output_of(rebuild), rebuild->old->origin));
    SL_TRY(report_old(rebuild));
    SL_TRY(link_anew(rebuild));
    SL_TRY(save_fresh(rebuild));
    report_new(rebuild);
    return SL_OK;
}

sl_status sl_index_rebuild(const char *path, const sl_rebuild_params *params, sl_rebuild_report *report) {
    if (!path) return sl_fail(SL_EINVAL, "path is NULL");
    sl_rebuild rebuild = {.path = path};
    sl_rebuild_params_init(&rebuild.params);
    SL_TRY(sl_params_in(&rebuild.params, sizeof rebuild.params, params, "sl_rebuild_params_init"));
    if (report) SL_TRY(sl_params_check_out(report, "sl_rebuild_report"));
    sl_status status = rebuild_file(&rebuild);
    sl_index_free(rebuild.fresh);
    sl_index_free(rebuild.old);
    if (status == SL_OK && report) sl_params_out(report, &rebuild.report, sizeof rebuild.report);
    return status;
}
