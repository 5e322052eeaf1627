/* Places of deleted vectors that are used again: what leaves the graph, what stays reachable, what searches see. */
#include "base/random.h"
#include "hnsw/construct/reach.h"
#include "hnsw/construct/reach_steps.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/version.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <string.h>

enum { N = 3000, ALL = 12 * N, DIM = 16, Q = 100, K = 10, EF = 80 };

static float *x; /* ALL rows, and then Q queries */
static sl_index *idx;
static size_t live[N]; /* the rows that are in the index; a row's id is its number */

/* m 0: that of most tests. */
static sl_index *make_with(size_t m, size_t first, size_t n, sl_metric metric) {
    sl_index_params params;
    static uint64_t ids[ALL];
    indexes_params(&params, DIM, metric);
    params.tags = 1;
    if (m) params.m = m;
    for (size_t i = 0; i < n; i++)
        ids[i] = first + i;
    return indexes_make(&params, x + first * DIM, SL_F32, n, ids, 1);
}

static sl_index *make(size_t first, size_t n, sl_metric metric) {
    return make_with(0, first, n, metric);
}

static void set_up(void) {
    x = clusters_make(ALL + Q, DIM, 0.3, 11);
    idx = make(0, N, SL_METRIC_COSINE);
    for (size_t i = 0; i < N; i++)
        live[i] = i;
}

static void tear_down(void) {
    sl_index_free(idx);
    free(x);
}

static void add_row(size_t row) {
    const uint64_t id = row;
    ck_ok(sl_index_add(idx, x + row * DIM, SL_F32, 1, 0, &id, NULL));
}

static void delete_row(size_t row) {
    const uint64_t id = row;
    ck_ok(sl_index_delete(idx, &id, 1));
}

/* Asserts that free places hold nothing and that no list names one. */
static void ck_free_places(const sl_index *index) {
    static const uint8_t zeros[DIM * 8];
    const sl_graph *graph = &index->graph;
    for (size_t node = 0; node < graph->n; node++) {
        for (size_t i = 0; i < graph->m0; i++) {
            const uint32_t to = sl_links(graph, node)[i];
            ck_assert(to == SL_NONE || !sl_node_set_has(&index->free, to));
        }
        if (!sl_node_set_has(&index->free, node)) continue;
        ck_assert_mem_eq(sl_row(graph, (uint32_t)node), zeros, DIM);
        ck_assert_uint_eq(sl_tag_of(graph, (uint32_t)node), 0);
        if (sl_has(graph, SL_ARRAY_IDS)) ck_assert_uint_eq(sl_id_of(graph, (uint32_t)node), 0);
        ck_assert_uint_eq(sl_links(graph, node)[0], SL_NONE);
        ck_assert(sl_is_deleted(graph, node));
    }
    for (size_t slot = 0; slot < graph->upper.count; slot++)
        for (uint32_t row = graph->upper.start[slot]; row < graph->upper.start[slot + 1]; row++)
            for (size_t i = 0; i < graph->m; i++) {
                const uint32_t to = graph->upper.links[row * graph->m + i];
                ck_assert(to == SL_NONE || !sl_node_set_has(&index->free, graph->upper.nodes[to]));
            }
}

/* Replaces `count` vectors, chosen by chance, by rows from `next` on. */
static void turn_over(size_t count, size_t next) {
    for (size_t i = 0; i < count; i++) {
        const size_t at = sl_random_at(next, i) % N;
        delete_row(live[at]);
        live[at] = next + i;
        add_row(live[at]);
        if (i % 16 == 0) ck_free_places(idx);
    }
}

