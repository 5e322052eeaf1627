#include "hnsw/construct/add.h"

#include "base/clock.h"
#include "base/failure.h"
#include "base/params.h"
#include "distance/codec/encode.h"
#include "distance/codec/encode4.h"
#include "distance/codec/vector_check.h"
#include "hnsw/construct/from_leaves.h"
#include "hnsw/construct/imported_graph.h"
#include "hnsw/construct/link_rows.h"
#include "hnsw/construct/points.h"
#include "hnsw/construct/reach.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/construct/replaced.h"
#include "hnsw/construct/undo.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/checksums.h"
#include "hnsw/graph/codes.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/reserve.h"
#include "hnsw/graph/tags.h"
#include "hnsw/graph/tombstones.h"
#include "hnsw/graph/upper.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/graph/version.h"
#include "hnsw/place/replicas.h"
#include "hnsw/search/start_nodes.h"

#include <string.h>

void sl_add_params_init_sized(sl_add_params *params, size_t struct_size) {
    const sl_add_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

static const void *row_of(const sl_build *build, size_t i) {
    return build->vectors + i * build->stride;
}

/* The rows that this process checks and encodes. */
static sl_range rows_mine(const sl_build *build) {
    return sl_share_mine(build->index->graph.ranks, build->n, SL_POINTS_UNIT);
}

/* Checks rows on all threads. The first bad row gives the error. `what` names the rows. */
static sl_status check_matrix(const sl_build *build, const uint8_t *rows, const char *what) {
    const sl_range mine = rows_mine(build);
    sl_metric metric = build->index->graph.codec.metric;
    size_t dim = build->index->graph.codec.dim;
    sl_failure bad;
    sl_failure_init(&bad);
#pragma omp parallel for schedule(static) num_threads((int)build->threads) if (build->threads > 1)
    for (size_t i = mine.first; i < mine.end; i++)
        if (!sl_failure_before(&bad, i))
            sl_failure_keep(&bad, i, sl_vector_check(metric, build->dtype, rows + i * build->stride, dim));
    if (bad.status == SL_OK) return SL_OK;
    return sl_fail_in(sl_failure_pass(&bad), "%s %zu", what, bad.at);
}

static sl_status check_rows(const sl_build *build) {
    SL_TRY(check_matrix(build, build->vectors, "row"));
    return build->old != build->vectors ? check_matrix(build, build->old, "row of old") : SL_OK;
}

static void encode_vector(sl_build *build, size_t i, size_t thread) {
    sl_index *index = build->index;
    uint32_t node = sl_build_node(build, i);
    float *floats = build->floats + thread * index->graph.codec.dim;
    if (index->graph.codec.codes == SL_CODES_I4) {
        sl_to_float(build->dtype, row_of(build, i), floats, index->graph.codec.dim);
        sl_encode_row4(&index->graph.codec, floats, sl_row(&index->graph, node), sl_rest_row(&index->graph, node),
                       &build->errors[thread]);
    } else {
        sl_encode_row(&index->graph.codec, row_of(build, i), build->dtype, sl_row(&index->graph, node), floats,
                      &build->errors[thread]);
    }
    if (!sl_has(&index->graph, SL_ARRAY_REFINE)) return;
    uint8_t *to = sl_array_row(&index->graph, SL_ARRAY_REFINE, node);
    if (index->graph.refine == SL_REFINE_I16) {
        sl_encode_row(&index->graph.refine_codec, row_of(build, i), build->dtype, to, floats, NULL);
        return;
    }
    sl_to_float(build->dtype, row_of(build, i), floats, index->graph.codec.dim);
    if (index->graph.refine == SL_REFINE_F32)
        memcpy(to, floats, index->graph.codec.dim * sizeof(float));
    else
        sl_encode_residual(&index->graph.codec, sl_row(&index->graph, node), floats, (void *)to);
}

/* Copies a node's row of each array. A row from a record has no padding and may be shorter: the bytes behind it become
 * 0. */
static void copy_row(const sl_build *build, size_t i) {
    const sl_graph *graph = &build->index->graph, *from = build->copied->graphs[build->copied->of[i]];
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const unsigned both = SL_ARRAY_COPIED | SL_ARRAY_ADDED;
        if ((sl_array_lines[kind].flags & both) != both || !graph->arrays[kind].at) continue;
        const size_t size = graph->arrays[kind].size, given = from->arrays[kind].size;
        uint8_t *to = sl_array_row(graph, kind, (uint32_t)(build->first + i));
        memcpy(to, sl_array_row(from, kind, build->copied->nodes[i]), given < size ? given : size);
        if (given < size) memset(to + given, 0, size - given);
    }
}

