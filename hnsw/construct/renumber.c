#include "hnsw/construct/renumber.h"

#include "hnsw/construct/partition_make.h"
#include "hnsw/construct/reach.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/tombstones.h"
#include "hnsw/graph/upper.h"
#include "hnsw/graph/version.h"
#include "hnsw/place/replicas.h"
#include "hnsw/search/settings.h"

#include <string.h>

/* All that renumbering needs, made before anything is changed. */
typedef struct sl_order {
    sl_index *index;
    size_t old_n, old_slots, ordered; /* nodes and slots before; nodes that are in order afterwards */
    size_t n;                         /* new numbers: those of all nodes, or of all but the free places */
    sl_reach reach;                   /* its queue maps new numbers to old ones */
    uint32_t *to;                     /* old number -> new number */
    uint32_t *of;                     /* old number -> partition */
    sl_partitions partitions, groups;
    uint32_t *slots; /* old slot -> new slot */
    void *row;       /* room for the longest row of any array */
    void *ids;
    uint64_t *dead; /* NULL: the index has no tombstones */
    sl_upper upper;
    int is_read;                 /* searches read the arrays: rows go to new arrays, and the old ones stay */
    void *moved[SL_ARRAY_KINDS]; /* the new arrays, if is_read */
    sl_lives lives;              /* new ones; NULL: the index has none */
    sl_tuned_record *tuned;      /* a copy of the settings */
} sl_order;

static int is_moved(const sl_graph *graph, sl_array_kind kind) {
    return graph->arrays[kind].at && (sl_array_lines[kind].flags & SL_ARRAY_MOVED);
}

static size_t longest_row(const sl_graph *graph) {
    size_t longest = 0;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (sl_array_lines[kind].flags & SL_ARRAY_MOVED) longest = sl_larger(longest, graph->arrays[kind].width);
    return longest;
}

static void order_free(sl_order *order) {
    const sl_index *index = order->index;
    const sl_allocator *allocator = &index->graph.allocator;
    const size_t word = sizeof(uint32_t);
    sl_reach_free(&order->reach);
    sl_mem_free(allocator, order->to, order->old_n * word);
    sl_mem_free(allocator, order->of, order->old_n * word);
    sl_partitions_free(allocator, &order->partitions);
    sl_partitions_free(allocator, &order->groups);
    sl_mem_free(allocator, order->slots, order->old_slots * word);
    sl_mem_free(allocator, order->row, longest_row(&index->graph));
    sl_mem_free(&index->layer0, order->ids, index->graph.capacity * sizeof(uint64_t));
    sl_mem_free(&index->layer0, order->dead, sl_tombstones_bytes(index->graph.capacity));
    sl_mem_free(allocator, order->upper.nodes, order->upper.nodes_capacity * word);
    sl_mem_free(allocator, order->upper.start, order->upper.start_capacity * word);
    sl_mem_free(allocator, order->upper.links, order->upper.rows_capacity * index->graph.m * word);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        sl_mem_free(&index->layer0, order->moved[kind], sl_array_bytes(&index->graph, kind, index->graph.capacity));
    sl_lives_free(&order->lives);
    SL_FREE_ARRAY(allocator, order->tuned, index->graph.tuned_count);
}

/* Allocates what an index needs that searches read meanwhile. */
static sl_status alloc_for_readers(sl_order *order) {
    sl_index *index = order->index;
    const sl_graph *graph = &index->graph;
    order->is_read = sl_version_is_read(index);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS && order->is_read; kind++)
        if (is_moved(graph, kind))
            SL_TRY(sl_mem_alloc(&index->layer0, sl_array_bytes(graph, kind, graph->capacity), &order->moved[kind]));
    if (!order->is_read) return SL_OK;
    return graph->lives.nodes ? sl_lives_grow(&(sl_lives){0}, graph->capacity, &order->lives) : SL_OK;
}