/* Once as many vectors came as half of the nodes, nodes are numbered anew, though all got places that were free. */
START_TEST(turnover_renumbers) {
    sl_index *index = make(0, 2 * N, SL_METRIC_L2);
    size_t row = 0, most = 0;
    const uint64_t before = index->graph.numbering;
    for (; row < 2 * N && index->graph.numbering == before; row++) {
        const uint64_t old = row, id = row + 2 * N;
        ck_ok(sl_index_delete(index, &old, 1));
        ck_ok(sl_index_add(index, x + id * DIM, SL_F32, 1, 0, &id, NULL));
        most = index->graph.n > most ? index->graph.n : most;
    }
    ck_assert_uint_ge(row, N);
    ck_assert_uint_lt(row, N + N / 4);
    ck_assert_uint_lt(most, 2 * N + N / 4);
    const sl_range rest = sl_partition_rest(&index->graph.partitions, index->graph.n);
    ck_assert_uint_eq(rest.first, rest.end);
    ck_ok(sl_partitions_check(&index->graph));
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* Nodes that are leaving when all are numbered anew stay deleted, and free places get no number. */
START_TEST(renumbered_while_nodes_leave) {
    sl_index *index = make(0, 2 * N, SL_METRIC_L2);
    for (uint64_t id = 0; id < 400; id++)
        ck_ok(sl_index_delete(index, &id, 1));
    ck_assert_uint_gt(index->free.count, 0);
    for (int waits; !index->leaving.count;)
        ck_ok(sl_reclaim_some(index, 64, &waits));
    const uint64_t numbering = index->graph.numbering;
    index->ordered = 0;
    ck_ok(sl_change_begin(index));
    sl_renumber_settle(index, 1, 1, NULL);
    sl_change_end(index);
    ck_assert_uint_gt(index->graph.numbering, numbering);
    ck_assert_uint_eq(index->leaving.count + index->free.count + index->graph.free_count, 0);
    ck_assert_uint_eq(index->graph.n, 2 * N - 400 + index->graph.deleted_count);
    ck_ok(sl_partitions_check(&index->graph));
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* The recall of searches for the queries, against exact search. */
static double recall_of(sl_index *index) {
    static float rows[N * DIM];
    static uint64_t exact[Q * K], found[Q * K];
    for (size_t i = 0; i < N; i++)
        memcpy(rows + i * DIM, x + live[i] * DIM, DIM * sizeof *rows);
    const vector_rows queries = {x + (size_t)ALL * DIM, SL_F32, Q};
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){rows, SL_F32, N}, queries, K, exact);
    for (size_t i = 0; i < Q * K; i++)
        exact[i] = live[exact[i]];
    indexes_search(index, queries, K, EF, found, NULL);
    return indexes_recall(found, exact, Q, K);
}

/* Ten times as much comes and goes as is there: the index stays as large, as good and whole. */
START_TEST(ten_times_turnover) {
    const double before = recall_of(idx);
    for (size_t round = 0; round < (SANITIZED ? 2 : 10); round++) {
        turn_over(N, N + round * N);
        ck_assert_uint_eq(sl_index_size(idx), N);
        ck_assert_uint_le(idx->graph.n, N + N / 8);
        const sl_check_report report = indexes_sound(idx);
        ck_assert_uint_eq(report.unreachable, 0);
        ck_assert_uint_le(report.deleted, N / 16);
        ck_assert_double_ge(recall_of(idx), before - 0.02);
    }
}
END_TEST

START_TEST(freed_places_keep_nothing) {
    const uint64_t id = 17, tags = 5;
    ck_ok(sl_index_set_tags(idx, &id, 1, &tags));
    for (size_t row = 0; row < 200; row++)
        delete_row(row);
    ck_assert(sl_reclaim_run(idx));
    ck_assert_uint_ge(idx->free.count, 199);
    ck_assert_uint_eq(indexes_stats(idx).reusable, idx->free.count);
    ck_assert_uint_le(indexes_stats(idx).deleted, 1);
    ck_free_places(idx);
    indexes_sound(idx);
    ck_fails(sl_index_undelete(idx, &id, 1), SL_ENOTFOUND, "its memory is used again");
    const size_t places = idx->graph.n;
    for (size_t row = N; row < N + 100; row++)
        add_row(row);
    ck_assert_uint_eq(idx->graph.n, places);
    ck_free_places(idx);
    uint64_t found;
    for (size_t row = N; row < N + 100; row++) {
        ck_ok(sl_index_search(idx, x + row * DIM, SL_F32, 1, 0, 1, NULL, &found, NULL, NULL));
        ck_assert_uint_eq(found, row);
        ck_ok(sl_index_get_tags(idx, &found, 1, &found));
        ck_assert_uint_eq(found, 0);
    }
}
END_TEST

