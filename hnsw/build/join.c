#include "hnsw/build/join.h"

#include "base/failure.h"
#include "distance/codec/encode.h"
#include "hnsw/build/met.h"
#include "hnsw/graph/links.h"

#include <string.h>

/* LISTED: the nearest that a node takes from a much larger graph. LESS: how many fewer it takes from one of its own
 * graph's size, whose nodes tell it as many. KEPT: a walk's pool over what the walk is to find. */
enum { LISTED = 40, LESS = 30, KEPT = 2 };
/* Nodes that a thread takes at once. */
enum { CHUNK = 64 };

/* Walks that joining graphs takes, of which so many nodes each are copied. */
static uint64_t walks_of(const size_t *taken, size_t count) {
    uint64_t walks = 0;
    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < a; b++)
            walks += taken[a] < taken[b] ? taken[a] : taken[b];
    return walks;
}

/* Counts the nodes of each graph that are copied. */
static void count_taken(const sl_copied *copied, size_t n, size_t *taken) {
    for (size_t i = 0; i < n; i++)
        taken[copied->of[i]]++;
}

static int all_serve(const sl_copied *copied, const size_t *taken, const sl_graph *graph) {
    size_t joined = 0;
    for (size_t g = 0; g < copied->count; g++) {
        const sl_graph *from = copied->graphs[g];
        if (!taken[g]) continue;
        if (from->m != graph->m || from->ef_construction < graph->ef_construction || 2 * taken[g] < from->n) return 0;
        joined++;
    }
    return joined > 1;
}

sl_status sl_join_choose(const sl_graph *graph, const sl_copied *copied, size_t n, sl_join_kind *kind) {
    sl_status status = SL_OK;
    size_t *taken = sl_mem_array(&graph->allocator, copied->count, sizeof *taken, &status);
    SL_TRY(status);
    count_taken(copied, n, taken);
    if (all_serve(copied, taken, graph) && walks_of(taken, copied->count) <= n) *kind = SL_JOIN_OVER_LARGER;
    sl_mem_free(&graph->allocator, taken, copied->count * sizeof *taken);
    return SL_OK;
}

void sl_join_free(sl_join *join) {
    const sl_allocator *allocator = &join->members->graph->allocator;
    const sl_copied *copied = join->copied;
    for (size_t g = 0; join->to && g < copied->count; g++)
        sl_mem_free(allocator, join->to[g], copied->graphs[g]->n * sizeof *join->to[g]);
    sl_mem_free(allocator, join->to, copied->count * sizeof *join->to);
    sl_mem_free(allocator, join->taken, copied->count * sizeof *join->taken);
}

sl_status sl_join_init(sl_join *join, const sl_copied *copied, const sl_members *members) {
    const sl_allocator *allocator = &members->graph->allocator;
    sl_status status = SL_OK;
    *join = (sl_join){.copied = copied, .members = members};
    join->to = sl_mem_array(allocator, copied->count, sizeof *join->to, &status);
    join->taken = sl_mem_array(allocator, copied->count, sizeof *join->taken, &status);
    for (size_t g = 0; g < copied->count && status == SL_OK; g++) {
        join->to[g] = sl_mem_array(allocator, copied->graphs[g]->n, sizeof *join->to[g], &status);
        if (status == SL_OK) memset(join->to[g], 0xff, copied->graphs[g]->n * sizeof *join->to[g]);
    }
    SL_TRY(status);
    for (size_t i = 0; i < members->n; i++)
        join->to[copied->of[i]][copied->nodes[i]] = (uint32_t)i;
    count_taken(copied, members->n, join->taken);
    return SL_OK;
}

