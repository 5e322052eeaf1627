#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"
#include "base/params.h"
#include "hnsw/construct/reach.h"
#include "hnsw/graph/checksums.h"
#include "hnsw/graph/codes.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/tombstones.h"
#include "hnsw/graph/version.h"
#include "hnsw/graph/view.h"
#include "hnsw/index/recall.h"
#include "storage/heal.h"

#include <math.h>
#include <string.h>

/* Beside a writer, a check may read a list or tombstones half written. It then reads again, up to TRIES times, with a
 * PAUSE in nanoseconds. */
enum { TRIES = 200, PAUSE = 1000000 };

typedef struct sl_check {
    const sl_index *index;
    sl_reading reading;
    const sl_graph *graph; /* the index's own, or the view */
    sl_check_params params;
    sl_check_report report;
    sl_checksums_found records;
    sl_progress progress;
    uint64_t quiet; /* of a view: the first result of sl_writable_quiet */
    size_t beyond;  /* of a view: links to nodes that the view doesn't count, but the file has room for */
} sl_check;

void sl_check_params_init_sized(sl_check_params *params, size_t struct_size) {
    const sl_check_params mine = {.struct_size = sizeof mine, .sample = 200, .k = 10, .ef = 200};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* Returns whether the index follows a file that may have been written since the check began. */
static int is_file_changing(const sl_check *check) {
    return check->index->published && (!check->quiet || sl_writable_quiet(check->index->store) != check->quiet);
}

static void pause_for_writer(void) {
    sl_pause_ns(PAUSE);
}

/* The links of a list, counted. */
typedef struct found_links {
    size_t length;
    size_t faults; /* links out of range, to the node itself, twice in the list, or behind its end */
    size_t beyond; /* links to ids that the layer doesn't count, but has room for */
} found_links;

static found_links check_links(const uint32_t *links, const sl_layer *layer, size_t room, uint32_t self) {
    found_links found = {0};
    while (found.length < layer->degree && sl_link_load(links + found.length) != SL_NONE)
        found.length++;
    for (size_t i = 0; i < found.length; i++) {
        uint32_t id = sl_link_load(links + i);
        int fault = id >= room || id == self;
        for (size_t j = 0; j < i && !fault; j++)
            fault = sl_link_load(links + j) == id;
        found.faults += (size_t)fault;
        found.beyond += !fault && id >= layer->count;
    }
    for (size_t i = found.length; i < layer->degree; i++)
        found.faults += sl_link_load(links + i) != SL_NONE;
    return found;
}

/* Checks a list; again, if a writer may be changing it. An index that is no view has no links beyond its counts. */
static found_links check_links_until_still(const sl_check *check, const uint32_t *links, const sl_layer *layer,
                                           uint32_t self) {
    const sl_graph *graph = check->graph;
    size_t room = !check->index->published ? layer->count
                  : layer->level           ? graph->upper.nodes_capacity
                                           : graph->capacity;
    found_links found = check_links(links, layer, room, self);
    for (int i = 0; found.faults && i < TRIES && is_file_changing(check); i++) {
        pause_for_writer();
        found = check_links(links, layer, room, self);
    }
    return found;
}

static void check_layer0(sl_check *check) {
    const sl_graph *graph = check->graph;
    sl_check_report *report = &check->report;
    const sl_layer layer = sl_layer_at(graph, 0);
    size_t bad = 0, beyond = 0, vectors = 0, smallest = SIZE_MAX, largest = 0, sum = 0;
    size_t threads = sl_thread_count(check->params.threads);
#pragma omp parallel for schedule(static) num_threads((int)threads) if (threads > 1) \
    reduction(+ : bad, beyond, vectors, sum) reduction(min : smallest) reduction(max : largest)
    for (size_t node = 0; node < graph->n; node++) {
        found_links found = check_links_until_still(check, sl_links(graph, node), &layer, (uint32_t)node);
        bad += found.faults;
        beyond += found.beyond;
        vectors += !sl_row_is_finite(graph, (uint32_t)node);
        sum += found.length;
        if (found.length < smallest) smallest = found.length;
        if (found.length > largest) largest = found.length;
        sl_progress_step(&check->progress, 1);
    }
    report->bad_links += bad;
    check->beyond += beyond;
    /* Queries need the projection too, so a broken one makes every row useless. */
    report->bad_vectors =
        sl_has(graph, SL_ARRAY_PROJECTION) && !sl_coarse_is_finite(&graph->coarse) ? graph->n : vectors;
    report->min_degree = graph->n ? smallest : 0;
    report->max_degree = largest;
    report->mean_degree = graph->n ? (double)sum / (double)graph->n : 0;
}

/* Checks that slots ascend by node, that their rows follow one another, and that links lead to slots on the same level.
 */
static void check_upper(sl_check *check) {
    const sl_graph *graph = check->graph;
    const sl_upper *upper = &graph->upper;
    sl_check_report *report = &check->report;
    for (size_t slot = 0; slot < upper->count; slot++) {
        uint32_t first = upper->start[slot], end = upper->start[slot + 1];
        int bad = upper->nodes[slot] >= graph->n || (slot > 0 && upper->nodes[slot - 1] >= upper->nodes[slot]) ||
                  (slot == 0 && first != 0) || end <= first || end > upper->rows || end - first > SL_MAX_LEVEL;
        report->bad_upper += (size_t)bad;
        /* A broken slot may claim all rows, so its rows aren't checked. */
        for (uint32_t row = first; !bad && row < end; row++) {
            const sl_layer layer = sl_layer_at(graph, row - first + 1);
            const uint32_t *links = upper->links + (size_t)row * graph->m;
            found_links found = check_links_until_still(check, links, &layer, (uint32_t)slot);
            report->bad_links += found.faults;
            check->beyond += found.beyond;
            for (size_t i = 0; i < found.length; i++) {
                uint32_t to = sl_link_load(links + i);
                report->bad_links += to < upper->count && upper->start[to] + (row - first) >= upper->start[to + 1];
            }
        }
    }
    sl_entry entry = sl_entry_get(graph);
    if (entry.level && upper->start[entry.slot + 1] - upper->start[entry.slot] < entry.level) report->bad_upper++;
}

/* Counts the nodes that weren't reached. Deleted ones need not be: they may be leaving the graph. */
static size_t count_missing(const sl_check *check, const sl_reach *reach) {
    size_t missing = 0;
    for (size_t node = 0; node < check->graph->n; node++)
        missing += !sl_reach_has(reach, (uint32_t)node) && !sl_is_deleted(check->graph, node);
    return missing;
}

static sl_status check_reach(sl_check *check) {
    const sl_graph *graph = check->graph;
    sl_reach reach;
    SL_TRY(sl_reach_init(&reach, graph, graph->n, 0));
    sl_reach_from_entry(&reach);
    check->report.unreachable = count_missing(check, &reach);
    /* The second pass reuses the bits, for nodes that some list names. */
    memset(reach.reached, 0, (graph->n / 64 + 1) * sizeof(uint64_t));
    uint32_t entry = sl_entry_get(graph).node;
    for (size_t node = 0; node < graph->n; node++)
        for (size_t i = 0; i < graph->m0; i++) {
            uint32_t to = sl_link_load(sl_links(graph, node) + i);
            if (to == SL_NONE) break;
            if (to >= graph->n || to == entry || sl_reach_has(&reach, to)) continue;
            reach.reached[to / 64] |= (uint64_t)1 << (to % 64);
        }
    if (entry < graph->n) reach.reached[entry / 64] |= (uint64_t)1 << (entry % 64);
    check->report.no_in_link = count_missing(check, &reach);
    sl_reach_free(&reach);
    return SL_OK;
}

static sl_status check_recall(sl_check *check) {
    const sl_check_params *params = &check->params;
    const size_t n = check->graph->n, ef = (params->ef > params->k ? params->ef : params->k) + 1;
    sl_recall_sampler sampler;
    if (params->sample == 0 || sl_undeleted_count(check->graph) < 2) return SL_OK;
    sl_status status = sl_recall_sampler_init(&sampler, check->graph, params->k, ef);
    if (status != SL_OK) return status;
    for (size_t i = 0; i < params->sample && status == SL_OK && !sl_progress_cancelled(&check->progress); i++) {
        status = sl_recall_sampler_take(&sampler, check->graph, i);
        sl_progress_step(&check->progress, n);
    }
    check->report.sampled_recall = sampler.sum / (double)params->sample;
    check->report.sampled_lost = sampler.lost;
    sl_recall_sampler_free(&sampler);
    return status;
}

static sl_status check_resolution(sl_check *check) {
    sl_resolution resolution = {.struct_size = sizeof resolution};
    if (check->params.sample == 0) return SL_OK;
    SL_TRY(sl_index_resolution(check->index, check->params.threads, &resolution));
    check->report.resolution_sampled = resolution.sampled;
    check->report.unresolved = resolution.unresolved;
    return SL_OK;
}

static sl_status check_file(sl_check *check) {
    const sl_store *store = check->index->store;
    sl_verified found = {0};
    if (!store) return SL_OK;
    sl_status status = sl_store_verify_all(store, &found, &check->progress);
    check->report.sections_checked = found.sections;
    check->report.pages_checked = (size_t)found.pages.checked;
    check->report.bad_pages = (size_t)found.pages.bad;
    check->report.unverified = found.unverified;
    return status;
}

static void check_records(sl_check *check) {
    const sl_check_params *params = &check->params;
    if (!params->scrub) return;
    check->records =
        sl_checksums_check(check->graph, params->threads, params->bad_ids, params->bad_ids_room, &check->progress);
    check->report.records_checked = check->records.checked;
    check->report.bad_records = check->records.bad;
}

/* Returns whether a writer has not proved yet that all nodes can be reached. */
static int is_proof_owed(const sl_check *check) {
    const sl_index *index = check->index;
    return index->published && (sl_published_read(index->published).unverified || is_file_changing(check));
}

static sl_status report_faults(const sl_check *check) {
    const sl_check_report *r = &check->report;
    int proved = !((r->unreachable || r->no_in_link) && is_proof_owed(check));
    if (r->bad_records)
        return sl_fail(
            SL_ECORRUPT,
            "%zu records are damaged, the first that of id %llu; drop them, build the index again from its vectors, or "
            "take a copy of the file",
            r->bad_records, (unsigned long long)check->records.first);
    const struct {
        size_t count;
        const char *what;
    } faults[] = {{r->bad_links, "links out of range, to themselves, twice, or on a wrong layer"},
                  {r->bad_upper, "broken records of the upper layers"},
                  {proved ? r->unreachable : 0, "vectors that cannot be reached from the entry point"},
                  {proved ? r->no_in_link : 0, "vectors without a link to them"},
                  {r->bad_vectors, "vectors with a scale or norm that is no number"},
                  {r->duplicate_ids, "ids that occur twice"}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].count)
            return sl_fail(SL_ECORRUPT, "%zu %s; build the index again from its vectors", faults[i].count,
                           faults[i].what);
    return SL_OK;
}