/* A search that began before a delete goes on with the vector. Its place is not used again before the search ends. */
START_TEST(searches_hold_places) {
    sl_reading reading;
    const sl_graph *graph = sl_reading_begin(idx, &reading);
    uint8_t rows[200][DIM];
    uint32_t nodes[200];
    for (size_t row = 0; row < 200; row++) {
        ck_ok(sl_id_lookup(idx, graph, row, &nodes[row]));
        memcpy(rows[row], sl_row(graph, nodes[row]), DIM);
    }
    for (size_t row = 0; row < 200; row++)
        delete_row(row);
    ck_assert(!sl_reclaim_run(idx));
    for (size_t row = N; row < N + 200; row++)
        add_row(row);
    ck_assert_uint_eq(idx->free.count, 0);
    for (size_t row = 0; row < 200; row++) {
        ck_assert(!sl_is_deleted(graph, nodes[row]));
        ck_assert_mem_eq(sl_row(graph, nodes[row]), rows[row], DIM);
    }
    sl_reading_end(&reading);
    ck_assert(sl_reclaim_run(idx));
    ck_assert_uint_ge(idx->free.count, 199);
    indexes_sound(idx);
}
END_TEST

/* An add takes a place while others of the same round are not free yet. Its vector is linked, and can be undeleted. */
START_TEST(places_are_taken_before_all_are_free) {
    enum { GONE = 360 };
    const uint64_t id = N;
    int waits = 0;
    sl_reading reading;
    sl_reading_begin(idx, &reading);
    for (size_t row = GONE; row-- > 0;)
        delete_row(row);
    sl_reading_end(&reading);
    while (!waits && idx->free.count < GONE / 3)
        ck_ok(sl_reclaim_some(idx, 1, &waits));
    ck_assert_ptr_nonnull(idx->reclaim);
    const size_t places = idx->graph.n;
    add_row(id);
    add_row(id + 1);
    ck_assert_uint_eq(idx->graph.n, places);
    delete_row(id);
    ck_ok(sl_index_undelete(idx, &id, 1));
    ck_assert(sl_reclaim_run(idx));
    indexes_sound(idx);
}
END_TEST

/* Nodes that need a path and have none. */
static size_t out_of_reach(const sl_index *index) {
    sl_reach_steps steps;
    size_t lists = SIZE_MAX, count = 0;
    ck_ok(sl_reach_steps_begin(&steps, index, NULL));
    ck_assert(sl_reach_steps_go(&steps, &index->graph, &lists));
    for (size_t node = 0; node < index->graph.n; node++)
        count += sl_node_set_has(&steps.missing, node) && !sl_stays_out(index, node);
    sl_reach_steps_free(&steps, index);
    return count;
}

/* Deletes most vectors. They leave with the next steps. */
static void delete_most(sl_index *index) {
    static uint64_t ids[2 * N];
    for (size_t i = 0; i < 2 * N; i++)
        ids[i] = i;
    ck_ok(sl_index_delete(index, ids, 2 * N - N / 2));
}

/* No step of the leaving of most vectors cuts another one off. With few links, hardly a list has room for one more. */
START_TEST(nobody_is_cut_off) {
    sl_index *index = make_with(_i ? 2 : 0, 0, 2 * N, SL_METRIC_L2);
    int waits;
    delete_most(index);
    for (size_t step = 0; step == 0 || index->swept; step++) {
        ck_ok(sl_reclaim_some(index, 256, &waits));
        ck_assert_uint_eq(out_of_reach(index), 0);
    }
    sl_index_free(index);
}
END_TEST