static sl_status order_alloc(sl_order *order) {
    const sl_index *index = order->index;
    const sl_allocator *allocator = &index->graph.allocator;
    const size_t word = sizeof(uint32_t);
    void *block;
    sl_status status = SL_OK;
    order->n = order->old_n = order->ordered = index->graph.n;
    order->old_slots = index->graph.upper.count;
    SL_TRY(alloc_for_readers(order));
    if (index->graph.tuned_count)
        order->tuned = sl_mem_array(allocator, index->graph.tuned_count, sizeof *order->tuned, &status);
    SL_TRY(status);
    SL_TRY(sl_reach_init(&order->reach, &index->graph, index->graph.n, 0));
    SL_TRY(sl_mem_alloc(allocator, index->graph.n * word, &block));
    order->to = block;
    SL_TRY(sl_mem_alloc(allocator, index->graph.n * word, &block));
    order->of = block;
    SL_TRY(sl_mem_alloc(allocator, index->graph.upper.count * word, &block));
    order->slots = block;
    SL_TRY(sl_mem_alloc(allocator, longest_row(&index->graph), &order->row));
    SL_TRY(sl_mem_alloc(&index->layer0, index->graph.capacity * sizeof(uint64_t), &order->ids));
    if (sl_tombstones(&index->graph)) {
        SL_TRY(sl_mem_alloc(&index->layer0, sl_tombstones_bytes(index->graph.capacity), &block));
        order->dead = block;
    }
    SL_TRY(sl_mem_alloc(allocator, index->graph.upper.nodes_capacity * word, &block));
    order->upper.nodes = block;
    order->upper.nodes_capacity = index->graph.upper.nodes_capacity;
    SL_TRY(sl_mem_alloc(allocator, index->graph.upper.start_capacity * word, &block));
    order->upper.start = block;
    order->upper.start_capacity = index->graph.upper.start_capacity;
    SL_TRY(sl_mem_alloc(allocator, index->graph.upper.rows_capacity * index->graph.m * word, &block));
    order->upper.links = block;
    order->upper.rows_capacity = index->graph.upper.rows_capacity;
    return SL_OK;
}

/* Makes the new numbers: by partition, and within a partition in the order of a breadth-first pass from the entry
 * point. Nodes that the pass can't reach come last. */
static sl_status number_nodes(sl_order *order, size_t threads, sl_progress *progress) {
    const sl_index *index = order->index;
    sl_reach *reach = &order->reach;
    size_t n = index->graph.n, tail = sl_reach_from_entry(reach);
    for (size_t node = 0; node < n; node++)
        if (!sl_reach_has(reach, (uint32_t)node)) reach->queue[tail++] = (uint32_t)node;
    const sl_partition_work work = {.order = reach->queue,
                                    .of = order->of,
                                    .scratch = order->to,
                                    .partitions = &order->partitions,
                                    .groups = &order->groups};
    SL_TRY(sl_partitions_make(&index->graph, sl_thread_count(threads), progress, &work));
    for (size_t node = 0; node < n; node++)
        order->to[reach->queue[node]] = (uint32_t)node;
    return SL_OK;
}

/* Copies rows into the new array, each to its new place. */
static void copy_rows(sl_order *order, sl_array_kind kind) {
    const sl_array *array = &order->index->graph.arrays[kind];
    uint8_t *to = order->moved[kind];
    for (size_t node = 0; node < order->n; node++)
        memcpy(to + node * array->step, array->at + order->reach.queue[node] * array->step, array->width);
}

/* Nodes keep their lives. */
static void copy_lives(sl_order *order) {
    const sl_lives *from = &order->index->graph.lives;
    for (size_t node = 0; order->lives.nodes && node < order->n; node++) {
        const sl_life *life = &from->nodes[order->reach.queue[node]];
        if (!life->born && !life->died) continue;
        order->lives.nodes[node] = *life;
        uint64_t *changed = &order->lives.changed[node / 64], last = sl_epochs_now(&order->index->versions->epochs);
        *changed = last;
    }
}

static void renumber_links(uint32_t *links, const uint32_t *from, size_t degree, const uint32_t *to) {
    for (size_t i = 0; i < degree; i++)
        links[i] = from[i] == SL_NONE ? SL_NONE : to[from[i]];
}

/* Moves rows into their new places, one cycle of the permutation after another. So no second array is needed. */
static void move_rows(sl_order *order, void *array, size_t pitch) {
    const uint32_t *from = order->reach.queue;
    uint64_t *moved = order->reach.reached;
    uint8_t *rows = array;
    memset(moved, 0, (order->index->graph.n / 64 + 1) * sizeof *moved);
    for (size_t first = 0; first < order->index->graph.n; first++) {
        if (moved[first / 64] >> (first % 64) & 1) continue;
        memcpy(order->row, rows + first * pitch, pitch);
        size_t to = first;
        for (; from[to] != first; to = from[to]) {
            memcpy(rows + to * pitch, rows + from[to] * pitch, pitch);
            moved[to / 64] |= (uint64_t)1 << (to % 64);
        }
        memcpy(rows + to * pitch, order->row, pitch);
        moved[to / 64] |= (uint64_t)1 << (to % 64);
    }
}