/* Judges links beyond a view's counts. A writer's commit may have linked newer nodes since the view was made. If nobody
 * writes the file, such links are out of range. */
static void judge_links_beyond(sl_check *check) {
    if (check->beyond && !is_file_changing(check)) check->report.bad_links += check->beyond;
}

/* Checks the tombstones; again, while a writer works: a commit writes tombstones before their count. */
static sl_status check_tombstones(sl_check *check) {
    sl_status status = sl_tombstones_check(check->graph);
    for (int i = 0; status != SL_OK && i < TRIES && is_file_changing(check); i++) {
        pause_for_writer();
        if (check->index->published) sl_view_follow(check->index, &check->reading.view);
        status = sl_tombstones_check(check->graph);
    }
    return status;
}

/* Refuses a file that a dead writer left half done. This check comes first. */
static sl_status check_mended(const sl_check *check) {
    const sl_index *index = check->index;
    if (!index->published || !check->quiet) return SL_OK;
    const sl_published facts = sl_published_read(index->published);
    sl_status status = sl_published_check_mended(index, &facts);
    return is_file_changing(check) ? SL_OK : status;
}

/* Checks the graph part by part. Each check is safe, whatever the file holds. */
static sl_status check_graph(sl_check *check) {
    const sl_graph *graph = check->graph;
    if (graph->n == 0) return SL_OK;
    check_layer0(check);
    check_upper(check);
    judge_links_beyond(check);
    SL_TRY(check_reach(check));
    SL_TRY(sl_ids_count_duplicates(graph, &check->report.duplicate_ids));
    SL_TRY(check_recall(check));
    return check_resolution(check);
}