/* Takes all links to a vector away. */
static void take_links_from(sl_index *index, uint64_t id) {
    uint32_t victim;
    const size_t degree = index->graph.m0;
    ck_ok(sl_id_find(index, &index->graph, id, &victim));
    for (size_t node = 0; node < index->graph.n; node++) {
        uint32_t *links = sl_links(&index->graph, node), kept[2 * SL_MAX_M];
        size_t count = 0;
        for (size_t i = 0; i < degree && links[i] != SL_NONE; i++)
            if (links[i] != victim) kept[count++] = links[i];
        sl_links_store(index, links, degree, kept, count);
    }
}

/* Counts links of vectors that stay. */
static size_t links_to_leaving(const sl_index *index) {
    size_t count = 0;
    for (size_t node = 0; node < index->graph.n; node++)
        for (size_t i = 0; i < index->graph.m0 && !sl_node_set_has(&index->leaving, node); i++) {
            const uint32_t to = sl_links(&index->graph, node)[i];
            count += to != SL_NONE && sl_node_set_has(&index->leaving, to);
        }
    return count;
}

/* Deletes most vectors, and cuts another one off in the midst of the sweep. */
static void cut_off(sl_index *index) {
    int waits;
    delete_most(index);
    if (index->writer) ck_ok(sl_index_sync(index));
    ck_ok(sl_reclaim_some(index, 1, &waits));
    const size_t before = links_to_leaving(index);
    do
        ck_ok(sl_reclaim_some(index, 256, &waits));
    while (2 * links_to_leaving(index) > before);
    ck_assert(index->swept);
    take_links_from(index, 2 * N - 7);
    ck_assert_uint_ge(out_of_reach(index), 1);
}

/* A file that is saved while nodes leave passes a check, and so does one that is synced. */
START_TEST(saved_while_nodes_leave) {
    scratch place;
    sl_save_params params;
    sl_index *index = make(0, 2 * N, SL_METRIC_L2);
    scratch_open(&place);
    sl_save_params_init(&params);
    params.room = _i ? 2 * N : 0;
    if (_i) {
        ck_ok(sl_index_save(index, place.path, &params));
        sl_index_free(index);
        sl_open_params open;
        sl_open_params_init(&open);
        open.writable = 1;
        ck_ok(sl_index_open(place.path, &open, &index));
    }
    cut_off(index);
    ck_ok(_i ? sl_index_sync(index) : sl_index_save(index, place.path, &params));
    ck_assert_uint_eq(out_of_reach(index), 0);
    sl_index *opened = indexes_open(place.path, SL_PLACE_MAP);
    ck_assert_uint_eq(indexes_sound(opened).unreachable, 0);
    sl_index_free(opened);
    sl_index_free(index);
    scratch_close(&place);
}
END_TEST

/* The entry point is deleted again and again. */
START_TEST(entry_points_leave) {
    for (size_t i = 0; i < 300; i++) {
        sl_reading reading;
        const sl_graph *graph = sl_reading_begin(idx, &reading);
        const uint32_t top = graph->upper.nodes[(uint32_t)graph->entry];
        const uint64_t id = sl_id_of(graph, top);
        const int gone = sl_is_deleted(graph, top);
        sl_reading_end(&reading);
        if (!gone) delete_row(id);
        add_row(N + i);
        if (i % 20 == 0) ck_assert_uint_eq(indexes_sound(idx).unreachable, 0);
    }
}
END_TEST

START_TEST(all_go_and_others_come) {
    static uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = i;
    ck_ok(sl_index_delete(idx, ids, N));
    uint64_t found;
    ck_ok(sl_index_search(idx, x, SL_F32, 1, 0, 1, NULL, &found, NULL, NULL));
    ck_assert_uint_eq(found, SL_NO_ID);
    for (size_t i = 0; i < N; i++) {
        live[i] = N + i;
        add_row(live[i]);
    }
    ck_assert_uint_eq(sl_index_size(idx), N);
    ck_assert_uint_le(idx->graph.n, N + N / 8 + 2);
    ck_assert_double_ge(recall_of(idx), 0.95);
    indexes_sound(idx);
}
END_TEST