/* Tells whether nodes of graph a walk over graph b. The first counts as the larger of two of one size. */
static int asks(const sl_join *join, size_t a, size_t b) {
    if (join->copied->joins == SL_JOIN_OVER_FIRST) return a != 0 && b == 0;
    return a != b && (join->taken[a] < join->taken[b] || (join->taken[a] == join->taken[b] && b < a));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Near nodes in other graphs
 * ------------------------------------------------------------------------------------------------------------- */

/* One thread's scratch. */
typedef struct joining {
    const sl_join *join;
    sl_walk *walks;   /* over each graph that is walked over */
    uint32_t *starts; /* of each graph: where the next walk begins; SL_NONE: at the end of the way down */
    sl_nearness nearness;
    sl_met met;
    size_t count, room; /* candidates */
    uint32_t *nodes;
    float *scores;
    sl_near *near;
} joining;

/* Candidates of a node: what walks find, and what is behind all links. The graphs have one m. */
static size_t room_of(const sl_join *join) {
    const size_t degree = join->members->graph->m0;
    return join->copied->count * LISTED + degree * degree;
}

static sl_status joining_init(joining *j, const sl_join *join) {
    const sl_graph *graph = join->members->graph;
    const sl_allocator *allocator = &graph->allocator;
    const size_t count = join->copied->count;
    sl_status status = SL_OK;
    *j = (joining){.join = join, .room = room_of(join)};
    j->walks = sl_mem_array(allocator, count, sizeof *j->walks, &status);
    j->starts = sl_mem_array(allocator, count, sizeof *j->starts, &status);
    j->nodes = sl_mem_array(allocator, j->room, sizeof *j->nodes, &status);
    j->scores = sl_mem_array(allocator, j->room, sizeof *j->scores, &status);
    j->near = sl_mem_array(allocator, j->room, sizeof *j->near, &status);
    if (status == SL_OK) status = sl_met_init(&j->met, allocator, j->room + 1);
    if (status == SL_OK) status = sl_nearness_init(&j->nearness, graph);
    for (size_t g = 0; g < count && status == SL_OK; g++)
        if (join->taken[g]) status = sl_walk_init(&j->walks[g], join->copied->graphs[g], KEPT * LISTED);
    return status;
}

static void joining_free(joining *j) {
    const sl_allocator *allocator = &j->join->members->graph->allocator;
    const size_t count = j->join->copied->count;
    for (size_t g = 0; j->walks && g < count; g++)
        sl_walk_free(&j->walks[g]);
    sl_nearness_free(&j->nearness);
    sl_met_free(&j->met);
    sl_mem_free(allocator, j->walks, count * sizeof *j->walks);
    sl_mem_free(allocator, j->starts, count * sizeof *j->starts);
    sl_mem_free(allocator, j->nodes, j->room * sizeof *j->nodes);
    sl_mem_free(allocator, j->scores, j->room * sizeof *j->scores);
    sl_mem_free(allocator, j->near, j->room * sizeof *j->near);
}

static void offer(joining *j, size_t g, uint32_t node) {
    const uint32_t to = node < j->join->copied->graphs[g]->n ? j->join->to[g][node] : SL_NONE;
    if (to != SL_NONE && j->count < j->room && sl_met_add(&j->met, to)) j->nodes[j->count++] = to;
}

static size_t listed_of(const sl_join *join, size_t from, size_t over) {
    const size_t asking = join->taken[from], asked = join->taken[over];
    return LISTED - (asking < asked ? LESS * asking / asked : LESS);
}

/* Walks over another graph to what is near to a node. The walk begins where that of the node before ended. */
static void walk_over(joining *j, size_t from, uint32_t node, size_t over) {
    const sl_graph *graph = j->join->copied->graphs[over];
    const size_t listed = listed_of(j->join, from, over);
    sl_walk *walk = &j->walks[over];
    const sl_pool *pool = &walk->pool;
    uint32_t start = j->starts[over];
    uint64_t best = 0;
    sl_walk_ask_node(walk, j->join->copied->graphs[from], node);
    if (start == SL_NONE) start = sl_walk_descend(walk, sl_entry_get(graph), 0);
    sl_walk_layer(walk, 0, sl_walk_from(start), KEPT * listed);
    sl_pool_finish(&walk->pool, listed);
    for (size_t i = 0; i < pool->size; i++) {
        best = pool->keys[i] > best ? pool->keys[i] : best;
        offer(j, over, sl_pool_id(pool->keys[i]));
    }
    j->starts[over] = best ? sl_pool_id(best) : SL_NONE;
}

/* Offers what is linked to linked nodes that were not copied. */
static void look_behind(joining *j, size_t g, uint32_t node) {
    const sl_graph *graph = j->join->copied->graphs[g];
    const sl_layer layer = sl_layer_at(graph, 0);
    uint32_t own[2 * SL_MAX_M], behind[2 * SL_MAX_M];
    const size_t count = sl_links_known(&layer, sl_links(graph, node), own);
    for (size_t i = 0; i < count; i++) {
        if (j->join->to[g][own[i]] != SL_NONE) continue;
        const size_t more = sl_links_known(&layer, sl_links(graph, own[i]), behind);
        for (size_t k = 0; k < more; k++)
            offer(j, g, behind[k]);
    }
}

/* Lists the nearest of the candidates. */
static void list(joining *j, sl_near_lists *near, uint32_t member) {
    const sl_members *members = j->join->members;
    const float shift = sl_near_shift(members->codec, sl_member_row(members, member));
    const size_t count = j->count < near->width ? j->count : near->width;
    sl_nearness_set(&j->nearness, member);
    sl_nearness_many(&j->nearness, j->nodes, j->count, j->scores);
    for (size_t i = 0; i < j->count; i++)
        j->near[i] = sl_near_of(j->scores[i] + shift, j->nodes[i]);
    if (count < j->count) sl_near_keep(j->near, j->count, count);
    memcpy(near->near + (size_t)member * near->width, j->near, count * sizeof *j->near);
    near->count[member] = (uint16_t)count;
}

static void join_node(joining *j, sl_near_lists *near, size_t g, uint32_t node) {
    const uint32_t member = j->join->to[g][node];
    if (member == SL_NONE) return;
    j->count = 0;
    sl_met_add(&j->met, member);
    for (size_t other = 0; other < j->join->copied->count; other++)
        if (asks(j->join, g, other)) walk_over(j, g, node, other);
    look_behind(j, g, node);
    if (j->count) list(j, near, member);
    sl_met_clear(&j->met);
}

static void join_chunk(joining *j, sl_near_lists *near, size_t g, size_t chunk) {
    const size_t n = j->join->copied->graphs[g]->n, first = chunk * CHUNK;
    memset(j->starts, 0xff, j->join->copied->count * sizeof *j->starts);
    for (size_t node = first; node < n && node < first + CHUNK; node++)
        join_node(j, near, g, (uint32_t)node);
}

/* Does so for the nodes of all graphs, chunk by chunk: where walks begin does not depend on the threads then. */
static sl_status join_all(const sl_join *join, sl_near_lists *near) {
    const sl_members *members = join->members;
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)members->threads) if (members->threads > 1)
    {
        joining j;
        sl_failure_keep(&failed, 0, joining_init(&j, join));
        for (size_t g = 0; g < join->copied->count; g++) {
            const size_t chunks = (join->copied->graphs[g]->n + CHUNK - 1) / CHUNK;
#pragma omp for schedule(dynamic, 1)
            for (size_t chunk = 0; chunk < chunks; chunk++) {
                if (sl_failure_before(&failed, 1) || sl_progress_cancelled(members->progress)) continue;
                join_chunk(&j, near, g, chunk);
                sl_progress_step(members->progress, 0);
            }
        }
        joining_free(&j);
    }
    SL_TRY(sl_failure_pass(&failed));
    return sl_progress_cancelled(members->progress) ? sl_progress_end(members->progress) : SL_OK;
}