/* Counts the rows that this rank sends to another: those that it has, of the other's new numbers. */
static size_t count_sent(const sl_order *order, size_t to) {
    const sl_ranks *ranks = order->index->graph.ranks;
    const size_t n = order->index->graph.n;
    const sl_range theirs = sl_share_of_rank(ranks, to, n, SL_SHARED_ROWS),
                   mine = sl_share_mine(ranks, n, SL_SHARED_ROWS);
    size_t count = 0;
    for (size_t node = theirs.first; node < theirs.end; node++)
        count += order->reach.queue[node] >= mine.first && order->reach.queue[node] < mine.end;
    return count;
}

/* Makes a part of rows for each rank, in the order of their new numbers. */
static sl_status make_row_parts(const sl_order *order, const sl_array *array, sl_parts *to) {
    const sl_graph *graph = &order->index->graph;
    const sl_range mine = sl_share_mine(graph->ranks, graph->n, SL_SHARED_ROWS);
    sl_status status = SL_OK;
    size_t *sizes = sl_mem_array(&graph->allocator, graph->ranks->ranks, sizeof *sizes, &status);
    SL_TRY(status);
    for (size_t r = 0; r < graph->ranks->ranks; r++)
        sizes[r] = count_sent(order, r) * array->width;
    status = sl_parts_create(&graph->allocator, graph->ranks->ranks, sizes, to);
    uint8_t *row = to->data; /* parts lie in the order of ranks, and so of new numbers */
    for (size_t node = 0; node < graph->n && status == SL_OK; node++) {
        const uint32_t old = order->reach.queue[node];
        if (old < mine.first || old >= mine.end) continue;
        memcpy(row, array->at + (size_t)old * array->step, array->width);
        row += array->width;
    }
    SL_FREE_ARRAY(&graph->allocator, sizes, graph->ranks->ranks);
    return status;
}

/* Gives each rank the rows of its new numbers, in an array of which each rank has its own rows alone. */
static sl_status exchange_rows(const sl_order *order, sl_array_kind kind, sl_status mine) {
    const sl_graph *graph = &order->index->graph;
    const sl_array *array = &graph->arrays[kind];
    sl_parts to = {.data = NULL}, from = {.data = NULL};
    if (mine == SL_OK) mine = make_row_parts(order, array, &to);
    mine = sl_share_exchange(graph->ranks, mine, &to, &from);
    sl_parts_free(&to);
    if (mine == SL_OK) {
        const sl_range own = sl_share_mine(graph->ranks, graph->n, SL_SHARED_ROWS);
        size_t *at = from.at; /* the next row of each rank */
        sl_sparse_clear(array->at, sl_array_bytes(graph, kind, graph->capacity));
        for (size_t node = own.first; node < own.end; node++) {
            const size_t r = sl_share_owner(graph->ranks, order->reach.queue[node], graph->n, SL_SHARED_ROWS);
            memcpy(array->at + node * array->step, from.data + at[r], array->width);
            at[r] += array->width;
        }
    }
    sl_parts_free(&from);
    return mine;
}

static sl_status exchange_parted(const sl_order *order) {
    sl_status status = SL_OK;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (is_moved(&order->index->graph, kind) && sl_is_parted(&order->index->graph, kind))
            status = exchange_rows(order, kind, status);
    return status;
}

static void move_layer0(sl_order *order) {
    sl_index *index = order->index;
    uint64_t *ids = order->ids;
    for (size_t node = 0; node < order->n; node++) {
        ids[node] = sl_id_of(&index->graph, order->reach.queue[node]);
        if (sl_is_deleted(&index->graph, order->reach.queue[node]))
            order->dead[node / 64] |= (uint64_t)1 << (node % 64);
    }
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (order->moved[kind])
            copy_rows(order, kind);
        else if (is_moved(&index->graph, kind) && !sl_is_parted(&index->graph, kind))
            move_rows(order, index->graph.arrays[kind].at, index->graph.arrays[kind].width);
    uint32_t *links = order->moved[SL_ARRAY_LINKS] ? order->moved[SL_ARRAY_LINKS] : (void *)sl_links(&index->graph, 0);
    for (size_t node = 0; node < order->n; node++, links += index->graph.m0)
        renumber_links(links, links, index->graph.m0, order->to);
    if (order->is_read) memset(links, 0xff, (index->graph.capacity - order->n) * index->graph.m0 * sizeof *links);
    copy_lives(order);
}