/* Filters, made before a place is used again, don't take the new vector for the old one. */
START_TEST(filters_know_the_old_vector) {
    sl_filter_params filter_params;
    sl_filter *filter;
    sl_filter_params_init(&filter_params);
    static uint64_t ids[200], found[K];
    for (size_t i = 0; i < 200; i++)
        ids[i] = i;
    filter_params.allow = ids;
    filter_params.allow_count = 200;
    ck_ok(sl_filter_create(idx, &filter_params, &filter));
    ck_ok(sl_index_delete(idx, ids, 199));
    ck_assert(sl_reclaim_run(idx));
    for (size_t row = N; row < N + 150; row++)
        add_row(row);
    ck_assert_uint_le(idx->graph.n, N);
    sl_search_params params;
    sl_search_params_init(&params);
    params.filter = filter;
    for (size_t row = N; row < N + 150; row++) {
        ck_ok(sl_index_search(idx, x + row * DIM, SL_F32, 1, 0, K, &params, found, NULL, NULL));
        ck_assert_uint_eq(found[0], 199);
        ck_assert_uint_eq(found[1], SL_NO_ID);
    }
    sl_filter_free(filter);
}
END_TEST

/* An index with partitions: a vector gets a place of its nearest partition, so scans find it. If no place fits,
 * the vector comes last. The index is compacted once too many places are free. */