/* Writes all rows of a node, whose id is already there. */
static void encode_row(sl_build *build, size_t i, size_t thread) {
    sl_index *index = build->index;
    uint32_t node = sl_build_node(build, i);
    if (build->copied)
        copy_row(build, i);
    else
        encode_vector(build, i, thread);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (index->graph.arrays[kind].at && sl_array_lines[kind].derive)
            sl_array_lines[kind].derive(&index->graph, node, sl_array_row(&index->graph, kind, node));
}

/* Marks all rows of nodes [first, first + n) as changed, except rows that are made later. */
static void touch_nodes(const sl_index *index, size_t first, size_t n) {
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        if (!(sl_array_lines[kind].flags & SL_ARRAY_ADDED)) continue;
        const sl_span rows = sl_array_span(&index->graph, kind, first, n);
        sl_index_touch(index, rows.at, rows.size);
    }
}

/* Gives every rank the rows that the others have encoded, and the sum of all errors. */
static sl_status gather_rows(sl_build *build) {
    const sl_graph *graph = &build->index->graph;
    const sl_ranks *ranks = graph->ranks;
    if (!ranks) return SL_OK;
    for (size_t t = 1; t < build->threads; t++)
        sl_quant_error_merge(&build->errors[0], &build->errors[t]);
    sl_status status = SL_OK;
    sl_quant_error *all = sl_mem_array(&graph->allocator, ranks->ranks, sizeof *all, &status);
    if (status == SL_OK) all[ranks->rank] = build->errors[0];
    status = sl_share_gather(ranks, status, all, sizeof *all, ranks->ranks, 1);
    memset(build->errors, 0, build->threads * sizeof *build->errors);
    for (size_t r = 0; r < ranks->ranks && status == SL_OK; r++)
        sl_quant_error_merge(&build->errors[0], &all[r]);
    SL_FREE_ARRAY(&graph->allocator, all, ranks->ranks);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const unsigned both = SL_ARRAY_COPIED | SL_ARRAY_ADDED;
        if ((sl_array_lines[kind].flags & both) != both || !graph->arrays[kind].at || sl_is_parted(graph, kind))
            continue;
        status = sl_share_gather(ranks, status, sl_array_row(graph, kind, (uint32_t)build->first),
                                 graph->arrays[kind].step, build->n, SL_POINTS_UNIT);
    }
    return status;
}

/* The same for the rows that got free places. */
static void touch_places(const sl_build *build) {
    for (size_t i = 0; build->places && i < build->n; i++)
        if (build->places[i] < build->first) touch_nodes(build->index, build->places[i], 1);
}

static void put_words(const sl_build *build, sl_array_kind kind, const uint64_t *words) {
    const sl_graph *graph = &build->index->graph;
    if (!build->places) sl_words_put(graph, kind, build->first, build->n, words);
    for (size_t i = 0; build->places && i < build->n; i++)
        sl_words_put(graph, kind, build->places[i], 1, words ? words + i : NULL);
}

static sl_status encode_rows(sl_build *build) {
    const sl_range mine = rows_mine(build);
#pragma omp parallel for schedule(static) num_threads((int)build->threads) if (build->threads > 1)
    for (size_t i = mine.first; i < mine.end; i++)
        encode_row(build, i, sl_thread_number());
    SL_TRY(gather_rows(build));
    put_words(build, SL_ARRAY_TAGS, build->tags);
    put_words(build, SL_ARRAY_KEYS, build->keys);
    if (build->index->writer) sl_links_clear(&build->index->graph, build->first, build->appended);
    touch_nodes(build->index, build->first, build->appended);
    touch_places(build);
    for (size_t t = 0; t < build->threads; t++)
        sl_quant_error_merge(&build->index->graph.quant_error, &build->errors[t]);
    return SL_OK;
}