/* Slots stay in the order of their nodes. */
static void copy_upper(sl_order *order) {
    const sl_index *index = order->index;
    const sl_upper *old = &index->graph.upper;
    sl_upper *upper = &order->upper;
    if (old->count) memset(order->slots, 0xff, old->count * sizeof *order->slots);
    for (size_t node = 0; node < order->n; node++) {
        uint32_t slot = sl_slot_of(&index->graph, order->reach.queue[node]);
        if (slot == SL_NONE) continue;
        order->slots[slot] = (uint32_t)upper->count;
        upper->nodes[upper->count] = (uint32_t)node;
        upper->start[upper->count++] = (uint32_t)upper->rows;
        upper->rows += old->start[slot + 1] - old->start[slot];
    }
    if (upper->start_capacity) upper->start[upper->count] = (uint32_t)upper->rows;
    for (size_t slot = 0; slot < old->count; slot++)
        for (uint32_t row = old->start[slot]; row < old->start[slot + 1] && order->slots[slot] != SL_NONE; row++) {
            size_t to = upper->start[order->slots[slot]] + (row - old->start[slot]);
            renumber_links(upper->links + to * index->graph.m, old->links + (size_t)row * index->graph.m,
                           index->graph.m, order->slots);
        }
}

static void adopt_upper(sl_order *order) {
    sl_index *index = order->index;
    const sl_allocator *allocator = &index->graph.allocator;
    const sl_upper old = index->graph.upper;
    const size_t word = sizeof(uint32_t);
    index->graph.upper = order->upper;
    order->upper = (sl_upper){0};
    sl_version_release(index, allocator, old.nodes, old.nodes_capacity * word);
    sl_version_release(index, allocator, old.start, old.start_capacity * word);
    sl_version_release(index, allocator, old.links, old.rows_capacity * index->graph.m * word);
}

static void adopt_partitions(sl_order *order) {
    sl_index *index = order->index;
    sl_graph *graph = &index->graph;
    if (graph->tuned_count) memcpy(order->tuned, graph->tuned, graph->tuned_count * sizeof *order->tuned);
    sl_settings_rescale(graph, &order->partitions, &order->groups, order->tuned);
    sl_settings_adopt(index, order->tuned, graph->tuned_count);
    order->tuned = NULL;
    sl_version_release_partitions(index, &graph->partitions);
    sl_version_release_partitions(index, &graph->groups);
    graph->partitions = order->partitions;
    graph->groups = order->groups;
    order->partitions = order->groups = (sl_partitions){0};
}

static void adopt_rows(sl_order *order) {
    sl_index *index = order->index;
    sl_graph *graph = &index->graph;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        if (!order->moved[kind]) continue;
        sl_version_release(index, &index->layer0, graph->arrays[kind].at, sl_array_bytes(graph, kind, graph->capacity));
        sl_array_put(graph, kind, order->moved[kind], graph->arrays[kind].width);
        order->moved[kind] = NULL;
    }
    if (order->lives.nodes) {
        graph->lives = order->lives;
        order->lives = (sl_lives){0};
    }
    if (!order->dead) return;
    sl_version_release(index, &index->layer0, sl_tombstones(graph), sl_tombstones_bytes(graph->capacity));
    sl_array_put(graph, SL_ARRAY_TOMBSTONES, order->dead, 1);
    order->dead = NULL;
}

/* Free places have no numbers any more. */
static void adopt_count(sl_order *order) {
    sl_index *index = order->index;
    sl_graph *graph = &index->graph;
    const size_t gone = graph->n - order->n;
    index->ordered = order->ordered;
    graph->n -= gone;
    graph->deleted_count -= gone;
    graph->free_count = 0;
    sl_node_set_free(index, &index->free);
}