sl_status sl_join_near(const sl_join *join, sl_near_lists *near) {
    const sl_allocator *allocator = &join->members->graph->allocator;
    const size_t n = join->members->n;
    sl_status status = SL_OK;
    *near = (sl_near_lists){.allocator = *allocator, .n = n, .width = LISTED};
    near->near = sl_mem_array(allocator, n * LISTED, sizeof *near->near, &status);
    near->count = sl_mem_array(allocator, n, sizeof *near->count, &status);
    return status == SL_OK ? join_all(join, near) : status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Lists that are there
 * ------------------------------------------------------------------------------------------------------------- */

/* The list becomes no longer than it was or is: an index that is merged again and again would else have full lists. */
static void append(const sl_join *join, size_t member, uint32_t *links) {
    const size_t g = join->copied->of[member];
    const sl_graph *graph = join->copied->graphs[g];
    const sl_layer layer = sl_layer_at(graph, 0);
    uint32_t old[2 * SL_MAX_M];
    const size_t count = sl_links_known(&layer, sl_links(graph, join->copied->nodes[member]), old);
    for (size_t i = 0; i < count; i++)
        if (join->to[g][old[i]] != SL_NONE) sl_links_append(links, count, join->to[g][old[i]]);
}

void sl_join_append(const sl_join *join, size_t degree, uint32_t *links) {
    const sl_members *members = join->members;
#pragma omp parallel for schedule(static) num_threads((int)members->threads) if (members->threads > 1)
    for (size_t member = 0; member < members->n; member++)
        append(join, member, links + member * degree);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Partitions that are there
 * ------------------------------------------------------------------------------------------------------------- */

/* Puts a graph's centroids behind those that are there. `floats`: twice a vector of scratch. */
static void put_centroids(const sl_partitions *from, const sl_partitions *out, float *floats) {
    const sl_codec *codec = &out->codec;
    for (size_t p = 0; p < from->count; p++) {
        const uint8_t *row = from->codec.rows.base + p * from->codec.rows.pitch;
        uint8_t *to = out->rows + (out->count + p) * codec->rows.pitch;
        if (from->codec.codes == codec->codes) {
            memcpy(to, row, codec->rows.pitch);
            continue;
        }
        sl_decode_row(&from->codec, row, floats);
        sl_encode_row(codec, floats, SL_F32, to, floats + codec->dim, NULL);
    }
}

/* Puts a graph's partitions behind those that are there. Its nodes are rows *row and those that follow; *row becomes
 * the first behind them. */
static void put_partitions(const sl_copied *copied, size_t g, size_t n, size_t *row, sl_partitions *out) {
    const sl_graph *graph = copied->graphs[g];
    const sl_partitions *from = &graph->partitions;
    for (size_t p = 0; p < from->count; p++) {
        const size_t first = sl_partition_nodes(from, p, graph->n).first;
        while (*row < n && copied->of[*row] == g && copied->nodes[*row] < first)
            ++*row;
        out->starts[out->count++] = (uint32_t)*row;
    }
    while (*row < n && copied->of[*row] == g)
        ++*row;
}

sl_status sl_join_partitions(const sl_copied *copied, size_t n, sl_graph *graph) {
    sl_partitions out = {0};
    size_t count = 0, row = 0;
    sl_codes codes = SL_CODES_I8;
    for (size_t g = 0; g < copied->count; g++) {
        const sl_partitions *from = &copied->graphs[g]->partitions;
        count += from->count;
        if (from->count && from->codec.codes == SL_CODES_F32) codes = SL_CODES_F32;
    }
    sl_status status = sl_partition_codec(graph, codes, &out.codec);
    float *floats = sl_mem_array(&graph->allocator, 2 * graph->codec.dim, sizeof *floats, &status);
    out.starts = sl_mem_array(&graph->allocator, count + 1, sizeof *out.starts, &status);
    out.rows = sl_mem_array(&graph->allocator, sl_codec_rows_size(&out.codec, count), 1, &status);
    out.codec.rows.base = out.rows;
    for (size_t g = 0; g < copied->count && status == SL_OK; g++) {
        put_centroids(&copied->graphs[g]->partitions, &out, floats);
        put_partitions(copied, g, n, &row, &out);
    }
    sl_mem_free(&graph->allocator, floats, 2 * graph->codec.dim * sizeof *floats);
    out.count = count;
    if (status == SL_OK) out.starts[count] = (uint32_t)row;
    graph->partitions = out;
    return status;
}