/* Returns whether the batch is less than a sixteenth of the nodes before it. After a larger batch the whole graph is
 * proved. However vectors come, these proofs read each link a bounded number of times. */
static int is_small(const sl_build *build) {
    return build->n < build->first / 16;
}

/* Makes inserts look for other paths to the ends of dropped links (detours.h), if few nodes are inserted and no proof
 * of the whole graph is owed. */
static void watch_lists(sl_build *build) {
    const sl_index *index = build->index;
    if (index->unverified || !is_small(build) || build->imported) return;
    if (sl_build_is_from_leaves(index, build->builder, build->first, build->n)) return;
    for (size_t t = 0; t < build->threads; t++)
        sl_detours_watch(&build->inserts[t].detours, build->first);
}

static void stop_watching(sl_build *build) {
    for (size_t t = 0; t < build->threads; t++)
        build->inserts[t].detours.watches = 0;
}

/* Links open ends, so that all nodes are reachable. That fails if the inserts didn't look for detours, or if an
 * end stays open. The new nodes then count as unverified, and sl_reach_settle later proves the whole graph. `before`:
 * the entry point before the add, which a new entry point must reach. */
static void close_open_ends(sl_build *build, sl_entry before) {
    sl_index *index = build->index;
    sl_insert *insert = &build->inserts[0];
    const uint32_t entry = sl_entry_get(&index->graph).node;
    int proved = insert->detours.watches;
    if (proved && entry != before.node) sl_detours_open(&insert->detours, entry, before.node);
    for (size_t t = 0; t < build->threads && proved; t++)
        proved = sl_reach_close(insert, &build->inserts[t].detours);
    if (!proved) index->unverified += build->n;
}

/* Raises the number of nodes. If searches run, the new nodes are hidden until all are linked. Searches pass them, since
 * lists give up other links for links to them. */
static void add_nodes(sl_build *build) {
    sl_index *index = build->index;
    sl_publishing_lock(index);
    build->linked = 1;
    index->graph.n += build->appended;
    sl_tombstones_extend(index, build->first);
    if (build->hides) {
        sl_nodes_hide(index, build->first, build->appended);
        build->hidden = 1;
        sl_version_publish(index);
    }
    sl_publishing_unlock(index);
}

/* Without deletes, by this handle or before it, no id had another vector. Then births need not be noted. */
static void note_births(const sl_build *build) {
    sl_index *index = build->index;
    const uint64_t epoch = sl_epochs_now(&index->versions->epochs) + 1;
    const size_t hidden = build->hidden ? build->appended : 0;
    const int may_return = index->has_deleted || index->graph.deleted_count > hidden;
    if (!may_return || !index->graph.lives.nodes) return;
    for (size_t node = build->first; node < build->first + build->appended; node++)
        sl_life_begin(index, node, epoch);
}

static void show_nodes(sl_build *build) {
    if (build->hidden) sl_nodes_show(build->index, build->first, build->appended);
    build->hidden = 0;
}

static void take_back_nodes(sl_build *build) {
    sl_publishing_lock(build->index);
    if (build->hidden) sl_nodes_take_back(build->index, build->first, build->appended);
    build->hidden = 0;
    sl_publishing_unlock(build->index);
}

/* Shows the rows that got free places, or leaves them deleted: lists may name them, so they have to leave the graph
 * like others. */
static void settle_places(const sl_build *build, int shows) {
    sl_index *index = build->index;
    const uint64_t epoch = sl_epochs_now(&index->versions->epochs) + 1;
    for (size_t i = 0; build->places && i < build->n; i++) {
        const uint32_t node = build->places[i];
        if (node >= build->first) continue;
        sl_life_begin(index, node, epoch);
        if (!shows) {
            sl_life_end(index, node, epoch);
            index->freed_until = epoch; /* no undelete shows it */
            continue;
        }
        sl_tombstone_flip(index, node);
        index->graph.deleted_count--;
        index->reused += node < index->ordered;
    }
    index->graph.free_count = index->free.count;
}

