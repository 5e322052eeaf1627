#include "hnsw/build/select.h"

#include "base/random.h"
#include "hnsw/build/copies.h"

#include <string.h>

enum { MOST_COPIES = 2, SOME = 8 };

sl_status sl_select_init(sl_select *select, const sl_graph *graph, size_t most) {
    *select = (sl_select){.graph = graph, .most = most};
    const sl_allocator *allocator = &graph->allocator;
    sl_status status = sl_nearness_init(&select->nearness, graph);
    select->nodes = sl_mem_array(allocator, 2 * most + 1, sizeof *select->nodes, &status);
    select->scores = sl_mem_array(allocator, 2 * most, sizeof *select->scores, &status);
    if (status != SL_OK) {
        sl_select_free(select);
        return status;
    }
    select->chosen = select->nodes + most + 1;
    select->units = select->scores + most;
    return SL_OK;
}

size_t sl_select_bytes(const sl_graph *graph, size_t most) {
    return sizeof(uint32_t) + 2 * most * (sizeof(uint32_t) + sizeof(float)) + sl_nearness_bytes(graph);
}

void sl_select_free(sl_select *select) {
    const sl_graph *graph = select->graph;
    if (!graph) return;
    sl_mem_free(&graph->allocator, select->nodes, (2 * select->most + 1) * sizeof(uint32_t));
    sl_mem_free(&graph->allocator, select->scores, 2 * select->most * sizeof(float));
    sl_nearness_free(&select->nearness);
    select->graph = NULL;
}

/* Tells which of two candidates of one score comes first: either, by chance, and not the same for every base. The order
 * in which candidates arrive does not count, and the first of many copies is not in every list. */
static int comes_first(uint32_t base, uint32_t a, uint32_t b) {
    return sl_random_at(base, a) < sl_random_at(base, b);
}

/* Sorts candidates by insertion, which is the best of sorts for them: they arrive almost in order, from a walk's pool
 * or an old list. */
static void sort_candidates(sl_select *select, uint32_t base) {
    for (size_t i = 1; i < select->count; i++) {
        uint32_t node = select->nodes[i];
        float score = select->scores[i];
        size_t j = i;
        for (; j > 0; j--) {
            float other = select->scores[j - 1];
            if (!(other < score || (other == score && comes_first(base, node, select->nodes[j - 1])))) break;
            select->nodes[j] = select->nodes[j - 1];
            select->scores[j] = other;
        }
        select->nodes[j] = node;
        select->scores[j] = score;
    }
}

/* Tells whether a candidate is nearer to one already chosen than to the base, which lies before the chosen. The first
 * few of those cover half the candidates, so that they are looked at some at a time. */
static int is_covered(sl_select *select, uint32_t candidate, float base_unit) {
    const uint32_t *nodes = select->chosen - 1;
    const size_t end = select->chosen_count + 1;
    float to_base = 0, pairs[SOME];
    if (!select->chosen_count) return 0;
    sl_nearness_set(&select->nearness, candidate);
    for (size_t first = 0; first < end; first += SOME) {
        const size_t count = end - first < SOME ? end - first : SOME;
        sl_nearness_many(&select->nearness, nodes + first, count, pairs);
        if (!first) to_base = pairs[0] * base_unit;
        for (size_t i = !first; i < count; i++)
            if (pairs[i] * select->units[first + i - 1] > to_base) return 1;
    }
    return 0;
}

static uint32_t apart(uint32_t a, uint32_t b) {
    return a < b ? b - a : a - b;
}

/* Keeps the copies whose numbers are nearest to the base's: copies so form a chain, on which each is met. */
static size_t keep_copy(uint32_t *copies, size_t count, size_t most, uint32_t base, uint32_t copy) {
    size_t at = count < most ? count : most;
    for (; at > 0 && apart(copies[at - 1], base) > apart(copy, base); at--)
        if (at < most) copies[at] = copies[at - 1];
    if (at < most) copies[at] = copy;
    return count < most ? count + 1 : count;
}

void sl_select_run(sl_select *select, uint32_t base, size_t limit) {
    uint32_t copies[MOST_COPIES];
    size_t copy_count = 0, most_copies = limit / 2 < MOST_COPIES ? limit / 2 : MOST_COPIES;
    float base_unit = sl_nearness_unit(select->graph, base);
    select->chosen_count = 0;
    select->chosen[-1] = base;
    sl_nearness_set(&select->nearness, base);
    sl_nearness_many(&select->nearness, select->nodes, select->count, select->scores);
    sort_candidates(select, base);
    for (size_t i = 0; i < select->count && select->chosen_count + copy_count < limit; i++) {
        if (sl_is_copy(select->graph, base, select->nodes[i])) {
            copy_count = keep_copy(copies, copy_count, most_copies, base, select->nodes[i]);
        } else if (!is_covered(select, select->nodes[i], base_unit)) {
            select->units[select->chosen_count] = sl_nearness_unit(select->graph, select->nodes[i]);
            select->chosen[select->chosen_count++] = select->nodes[i];
        }
    }
    for (size_t i = 0; i < copy_count; i++)
        select->chosen[select->chosen_count++] = copies[i];
}