/* Puts the new numbers into use. The old arrays stay as long as a version has them. */
static void adopt_order(sl_order *order) {
    sl_index *index = order->index;
    const sl_entry entry = sl_entry_get(&index->graph);
    sl_replicas_drop(index);
    sl_publishing_lock(index);
    sl_ids_adopt(index, order->ids);
    order->ids = NULL;
    adopt_rows(order);
    sl_entry_set(index, entry.level, entry.level ? order->slots[entry.slot] : order->to[entry.node]);
    adopt_upper(order);
    adopt_partitions(order);
    adopt_count(order);
    index->graph.numbering++;
    if (order->is_read) sl_version_publish(index);
    sl_publishing_unlock(index);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Without free places
 * ------------------------------------------------------------------------------------------------------------- */

/* Numbers all nodes but the free places, in their order. */
static void number_kept(sl_order *order) {
    const sl_index *index = order->index;
    order->n = order->ordered = 0;
    for (size_t node = 0; node < order->old_n; node++) {
        order->to[node] = SL_NONE;
        if (sl_node_set_has(&index->free, node)) continue;
        order->ordered += node < index->ordered;
        order->reach.queue[order->n] = (uint32_t)node;
        order->to[node] = (uint32_t)order->n++;
    }
}

static sl_status copy_partitions(const sl_graph *graph, const sl_partitions *from, sl_partitions *out) {
    const size_t rows = sl_codec_rows_size(&from->codec, from->count), bands = from->count * SL_PARTITION_BANDS;
    sl_status status = SL_OK;
    *out = *from;
    out->rows = out->bands = NULL;
    out->starts = sl_mem_array(&graph->allocator, from->count + 1, sizeof *out->starts, &status);
    if (from->rows) out->rows = sl_mem_array(&graph->allocator, rows, 1, &status);
    if (from->bands) out->bands = sl_mem_array(&graph->allocator, bands, 1, &status);
    if (status != SL_OK) return status;
    memcpy(out->starts, from->starts, (from->count + 1) * sizeof *out->starts);
    if (rows) memcpy(out->rows, from->rows, rows);
    if (from->bands) memcpy(out->bands, from->bands, bands);
    out->codec.rows.base = out->rows;
    return SL_OK;
}

/* Partitions keep their centroids. */
static sl_status shift_partitions(sl_order *order) {
    const sl_graph *graph = &order->index->graph;
    sl_partitions *partitions = &order->partitions;
    if (!graph->partitions.count) return SL_OK;
    SL_TRY(copy_partitions(graph, &graph->partitions, partitions));
    size_t kept = 0, node = 0;
    for (size_t p = 0; p <= partitions->count; p++) {
        for (; node < graph->partitions.starts[p]; node++)
            kept += order->to[node] != SL_NONE;
        partitions->starts[p] = (uint32_t)kept;
    }
    return graph->groups.count ? copy_partitions(graph, &graph->groups, &order->groups) : SL_OK;
}

void sl_renumber_compact(sl_index *index, size_t most) {
    const sl_graph *graph = &index->graph;
    if (graph->place != SL_PLACE_DRAM || graph->ranks || index->reclaim || !index->free.count ||
        index->free.count * 16 <= graph->n * most)
        return;
    sl_order order = {.index = index};
    sl_status status = order_alloc(&order);
    if (status == SL_OK) {
        number_kept(&order);
        status = shift_partitions(&order);
    }
    if (status == SL_OK) status = sl_version_reserve(index, 1);
    if (status == SL_OK) {
        copy_upper(&order);
        move_layer0(&order);
        adopt_order(&order);
    }
    order_free(&order);
}

/* Nodes that are leaving would keep their numbers, and free places would count as vectors. Returns 0 for want of
 * memory. */
static int leave_free_out(sl_index *index) {
    sl_reclaim_stop(index);
    sl_renumber_compact(index, 0);
    return index->graph.ranks || !index->free.count;
}

void sl_renumber_settle(sl_index *index, size_t most, size_t threads, sl_progress *progress) {
    if (index->graph.place != SL_PLACE_DRAM || index->graph.n < SL_RENUMBER_LEAST ||
        (index->graph.n - index->ordered + index->reused) * 16 <= index->graph.n * most)
        return;
    const sl_ranks *ranks = index->graph.ranks;
    sl_order order = {.index = index};
    if (leave_free_out(index) && sl_ranks_agree(ranks, order_alloc(&order)) == SL_OK &&
        sl_ranks_agree(ranks, number_nodes(&order, threads, progress)) == SL_OK && exchange_parted(&order) == SL_OK &&
        (!order.is_read || sl_version_reserve(index, 1) == SL_OK)) {
        copy_upper(&order);
        move_layer0(&order);
        adopt_order(&order);
    } else if (index->log && !sl_progress_cancelled(progress)) {
        index->log(index->log_ctx, SL_LOG_WARN, "vectors are left in their order of arrival for want of memory");
    }
    order_free(&order);
    index->reused = 0; /* also after a failure: the next adds need not try again */
}

sl_status sl_renumber_bytes(const sl_graph *graph, size_t threads, size_t *bytes) {
    const size_t word = sizeof(uint32_t), ids = graph->capacity * sizeof(uint64_t);
    sl_bytes partitions;
    *bytes = 0;
    if (graph->n < SL_RENUMBER_LEAST) return SL_OK;
    SL_TRY(sl_partitions_bytes(graph, threads, &partitions));
    *bytes = sl_reach_bytes(graph, graph->n, 0) + (2 * graph->n + graph->upper.count) * word + longest_row(graph) +
             ids + sl_upper_copy_size(graph) + partitions.most;
    return SL_OK;
}