static sl_status build_nodes(sl_build *build, const uint64_t *ids) {
    sl_index *index = build->index;
    sl_entry entry = index->graph.n ? sl_entry_get(&index->graph) : (sl_entry){0, SL_NONE, 0};
    uint64_t next_id = index->graph.next_id;
    sl_quant_error error = index->graph.quant_error;
    SL_TRY(sl_publish_reserve_nodes(index, build->appended));
    sl_replicas_drop(index); /* the upper layers change next */
    const uint8_t *levels = build->imported ? build->imported->levels : NULL;
    SL_TRY(sl_upper_extend(index, build->first, build->first + build->appended, levels));
    const sl_new_ids rows = {
        .ids = ids, .n = build->n, .places = build->places, .replace = build->replace != SL_REPLACE_NONE};
    sl_status status = sl_ids_append(index, &rows);
    if (status != SL_OK) {
        sl_upper_truncate(&index->graph, build->first);
        return status;
    }
    status = encode_rows(build);
    const sl_new_rows coded = {
        .first = build->first, .appended = build->appended, .places = build->places, .n = build->n};
    if (status == SL_OK) status = sl_codes_extend(index, &coded, build->threads);
    if (status != SL_OK) {
        sl_upper_truncate(&index->graph, build->first);
        sl_ids_undo(index, &rows, next_id);
        index->graph.quant_error = error;
        return status;
    }
    add_nodes(build);
    sl_publish_nodes(index);
    __atomic_store_n(&index->added, index->added + build->n, __ATOMIC_RELAXED);
    watch_lists(build);
    status = sl_build_link_rows(build);
    if (status == SL_OK) status = sl_progress_end(&build->progress);
    if (status != SL_OK) {
        stop_watching(build);
        take_back_nodes(build);
        sl_build_undo(build, entry, next_id);
        index->graph.quant_error = error;
        sl_publish_nodes(index);
    }
    close_open_ends(build, entry);
    sl_publish_linked(index, index->graph.n);
    return status;
}

/* Proves reachability if a proof is pending. If that fails, sl_index_sync, sl_index_save and sl_index_check try
 * again. */
static void prove_if_pending(sl_index *index) {
    if (sl_reach_settle(index) == SL_OK) return;
    if (index->log) index->log(index->log_ctx, SL_LOG_WARN, "reachability not proved for want of memory; save will");
}

static sl_status check_limit(const sl_graph *graph, size_t n) {
    if (n <= SL_MAX_VECTORS - graph->n) return SL_OK;
    return sl_fail(SL_ELIMIT, "%zu vectors and %zu more; an index holds up to %u", graph->n, n, SL_MAX_VECTORS);
}

static sl_status check_input(const sl_graph *graph, const void *vectors, sl_dtype dtype, size_t stride) {
    if (!vectors) return sl_fail(SL_EINVAL, "vectors is NULL");
    SL_TRY(sl_codec_accepts(&graph->codec, dtype));
    return sl_check_stride(vectors, dtype, graph->codec.dim, stride);
}

static sl_status check_replace(const sl_add_params *params) {
    if ((unsigned)params->replace > SL_REPLACE_ONE)
        return sl_fail(SL_EINVAL, "replace %d is none of sl_replace", params->replace);
    if (params->old && params->replace != SL_REPLACE_ONE)
        return sl_fail(SL_EINVAL, "old names single vectors; give SL_REPLACE_ONE, or leave old NULL");
    return SL_OK;
}

/* Doubles the capacity when it runs out, so adding a few at a time copies each vector a bounded number of times. */
static sl_status grow_capacity(sl_index *index, size_t n) {
    size_t need = index->graph.n + n, room = 2 * index->graph.capacity;
    if (need <= index->graph.capacity) return SL_OK;
    if (room > SL_MAX_VECTORS) room = SL_MAX_VECTORS;
    if (room > need && sl_capacity_reserve(index, room) == SL_OK) return SL_OK;
    return sl_capacity_reserve(index, need);
}

