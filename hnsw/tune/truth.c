#include "hnsw/tune/truth.h"

#include "hnsw/graph/ids.h"
#include "hnsw/graph/tombstones.h"
#include "hnsw/graph/vectors.h"

#include <math.h>
#include <string.h>

/* Vectors are decoded in blocks of this many bytes. */
#define BLOCK_BYTES ((size_t)1 << 20)

/* Writes k nodes as the query's row of the truth. The heap that orders results sorts it. */
static sl_status write_row(sl_tune_task *task, size_t q, sl_top *top) {
    uint64_t *row = task->truth + q * task->k;
    sl_top_sort(top);
    for (size_t i = 0; i < task->k; i++) {
        uint64_t node = (uint64_t)-top->entries[i].score;
        if (i && row[i - 1] >> 32 == node)
            return sl_fail(SL_EINVAL, "truth of query %zu names id %llu twice", q,
                           (unsigned long long)sl_id_of(&task->index->graph, (uint32_t)node));
        row[i] = node << 32 | top->entries[i].id;
    }
    return SL_OK;
}

/* Reads the ids of all queries' true neighbours.
 * Parameters: nodes: 1: they are node numbers already. */
static sl_status read_ids(sl_tune_task *task, const uint64_t *ids, int nodes) {
    const sl_allocator *allocator = &task->index->graph.allocator;
    const size_t k = task->k;
    sl_top top = {.k = k};
    sl_status status = SL_OK;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, k * sizeof *top.entries, &block));
    top.entries = block;
    for (size_t q = 0; q < task->nq; q++) {
        top.size = 0;
        for (size_t i = 0; i < k; i++) {
            uint64_t id = ids[q * k + i];
            uint32_t node = (uint32_t)id;
            if (nodes && id >= task->index->graph.n) {
                /* No id was found, because a double can't hold the score */
                status = sl_fail(SL_EVALUE, "query %zu is too far from the vectors for a score; scale them down", q);
                goto done;
            }
            if (!nodes && (status = sl_id_find(task->index, &task->index->graph, id, &node)) != SL_OK) {
                if (status == SL_ENOTFOUND)
                    status =
                        sl_fail(status,
                                "truth of query %zu: id %llu is not in the index; give the ids of its vectors, not "
                                "their row numbers in the base",
                                q, (unsigned long long)id);
                goto done;
            }
            sl_top_push(&top, -(double)sl_tune_id_node(task, node), i);
        }
        SL_TRY_GOTO(write_row(task, q, &top), done);
    }
done:
    sl_mem_free(allocator, block, k * sizeof *top.entries);
    return status;
}

/* Returns the type in which queries and vectors are compared: the index's own integers, or floats. */
static sl_dtype exact_type(const sl_graph *graph) {
    return sl_dtype_is_float(graph->codec.dtype) ? SL_F32 : graph->codec.dtype;
}

/* Creates an exact scan for the `each` nearest vectors. Queries of another floating-point type are copied as floats. */
static sl_status create_scan(const sl_tune_task *task, size_t each, sl_exact **out) {
    const sl_index *index = task->index;
    const size_t dim = index->graph.codec.dim;
    sl_exact_params params;
    sl_exact_params_init(&params);
    params.dim = dim;
    params.metric = index->graph.codec.metric;
    params.dtype = exact_type(&index->graph);
    params.k = each;
    params.threads = task->threads;
    params.allocator = &index->graph.allocator;
    if (params.dtype == task->dtype) return sl_exact_create(&params, task->queries, task->nq, task->stride, out);
    size_t bytes;
    void *block;
    *out = NULL;
    if (!sl_mul(task->nq, dim * sizeof(float), &bytes))
        return sl_fail(SL_ENOMEM, "%zu queries do not fit the address space", task->nq);
    SL_TRY(sl_mem_alloc(&index->graph.allocator, bytes, &block));
    for (size_t q = 0; q < task->nq; q++)
        sl_to_float(task->dtype, task->queries + q * task->stride, (float *)block + q * dim, dim);
    sl_status status = sl_exact_create(&params, block, task->nq, 0, out);
    sl_mem_free(&index->graph.allocator, block, bytes);
    return status;
}

