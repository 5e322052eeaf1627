/* sl_index_merge: one new index with the vectors of others. */
#include "base/params.h"
#include "distance/double.h"
#include "hnsw/construct/add.h"
#include "hnsw/construct/join.h"
#include "hnsw/graph/codes.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/tombstones.h"
#include "hnsw/graph/vectors.h"

#include <math.h>
#include <string.h>

/* No added vector is longer, whatever its codes lost. */
#define MOST_LENGTH 1e19

/* The vectors to copy. Each array has `room` places, and n are filled. */
typedef struct sl_merge {
    sl_index *const *indexes;
    size_t count;
    sl_merge_params params;
    sl_allocator allocator;
    sl_allocator rows;       /* of the new index: for arrays with an entry a vector */
    sl_reading *readings;    /* what the merge reads of each index */
    const sl_graph **graphs; /* of all indexes */
    size_t room, n;
    uint32_t *of, *nodes;
    uint64_t *ids, *tags, *keys; /* tags, keys: NULL if the indexes have none */
    float *floats;               /* one vector */
} sl_merge;

void sl_merge_params_init_sized(sl_merge_params *params, size_t struct_size) {
    const sl_merge_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

static void merge_free(sl_merge *merge) {
    const sl_allocator *allocator = &merge->allocator;
    const sl_allocator *rows = &merge->rows;
    if (merge->floats) SL_FREE_ARRAY(rows, merge->floats, merge->graphs[0]->codec.dim);
    SL_FREE_ARRAY(rows, merge->of, merge->room);
    SL_FREE_ARRAY(rows, merge->nodes, merge->room);
    SL_FREE_ARRAY(rows, merge->ids, merge->room);
    SL_FREE_ARRAY(rows, merge->tags, merge->room);
    SL_FREE_ARRAY(rows, merge->keys, merge->room);
    for (size_t i = 0; merge->readings && i < merge->count; i++)
        if (merge->readings[i].graph) sl_reading_end(&merge->readings[i]);
    SL_FREE_ARRAY(allocator, merge->readings, merge->count);
    SL_FREE_ARRAY(allocator, merge->graphs, merge->count);
}

/* The first property by which rows of one index don't fit the other; NULL: none. */
static const char *first_difference(const sl_graph *a, const sl_graph *b) {
    return a->codec.dim != b->codec.dim         ? "dimensions"
           : a->codec.metric != b->codec.metric ? "metrics"
           : a->codec.dtype != b->codec.dtype   ? "types of vectors"
           : a->codes != b->codes               ? "codes"
           : a->refine != b->refine             ? "refinements"
           : a->has_tags != b->has_tags         ? "tags"
           : a->has_keys != b->has_keys         ? "keys"
           : a->multi != b->multi               ? "rules of vectors an id"
                                                : NULL;
}

static sl_status check_indexes(sl_merge *merge) {
    size_t room = 0;
    for (size_t i = 0; i < merge->count; i++) {
        const sl_graph *graph = merge->graphs[i] = sl_reading_begin(merge->indexes[i], &merge->readings[i]);
        const char *differs = first_difference(merge->graphs[0], graph);
        if (differs)
            return sl_fail(SL_EINVAL, "index 0 and index %zu have different %s; merge indexes that were made alike", i,
                           differs);
        room += sl_undeleted_count(graph);
    }
    if (room > SL_MAX_VECTORS)
        return sl_fail(SL_ELIMIT, "%zu vectors in all; an index holds up to %u", room, SL_MAX_VECTORS);
    merge->room = room;
    return SL_OK;
}

/* Files are verified before vectors are copied, and progress counts vectors. So this only asks whether to go on. */
static int ask_to_go_on(void *ctx, uint64_t done, uint64_t total) {
    const sl_merge *merge = ctx;
    (void)done, (void)total;
    return merge->params.progress ? merge->params.progress(merge->params.progress_ctx, 0, merge->room) : 0;
}

/* Verifies the files before their bytes get new checksums. */
static sl_status verify_files(sl_merge *merge) {
    for (size_t i = 0; i < merge->count; i++) {
        const sl_store *store = merge->indexes[i]->store;
        sl_verified found;
        sl_progress progress;
        if (!store) continue;
        sl_progress_start(&progress, ask_to_go_on, merge, store->size);
        SL_TRY(sl_store_verify_all(store, &found, &progress));
        SL_TRY(sl_progress_end(&progress));
    }
    return SL_OK;
}

static sl_status merge_alloc(sl_merge *merge) {
    const sl_allocator *allocator = &merge->rows;
    const sl_graph *first = merge->graphs[0];
    sl_status status = SL_OK;
    merge->floats = sl_mem_array(allocator, first->codec.dim, sizeof *merge->floats, &status);
    merge->of = sl_mem_array(allocator, merge->room, sizeof *merge->of, &status);
    merge->nodes = sl_mem_array(allocator, merge->room, sizeof *merge->nodes, &status);
    merge->ids = sl_mem_array(allocator, merge->room, sizeof *merge->ids, &status);
    if (first->has_tags) merge->tags = sl_mem_array(allocator, merge->room, sizeof *merge->tags, &status);
    if (first->has_keys) merge->keys = sl_mem_array(allocator, merge->room, sizeof *merge->keys, &status);
    return status;
}

/* The first later index that also has the id; `count`: none has. */
static sl_status find_later(const sl_merge *merge, size_t at, uint64_t id, size_t *later) {
    for (*later = at + 1; *later < merge->count; ++*later) {
        uint32_t node;
        SL_TRY(sl_id_lookup(merge->indexes[*later], merge->graphs[*later], id, &node));
        if (node != SL_NONE) return SL_OK;
    }
    return SL_OK;
}

static uint64_t word_of(const sl_graph *graph, sl_array_kind kind, size_t node) {
    uint64_t word;
    memcpy(&word, sl_array_row(graph, kind, node), sizeof word);
    return word;
}

/* Returns whether an add could have made the row. A mapped file isn't trusted, and a build needs scores that fit single
 * precision. */
static int is_sound(const sl_merge *merge, const sl_graph *graph, uint32_t node) {
    if (!sl_row_is_finite(graph, node)) return 0;
    sl_coded_floats(graph, node, merge->floats);
    const double length = sqrt(sl_dot_double(merge->floats, merge->floats, graph->codec.dim));
    return length <= MOST_LENGTH && (length > 0 || graph->codec.metric != SL_METRIC_COSINE);
}

static sl_status take_vector(sl_merge *merge, size_t at, uint32_t node) {
    const sl_graph *graph = merge->graphs[at];
    const uint64_t id = sl_id_of(graph, node);
    size_t later = merge->count;
    const int may_clash = !graph->multi || merge->params.clash == SL_CLASH_LATER;
    if (may_clash) SL_TRY(find_later(merge, at, id, &later));
    if (later < merge->count && merge->params.clash == SL_CLASH_LATER) return SL_OK;
    if (later < merge->count)
        return sl_fail(
            SL_EEXIST,
            "id %llu is in index %zu and in index %zu; delete it in one, give ids of their own, or let the later win",
            (unsigned long long)id, at, later);
    if (!is_sound(merge, graph, node))
        return sl_fail(SL_ECORRUPT, "index %zu: the vector of id %llu is damaged; build that index again", at,
                       (unsigned long long)id);
    if (merge->n == merge->room) return sl_fail(SL_EBUSY, "index %zu is being written; merge a snapshot of it", at);
    merge->of[merge->n] = (uint32_t)at;
    merge->nodes[merge->n] = node;
    if (merge->tags) merge->tags[merge->n] = word_of(graph, SL_ARRAY_TAGS, node);
    if (merge->keys) merge->keys[merge->n] = word_of(graph, SL_ARRAY_KEYS, node);
    merge->ids[merge->n++] = id;
    return SL_OK;
}

static sl_status take_vectors(sl_merge *merge) {
    for (size_t i = 0; i < merge->count; i++) {
        const sl_graph *graph = merge->graphs[i];
        for (size_t node = sl_next_undeleted(graph, 0); node < graph->n; node = sl_next_undeleted(graph, node + 1))
            SL_TRY(take_vector(merge, i, (uint32_t)node));
    }
    return SL_OK;
}

/* An empty index with the first index's parameters. */
static sl_status create_alike(const sl_merge *merge, sl_index **out) {
    const sl_graph *first = merge->graphs[0];
    const sl_merge_params *asked = &merge->params;
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = first->codec.dim;
    params.metric = first->codec.metric;
    params.dtype = first->codec.dtype;
    params.codes = first->codes;
    params.refine = first->refine;
    params.m = asked->m ? asked->m : first->m;
    params.ef_construction = asked->ef_construction ? asked->ef_construction : first->ef_construction;
    params.seed = first->seed;
    params.clip = sl_codec_of_walks(first)->clip.clip;
    params.clip_share = sl_codec_of_walks(first)->clip.share;
    params.tags = first->has_tags;
    params.keys = first->has_keys;
    params.multi = first->multi;
    params.allocator = &merge->allocator;
    params.max_memory = asked->max_memory;
    params.work_path = asked->work_path;
    params.log = merge->indexes[0]->log;
    params.log_ctx = merge->indexes[0]->log_ctx;
    return sl_index_create(&params, out);
}

static sl_status build_merged(const sl_merge *merge, sl_index *index) {
    sl_copied copied = {
        .graphs = merge->graphs, .count = merge->count, .of = merge->of, .nodes = merge->nodes, .joins = SL_JOIN_NONE};
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = merge->params.threads;
    params.builder = merge->params.builder;
    params.progress = merge->params.progress;
    params.progress_ctx = merge->params.progress_ctx;
    params.tags = merge->tags;
    params.keys = merge->keys;
    SL_TRY(sl_join_choose(&index->graph, &copied, merge->n, &copied.joins));
    SL_TRY(sl_add_copied(index, &copied, merge->n, merge->ids, &params));
    for (size_t i = 0; i < merge->count; i++) {
        const sl_graph *graph = merge->graphs[i];
        sl_quant_error_merge(&index->graph.quant_error, &graph->quant_error);
        if (graph->next_id > index->graph.next_id) index->graph.next_id = graph->next_id;
    }
    SL_TRY(sl_version_reserve(index, 1));
    sl_version_publish_now(index);
    return SL_OK;
}

static sl_status merge_run(sl_merge *merge, sl_index **out) {
    const sl_allocator *allocator = &merge->allocator;
    sl_status status = SL_OK;
    merge->readings = sl_mem_array(allocator, merge->count, sizeof *merge->readings, &status);
    merge->graphs = sl_mem_array(allocator, merge->count, sizeof *merge->graphs, &status);
    if (status == SL_OK) status = check_indexes(merge);
    if (status == SL_OK) status = verify_files(merge);
    if (status == SL_OK) status = create_alike(merge, out);
    if (status != SL_OK) return status;
    merge->rows = (*out)->graph.allocator;
    status = merge_alloc(merge);
    if (status == SL_OK) status = take_vectors(merge);
    if (status == SL_OK) status = build_merged(merge, *out);
    return sl_spill_explain((*out)->spill, status);
}

sl_status sl_index_merge(sl_index *const *indexes, size_t count, const sl_merge_params *params, sl_index **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!indexes || count == 0) return sl_fail(SL_EINVAL, "no indexes to merge; give one or more");
    for (size_t i = 0; i < count; i++)
        if (!indexes[i]) return sl_fail(SL_EINVAL, "index %zu is NULL", i);
    sl_merge merge = {.indexes = indexes, .count = count, .allocator = indexes[0]->graph.allocator};
    sl_merge_params_init(&merge.params);
    SL_TRY(sl_params_in(&merge.params, sizeof merge.params, params, "sl_merge_params_init"));
    if (merge.params.clash != SL_CLASH_REFUSE && merge.params.clash != SL_CLASH_LATER)
        return sl_fail(SL_EINVAL, "clash is %d; give SL_CLASH_REFUSE or SL_CLASH_LATER", (int)merge.params.clash);
    sl_status status = merge_run(&merge, out);
    merge_free(&merge);
    if (status != SL_OK) {
        sl_index_free(*out);
        *out = NULL;
    }
    return status;
}