START_TEST(places_fit_partitions) {
    sl_index *index = make(0, 2 * N, SL_METRIC_L2);
    ck_assert_uint_gt(index->graph.partitions.count, 0);
    static uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = i;
    ck_ok(sl_index_delete(index, ids, 300));
    ck_assert(sl_reclaim_run(index));
    const size_t free_before = index->free.count;
    for (size_t row = 2 * N; row < 2 * N + 300; row++) {
        const uint64_t id = row;
        ck_ok(sl_index_add(index, x + row * DIM, SL_F32, 1, 0, &id, NULL));
    }
    ck_assert_uint_lt(index->free.count, free_before);
    sl_search_params params;
    sl_search_params_init(&params);
    params.probes = 1;
    size_t found_count = 0;
    for (size_t row = 2 * N; row < 2 * N + 300; row++) {
        uint64_t found;
        ck_ok(sl_index_search(index, x + row * DIM, SL_F32, 1, 0, 1, &params, &found, NULL, NULL));
        found_count += found == row;
    }
    ck_assert_uint_ge(found_count, 280);
    indexes_sound(index);
    ck_ok(sl_index_delete(index, ids + 300, N - 300));
    ck_assert(sl_reclaim_run(index));
    const uint64_t more = 2 * N + 300;
    ck_ok(sl_index_add(index, x + more * DIM, SL_F32, 1, 0, &more, NULL));
    ck_assert_uint_lt(index->graph.n, N + N / 4);
    ck_ok(sl_partitions_check(&index->graph));
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* Crowds of copies come and go, and harm nobody else (trap 19). */
START_TEST(copies_come_and_go) {
    static uint64_t ids[400];
    static float copies[400 * DIM];
    for (size_t i = 0; i < 400; i++)
        memcpy(copies + i * DIM, x, DIM * sizeof *copies);
    for (size_t round = 0; round < 5; round++) {
        for (size_t i = 0; i < 400; i++)
            ids[i] = ALL + round * 400 + i;
        ck_ok(sl_index_add(idx, copies, SL_F32, 400, 0, ids, NULL));
        ck_assert_uint_eq(indexes_sound(idx).unreachable, 0);
        ck_ok(sl_index_delete(idx, ids, 400));
        ck_assert_uint_eq(indexes_sound(idx).unreachable, 0);
    }
    ck_assert_double_ge(recall_of(idx), 0.97);
    ck_assert_uint_le(idx->graph.n, N + 800);
}
END_TEST

START_TEST(compacts) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index_params params;
    sl_index *index;
    static uint64_t ids[2 * N];
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.allocator = &memory.allocator;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(sl_index_add(index, x, SL_F32, 2 * N, 0, NULL, NULL));
    const size_t before = memory.live_bytes;
    for (size_t i = 0; i < 2 * N; i++)
        ids[i] = i;
    ck_ok(sl_index_delete(index, ids, 2 * N - N / 2));
    ck_ok(sl_index_compact(index, NULL));
    ck_assert_uint_eq(index->graph.n, N / 2);
    ck_assert_uint_eq(indexes_stats(index).deleted + indexes_stats(index).reusable, 0);
    ck_assert_uint_lt(memory.live_bytes, before / 3);
    indexes_sound(index);
    for (size_t row = 2 * N - N / 2; row < 2 * N; row++) {
        uint64_t found;
        ck_ok(sl_index_search(index, x + row * DIM, SL_F32, 1, 0, 1, NULL, &found, NULL, NULL));
        ck_assert_uint_eq(found, row);
    }
    ck_ok(sl_index_delete(index, ids + 2 * N - N / 2, N / 2));
    ck_ok(sl_index_compact(index, NULL));
    ck_assert_uint_eq(sl_index_size(index), 0);
    ck_ok(sl_index_add(index, x, SL_F32, 10, 0, ids, NULL));
    indexes_sound(index);
    sl_index_free(index);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

/* An index opened from a file keeps ids of 4 bytes. */
START_TEST(ids_of_a_file_stay) {
    scratch place;
    scratch_open(&place);
    sl_index *made = make(7, N, SL_METRIC_COSINE), *index = NULL;
    ck_ok(indexes_save(made, place.path));
    sl_index_free(made);
    index = indexes_open(place.path, SL_PLACE_DRAM);
    ck_assert_uint_eq(index->graph.arrays[SL_ARRAY_IDS].width, sizeof(uint32_t));
    static uint64_t ids[N], left[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = 7 + i;
    ck_ok(sl_index_delete(index, ids, N / 3));
    ck_assert(sl_reclaim_run(index));
    size_t count;
    ck_ok(sl_index_ids(index, left, N, &count));
    ck_assert_uint_eq(count, N - N / 3);
    for (size_t i = 0; i < count; i++)
        ck_assert(left[i] >= 7 + N / 3 && left[i] < 7 + N);
    ck_ok(sl_index_save(index, place.path, NULL));
    indexes_sound(index);
    sl_index_free(index);
    index = indexes_open(place.path, SL_PLACE_MAP);
    ck_assert_uint_eq(sl_index_size(index), N - N / 3);
    indexes_sound(index);
    sl_index_free(index);
    scratch_close(&place);
}
END_TEST

START_TEST(compacting_is_cancelled) {
    sl_compact_params params;
    static uint64_t ids[N];
    sl_compact_params_init(&params);
    params.progress = indexes_cancel;
    for (size_t i = 0; i < N; i++)
        ids[i] = i;
    sl_reading reading; /* the work can't end while this search goes on */
    (void)sl_reading_begin(idx, &reading);
    ck_ok(sl_index_delete(idx, ids, N / 2));
    ck_fails(sl_index_compact(idx, &params), SL_ECANCELED, "cancelled");
    sl_reading_end(&reading);
    indexes_sound(idx);
    ck_ok(sl_index_compact(idx, NULL));
    ck_assert_uint_eq(idx->graph.n, N / 2);
    indexes_sound(idx);
}
END_TEST

static int cancel_late(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    return done >= total;
}

/* A cancelled add into free places leaves nothing that a search finds, and the places serve again. */
START_TEST(cancelled_adds_give_places_back) {
    static uint64_t ids[100];
    for (size_t row = 0; row < 200; row++)
        delete_row(row);
    ck_assert(sl_reclaim_run(idx));
    sl_add_params params;
    sl_add_params_init(&params);
    params.progress = cancel_late;
    for (size_t i = 0; i < 100; i++)
        ids[i] = N + i;
    ck_assert_int_eq(sl_index_add(idx, x + (size_t)N * DIM, SL_F32, 100, 0, ids, &params), SL_ECANCELED);
    ck_assert_uint_eq(sl_index_size(idx), N - 200);
    int found;
    ck_ok(sl_index_contains(idx, N, &found));
    ck_assert(!found);
    indexes_sound(idx);
    ck_ok(sl_index_add(idx, x + (size_t)N * DIM, SL_F32, 100, 0, ids, NULL));
    ck_assert_uint_eq(sl_index_size(idx), N - 100);
    ck_assert(sl_reclaim_run(idx));
    indexes_sound(idx);
}
END_TEST

static uint32_t node_of(uint64_t id) {
    uint32_t node;
    ck_ok(sl_id_find(idx, &idx->graph, id, &node));
    return node;
}

/* Replaces some of the last nodes until one has a place before the old one, and deletes its id. Returns the id. */
static uint64_t replace_by_an_earlier(uint32_t *old) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.replace = SL_REPLACE_ALL;
    for (uint64_t id = N - 1;; id--) {
        ck_assert_uint_gt(id, 600);
        *old = node_of(id);
        if (*old < N - 300) continue;
        ck_ok(sl_index_add(idx, x + (size_t)(N + id) * DIM, SL_F32, 1, 0, &id, &params));
        if (node_of(id) > *old) continue;
        delete_row(id);
        return id;
    }
}

/* The last vector of an id is gone before an older one. An undelete then brings neither back. */
START_TEST(no_older_vector_comes_back) {
    uint32_t old;
    int waits;
    for (size_t row = 0; row < 200; row++)
        delete_row(row);
    ck_assert(sl_reclaim_run(idx));
    idx->keeps_deleted = 1;
    const uint64_t id = replace_by_an_earlier(&old);
    for (size_t row = 200; row < 400; row++)
        delete_row(row);
    idx->keeps_deleted = 0;
    const size_t before = idx->free.count;
    while (idx->free.count == before)
        ck_ok(sl_reclaim_some(idx, 1, &waits));
    sl_reclaim_stop(idx); /* as another numbering does */
    /* The older vector is still there, and the last one isn't. */
    ck_assert_uint_eq(sl_id_of(&idx->graph, old), id);
    ck_assert(!sl_node_set_has(&idx->free, old));
    for (size_t node = 0; node < old; node++)
        ck_assert_uint_ne(sl_id_of(&idx->graph, (uint32_t)node), id);
    ck_fails(sl_index_undelete(idx, &id, 1), SL_ENOTFOUND, "was not deleted");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("reclaim");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, ten_times_turnover);
    tcase_add_test(tests, turnover_renumbers);
    tcase_add_test(tests, renumbered_while_nodes_leave);
    tcase_add_test(tests, freed_places_keep_nothing);
    tcase_add_test(tests, searches_hold_places);
    tcase_add_test(tests, places_are_taken_before_all_are_free);
    tcase_add_loop_test(tests, nobody_is_cut_off, 0, 2);
    tcase_add_loop_test(tests, saved_while_nodes_leave, 0, 2);
    tcase_add_test(tests, entry_points_leave);
    tcase_add_test(tests, all_go_and_others_come);
    tcase_add_test(tests, filters_know_the_old_vector);
    tcase_add_test(tests, places_fit_partitions);
    tcase_add_test(tests, copies_come_and_go);
    tcase_add_test(tests, compacts);
    tcase_add_test(tests, ids_of_a_file_stay);
    tcase_add_test(tests, compacting_is_cancelled);
    tcase_add_test(tests, cancelled_adds_give_places_back);
    tcase_add_test(tests, no_older_vector_comes_back);
    return check_main("reclaim", &tests, 1);
}