/* Scans all nodes that are not deleted. The scan gives them new numbers; nodes[i] is the node with number i. */
static sl_status scan_all(sl_tune_task *task, sl_exact *exact, uint32_t *nodes, uint64_t units) {
    const sl_index *index = task->index;
    const sl_dtype dtype = exact_type(&index->graph);
    size_t row = index->graph.codec.dim * sl_dtype_size(dtype), room = BLOCK_BYTES / row + 1;
    if (room > index->graph.n) room = index->graph.n;
    sl_status status = SL_OK;
    void *block;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, room * row, &block));
    size_t first = 0, before = 0;
    for (size_t node = sl_next_undeleted(&index->graph, 0), count; node < index->graph.n;
         first += count, before = node) {
        for (count = 0; count < room && node < index->graph.n; node = sl_next_undeleted(&index->graph, node + 1)) {
            sl_vector_of(&index->graph, (uint32_t)node, dtype, (char *)block + count * row);
            nodes[first + count++] = (uint32_t)node;
        }
        SL_TRY_GOTO(sl_exact_scan(exact, block, count, 0, first), done);
        double done_before = (double)before / (double)index->graph.n,
               done_now = fmin(1, (double)node / (double)index->graph.n);
        sl_progress_step(&task->progress,
                         (uint64_t)((double)units * done_now) - (uint64_t)((double)units * done_before));
        if (sl_progress_cancelled(&task->progress)) SL_TRY_GOTO(sl_progress_end(&task->progress), done);
    }
done:
    sl_mem_free(&index->graph.allocator, block, room * row);
    return status;
}

/* Moves the first k different nodes of each query's `each` to the front of `ids`. Nodes with the same id count once.
 * Returns the smallest number that a query has. */
static size_t keep_different(const sl_tune_task *task, const uint32_t *nodes, size_t each, uint64_t *ids) {
    size_t fewest = task->k;
    for (size_t q = 0; q < task->nq; q++) {
        const uint64_t *from = ids + q * each;
        uint64_t *to = ids + q * task->k;
        size_t kept = 0;
        for (size_t i = 0; i < each && kept < task->k; i++) {
            const uint64_t node = from[i] == SL_NO_ID ? SL_NO_ID : sl_tune_id_node(task, nodes[from[i]]);
            size_t same = task->first_of && node != SL_NO_ID ? 0 : kept;
            while (same < kept && to[same] != node)
                same++;
            if (same == kept && (node != SL_NO_ID || !task->first_of)) to[kept++] = node;
        }
        if (kept < fewest) fewest = kept;
    }
    return fewest;
}

/* Scans all nodes for the `each` nearest, and keeps the first k different ones. *fewest becomes the smallest number
 * that a query has. If that's less than k, the truth stays empty. */
static sl_status scan_nearest(sl_tune_task *task, size_t each, uint64_t units, size_t *fewest) {
    const sl_allocator *allocator = &task->index->graph.allocator;
    size_t all, nodes_bytes = task->index->graph.n * sizeof(uint32_t);
    sl_exact *exact;
    void *block = NULL, *nodes = NULL;
    sl_status status;
    if (!sl_mul(task->nq, each * sizeof(uint64_t), &all))
        return sl_fail(SL_ENOMEM, "%zu queries with k %zu do not fit the address space", task->nq, each);
    SL_TRY(create_scan(task, each, &exact));
    SL_TRY_GOTO(sl_mem_alloc(allocator, all, &block), done);
    SL_TRY_GOTO(sl_mem_alloc(allocator, nodes_bytes, &nodes), done);
    SL_TRY_GOTO(scan_all(task, exact, nodes, units), done);
    SL_TRY_GOTO(sl_exact_results(exact, block, NULL), done);
    *fewest = keep_different(task, nodes, each, block);
    if (*fewest == task->k) SL_TRY_GOTO(read_ids(task, block, 1), done);
done:
    sl_mem_free(allocator, nodes, nodes_bytes);
    sl_mem_free(allocator, block, all);
    sl_exact_free(exact);
    return status;
}