/* Linking from leaves numbers the nodes first. That time counts as numbering. */
static void report_times(const sl_build *build, int64_t start, int64_t linked, sl_add_times *out) {
    const sl_add_times mine = {.linking = 1e-9 * (double)(linked - start - build->numbering_ns),
                               .numbering = 1e-9 * (double)(sl_now_ns() - linked + build->numbering_ns)};
    if (out) sl_params_out(out, &mine, sizeof mine);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Free places
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns whether rows may get free places. A save may read free places. */
static int may_reuse(const sl_build *build) {
    const sl_index *index = build->index;
    return index->free.count && !build->copied && !index->graph.ranks && !sl_version_places_stay(index) &&
           !sl_build_is_from_leaves(index, build->builder, build->first, build->n);
}

/* The places that a row may have: those of its nearest partition, which scans look for it in. Under IP a partition's
 * nodes are in order of length, so there it has none. */
static sl_range own_places(sl_build *build, size_t i, uint8_t *scratch) {
    const sl_graph *graph = &build->index->graph;
    const sl_partitions *partitions = &graph->partitions;
    const sl_query row = {row_of(build, i), build->dtype};
    sl_walk *walk = &build->inserts[0].walk;
    if (!partitions->count) return (sl_range){0, graph->n};
    if (!scratch || partitions->band_bits) return (sl_range){0, 0};
    sl_walk_set_query(walk, row, SL_ENCODE_BOTH);
    const sl_range near = sl_start_nodes(walk, row, scratch);
    if (near.first >= near.end) return near;
    return sl_partition_nodes(partitions, sl_partition_of(partitions, near.first), graph->n);
}

static uint32_t take_place(sl_index *index, sl_range range) {
    const size_t node = range.first < range.end ? sl_node_set_next(&index->free, range) : range.end;
    if (node == range.end) return SL_NONE;
    sl_node_set_remove(&index->free, node);
    return (uint32_t)node;
}

/* Gives each row a free place, or else the next one behind the last node. */
static sl_status choose_places(sl_build *build) {
    sl_index *index = build->index;
    const sl_allocator *allocator = &index->graph.allocator;
    const size_t scratch_bytes = sl_start_nodes_scratch(&index->graph);
    const sl_range rest = sl_partition_rest(&index->graph.partitions, index->graph.n);
    void *scratch = NULL;
    sl_status status = SL_OK;
    build->appended = build->n;
    SL_TRY(sl_free_nodes_load(index));
    if (!may_reuse(build)) return SL_OK;
    SL_TRY(sl_lives_reserve(index));
    if (scratch_bytes) SL_TRY(sl_mem_alloc(allocator, scratch_bytes, &scratch));
    build->places = sl_mem_array(allocator, build->n, sizeof *build->places, &status);
    if (status == SL_OK) build->appended = 0;
    for (size_t i = 0; i < build->n && status == SL_OK; i++) {
        uint32_t place = take_place(index, own_places(build, i, scratch));
        if (place == SL_NONE && index->graph.partitions.count) place = take_place(index, rest);
        /* Rather than fail, a full file takes a place that scans don't look in for the vector. */
        if (place == SL_NONE && index->writer && build->first + build->appended == index->graph.capacity)
            place = take_place(index, (sl_range){0, index->graph.n});
        build->places[i] = place != SL_NONE ? place : (uint32_t)(build->first + build->appended++);
    }
    sl_mem_free(allocator, scratch, scratch_bytes);
    return status;
}

/* Makes places free again that a call took and never filled. */
static void return_places(const sl_build *build) {
    sl_index *index = build->index;
    sl_publishing_lock(index);
    for (size_t i = 0; build->places && i < build->n; i++) {
        if (build->places[i] >= build->first) continue;
        sl_node_wipe(index, build->places[i]);
        sl_node_set_add(&index->free, build->places[i]);
    }
    sl_publishing_unlock(index);
}

/* Checks the build's rows, and adds them with these ids. */
static sl_status check_and_build(sl_build *build, const uint64_t *ids) {
    sl_index *index = build->index;
    sl_status status = build->copied ? SL_OK : check_rows(build);
    if (status == SL_OK && !index->writer) status = grow_capacity(index, build->n);
    build->hides = sl_version_is_read(index) && !sl_index_is_direct(index);
    if (status == SL_OK) status = sl_version_reserve(index, build->hides ? 2 : 1);
    if (status == SL_OK && build->hides) status = sl_lives_reserve(index);
    if (status == SL_OK) status = sl_build_alloc(build);
    if (status == SL_OK) status = sl_replaced_list(build, ids);
    status = sl_ranks_agree(index->graph.ranks, status);
    if (status == SL_OK) status = choose_places(build);
    if (status == SL_OK && index->writer) status = grow_capacity(index, build->appended);
    build->changed = status == SL_OK;
    if (status == SL_OK) status = build_nodes(build, ids);
    sl_build_free(build);
    return status;
}

/* Makes the new rows visible, or what undoing them has left. The vectors that they replace go in the same step. A call
 * that has failed early has changed nothing. */
static void publish_rows(sl_build *build, sl_status status) {
    sl_index *index = build->index;
    if (!build->changed) return;
    sl_publishing_lock(index);
    if (status == SL_OK && build->replaced.count) {
        sl_nodes_replace(index, &build->replaced, build->first, build->appended);
        for (size_t i = 0; i < build->n; i++)
            sl_id_put(index, sl_build_node(build, i));
    }
    if (status == SL_OK) note_births(build);
    show_nodes(build);
    if (build->linked) settle_places(build, status == SL_OK);
    sl_version_publish(index);
    sl_publishing_unlock(index);
}

/* A full file refuses adds until deleted nodes have left the graph, however few they are. Each refused add does a part
 * of that work. */
static void make_places(sl_index *index) {
    enum { LISTS = 4096 };
    int waits;
    (void)sl_reclaim_some(index, LISTS, &waits);
}

/* Adds the build's rows with these ids: checks, links, proves and renumbers. */
static sl_status add_rows(sl_build *build, const uint64_t *ids, const sl_add_params *params) {
    sl_index *index = build->index;
    const int64_t start = sl_now_ns();
    if (params->times) SL_TRY(sl_params_check_out(params->times, "sl_add_times"));
    build->first = index->graph.n;
    build->tags = params->tags;
    build->keys = params->keys;
    build->builder = params->builder;
    build->replace = (sl_replace)params->replace;
    build->old = params->old ? params->old : build->vectors;
    build->threads = sl_thread_count(params->threads);
    if (build->threads > build->n) build->threads = build->n;
    sl_progress_start(&build->progress, params->progress, params->progress_ctx, build->n);
    sl_status status = check_and_build(build, ids);
    const int64_t linked = sl_now_ns();
    if (status == SL_OK || status == SL_ECANCELED) prove_if_pending(index);
    /* The first vectors are numbered before anybody sees them, because that takes no second copy of the arrays. */
    const int is_first = !sl_version_is_read(index);
    if (!is_first) publish_rows(build, status);
    /* Renumbers if more vectors came than half the number of nodes. So each is moved a bounded number of times. */
    index->threads = params->threads;
    if (status == SL_OK) sl_renumber_settle(index, 8, params->threads, &build->progress);
    if (is_first) publish_rows(build, status);
    sl_node_list_free(&build->replaced, &index->graph.allocator);
    if (!build->linked) return_places(build);
    if (build->places) SL_FREE_ARRAY(&index->graph.allocator, build->places, build->n);
    build->places = NULL;
    if (status == SL_OK) sl_reclaim_step(index, build->n);
    if (status == SL_ELIMIT && index->writer) make_places(index);
    sl_renumber_compact(index, SL_MOST_FREE);
    if (status == SL_OK) report_times(build, start, linked, params->times);
    return status;
}

static sl_status add_copied(sl_index *index, const sl_copied *copied, size_t n, const uint64_t *ids,
                            const sl_add_params *params) {
    sl_build build = {.index = index, .copied = copied, .n = n};
    if (n == 0) return SL_OK;
    SL_TRY(check_limit(&index->graph, n));
    SL_TRY(sl_build_check_builder(index, params->builder, n));
    return add_rows(&build, ids, params);
}

sl_status sl_add_copied(sl_index *index, const sl_copied *copied, size_t n, const uint64_t *ids,
                        const sl_add_params *params) {
    return sl_spill_explain(index->spill, add_copied(index, copied, n, ids, params));
}

/* `build` has the arguments of the call, unchecked. */
static sl_status add_vectors(sl_build *build, const uint64_t *ids, const sl_add_params *params) {
    sl_index *index = build->index;
    sl_add_params mine;
    sl_add_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_add_params_init"));
    SL_TRY(check_replace(&mine));
    SL_TRY(sl_words_check(&index->graph, SL_ARRAY_TAGS, mine.tags != NULL));
    SL_TRY(sl_words_check(&index->graph, SL_ARRAY_KEYS, mine.keys != NULL));
    if (build->n == 0) return SL_OK;
    SL_TRY(check_input(&index->graph, build->vectors, build->dtype, build->stride));
    if (mine.old) SL_TRY(sl_check_stride(mine.old, build->dtype, index->graph.codec.dim, build->stride));
    SL_TRY(sl_build_check_builder(index, mine.builder, build->n));
    SL_TRY(check_limit(&index->graph, build->n));
    if (!build->stride) build->stride = index->graph.codec.dim * sl_dtype_size(build->dtype);
    return add_rows(build, ids, &mine);
}

sl_status sl_add_imported(sl_index *index, const sl_imported_graph *imported, const uint64_t *ids,
                          const sl_add_params *params) {
    sl_build build = {.index = index,
                      .imported = imported,
                      .vectors = imported->vectors.vector,
                      .dtype = imported->vectors.dtype,
                      .n = imported->n,
                      .stride = imported->stride};
    return sl_spill_explain(index->spill, add_vectors(&build, ids, params));
}

sl_status sl_index_add(sl_index *index, const void *vectors, sl_dtype dtype, size_t n, size_t stride,
                       const uint64_t *ids, const sl_add_params *params) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_index_writable(index));
    sl_look_ahead ahead;
    sl_build build = {.index = index, .vectors = vectors, .dtype = dtype, .n = n, .stride = stride, .ahead = &ahead};
    sl_look_ahead_begin(&ahead, index, (sl_query){n == 1 ? vectors : NULL, dtype}, stride);
    sl_status status = sl_change_begin(index);
    if (status == SL_OK) {
        sl_look_ahead_check(&ahead);
        status = sl_spill_explain(index->spill, add_vectors(&build, ids, params));
        sl_change_end(index);
    }
    sl_look_ahead_end(&ahead);
    return status;
}

sl_status sl_build_count_bytes(sl_index *index, sl_builder builder, size_t threads, int alike, sl_build_bytes *bytes) {
    const sl_graph *graph = &index->graph;
    const size_t thread = sizeof(sl_insert) + graph->codec.dim * sizeof(float) + sizeof(sl_quant_error);
    size_t insert, leaves, order;
    SL_TRY(sl_insert_bytes(index, &insert));
    SL_TRY(sl_renumber_bytes(graph, threads, &order));
    const size_t scratch = threads * (thread + insert) + sizeof(sl_build_locks);
    const size_t coding = scratch + sl_codes_bytes(graph, graph->n, threads);
    const size_t proof = sl_reach_bytes(graph, graph->n, 1) + sizeof(sl_build_locks) + insert;
    if (!sl_build_is_from_leaves(index, builder, 0, graph->n)) {
        *bytes = (sl_build_bytes){sl_larger(coding, sl_larger(proof, order)), 0};
        return SL_OK;
    }
    SL_TRY(sl_from_leaves_bytes(graph, threads, alike, &leaves));
    *bytes = (sl_build_bytes){sl_larger(coding, scratch + order), sl_larger(scratch + leaves, proof)};
    return SL_OK;
}