static sl_status run_check(sl_check *check) {
    const sl_graph *graph = check->graph;
    const sl_index *index = check->index;
    check->report.n = sl_undeleted_count(graph);
    check->report.deleted = graph->deleted_count - graph->free_count;
    check->report.sampled_recall = (double)NAN;
    sl_progress_start(&check->progress, check->params.progress, check->params.progress_ctx,
                      graph->n *
                              (1 + check->params.sample + (check->params.scrub && sl_has(graph, SL_ARRAY_CHECKSUMS))) +
                          (index->store ? index->store->size : 0));
    sl_status status = check_file(check);
    /* If pages are damaged, records tell which vectors are. */
    if (status == SL_OK || check->report.bad_pages) check_records(check);
    if (check->report.bad_records) status = report_faults(check);
    if (status == SL_OK) status = check_graph(check);
    if (status == SL_OK) status = sl_progress_end(&check->progress);
    if (status == SL_OK) status = report_faults(check);
    if (status == SL_OK) status = check_tombstones(check);
    return status == SL_OK ? sl_partitions_check(graph) : status;
}

static sl_status read_check_params(sl_check *check, const sl_check_params *params, const sl_check_report *report) {
    sl_check_params *mine = &check->params;
    sl_check_params_init(mine);
    SL_TRY(sl_params_in(mine, sizeof *mine, params, "sl_check_params_init"));
    SL_TRY(sl_params_check_out(report, "sl_check_report"));
    if (!mine->bad_ids && mine->bad_ids_room)
        return sl_fail(SL_EINVAL, "bad_ids is NULL, with room for %zu", mine->bad_ids_room);
    if (mine->k == 0 || mine->k >= SL_MAX_EF || mine->ef == 0 || mine->ef >= SL_MAX_EF)
        return sl_fail(SL_EINVAL, "k is %zu and ef %zu; give 1 to %u", mine->k, mine->ef, SL_MAX_EF - 1);
    return SL_OK;
}

sl_status sl_index_check(sl_index *index, const sl_check_params *params, sl_check_report *report) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    if (index->writer) SL_TRY(sl_writable_check_owner(index->writer));
    sl_check check = {.index = index, .quiet = index->published ? sl_writable_quiet(index->store) : 0};
    SL_TRY(read_check_params(&check, params, report));
    SL_TRY(check_mended(&check));
    SL_TRY(sl_change_begin(index));
    sl_status status = sl_reach_settle_swept(index);
    if (status == SL_OK) {
        check.graph = sl_reading_begin(index, &check.reading);
        status = run_check(&check);
        sl_reading_end(&check.reading);
        sl_params_out(report, &check.report, sizeof check.report);
    }
    sl_change_end(index);
    return status;
}