/* Further vectors of the same id don't count, so the scan may have to look for more than k. */
static sl_status find_true_neighbours(sl_tune_task *task, uint64_t units) {
    const size_t n = sl_undeleted_count(&task->index->graph);
    size_t each = task->k, fewest = 0;
    SL_TRY(scan_nearest(task, each, units, &fewest));
    while (fewest < task->k) {
        if (each >= n)
            return sl_fail(SL_EINVAL, "k is %zu, but the index holds %zu ids; tune for a smaller k", task->k, fewest);
        if (each >= SL_MAX_EF)
            return sl_fail(SL_ELIMIT, "a query has %zu ids among its %zu nearest vectors; give the truth", fewest,
                           each);
        each = 2 * each < SL_MAX_EF ? 2 * each : SL_MAX_EF;
        SL_TRY(scan_nearest(task, each, 0, &fewest));
    }
    return SL_OK;
}

/* Chooses the first node of each id, if ids have several. */
static sl_status choose_first_nodes(sl_tune_task *task) {
    const sl_graph *graph = &task->index->graph;
    sl_node_list found = {0};
    sl_status status = SL_OK;
    void *block;
    if (!sl_ids_repeat(graph)) return SL_OK;
    SL_TRY(sl_mem_alloc(&graph->allocator, graph->n * sizeof *task->first_of, &block));
    task->first_of = block;
    memset(block, 0xff, graph->n * sizeof *task->first_of);
    for (size_t node = 0; node < graph->n && status == SL_OK; node++) {
        if (task->first_of[node] != SL_NONE) continue;
        task->first_of[node] = (uint32_t)node;
        if (sl_is_deleted(graph, node)) continue;
        found.count = 0;
        status = sl_id_nodes(task->index, graph, sl_id_of(graph, (uint32_t)node), &found);
        for (size_t i = 0; i < found.count; i++)
            if (found.nodes[i] < graph->n) task->first_of[found.nodes[i]] = (uint32_t)node;
    }
    sl_node_list_free(&found, &graph->allocator);
    return status;
}

sl_status sl_tune_truth(sl_tune_task *task, const uint64_t *ids, uint64_t units) {
    size_t bytes;
    void *block;
    if (!sl_mul(task->nq, task->k * sizeof *task->truth, &bytes))
        return sl_fail(SL_ENOMEM, "%zu queries with k %zu do not fit the address space", task->nq, task->k);
    SL_TRY(sl_mem_alloc(&task->index->graph.allocator, bytes, &block));
    task->truth = block;
    SL_TRY(choose_first_nodes(task));
    return ids ? read_ids(task, ids, 0) : find_true_neighbours(task, units);
}

sl_status sl_tune_codes_lose(const sl_index *index, sl_resolution *found, int *lose) {
    *found = (sl_resolution){.struct_size = sizeof *found};
    SL_TRY(sl_index_resolution(index, 0, found));
    *lose = found->unresolved && found->unresolved >= found->sampled / 10;
    return SL_OK;
}

/* Fails with the reason for low recall: codes that lose the nearest, or a wrong truth. */
static sl_status check_codes(const sl_index *index, double best) {
    sl_resolution found;
    int lose;
    SL_TRY(sl_tune_codes_lose(index, &found, &lose));
    if (!lose) return SL_OK;
    return sl_fail(
        SL_EUNSUPPORTED,
        "recall is %.4f at most: codes %s do not tell the nearest of %zu in %zu vectors apart; build the index "
        "with codes f32, or take the mean of all vectors from vectors and queries",
        best, sl_codes_name(index->graph.codes), found.unresolved, found.sampled);
}

/* The record of an unreached target holds the best recall. */
sl_status sl_tune_check_truth(const sl_tune *tune) {
    double best = 0;
    for (size_t t = 0; t < tune->count; t++)
        best = fmax(best, tune->records[t].recall);
    for (size_t t = 0; t < tune->count; t++)
        if (sl_settings_reached(&tune->records[t])) return SL_OK;
    if (best >= 0.05 || sl_undeleted_count(&tune->task.index->graph) / tune->task.k < 40) return SL_OK;
    SL_TRY(check_codes(tune->task.index, best));
    return sl_fail(
        SL_EINVAL,
        "recall is %.4f at most, which is chance: the truth is not of these queries, this metric and the ids "
        "of this index; make it anew, with the index's ids in place of row numbers of the base",
        best);
}
