#include "hnsw/construct/select_neighbours.h"

#include "base/random.h"
#include "hnsw/construct/duplicates.h"

#include <string.h>

enum { MAX_DUPLICATES = 2, BLOCK = 8 };

sl_status sl_selection_init(sl_selection *selection, const sl_graph *graph, size_t most) {
    *selection = (sl_selection){.graph = graph, .most = most};
    const sl_allocator *allocator = &graph->allocator;
    sl_status status = sl_similarity_init(&selection->similarity, graph);
    selection->candidates = sl_mem_array(allocator, 2 * most + 1, sizeof *selection->candidates, &status);
    selection->scores = sl_mem_array(allocator, 2 * most, sizeof *selection->scores, &status);
    if (status != SL_OK) {
        sl_selection_free(selection);
        return status;
    }
    selection->selected = selection->candidates + most + 1;
    selection->units = selection->scores + most;
    return SL_OK;
}

size_t sl_selection_bytes(const sl_graph *graph, size_t most) {
    return sizeof(uint32_t) + 2 * most * (sizeof(uint32_t) + sizeof(float)) + sl_similarity_bytes(graph);
}

void sl_selection_free(sl_selection *selection) {
    const sl_graph *graph = selection->graph;
    if (!graph) return;
    SL_FREE_ARRAY(&graph->allocator, selection->candidates, 2 * selection->most + 1);
    SL_FREE_ARRAY(&graph->allocator, selection->scores, 2 * selection->most);
    sl_similarity_free(&selection->similarity);
    selection->graph = NULL;
}

/* Returns whether a comes before b, if both have the same similarity. The order is by chance, and differs between
 * bases. So the order of candidates doesn't matter, and the first of many duplicates isn't in every list. */
static int comes_first(uint32_t base, uint32_t a, uint32_t b) {
    return sl_random_at(base, a) < sl_random_at(base, b);
}

/* Sorts candidates by insertion. That's the fastest here: they come almost in order, from a walk's pool or an old
 * list. */
static void sort_candidates(sl_selection *selection, uint32_t base) {
    for (size_t i = 1; i < selection->candidate_count; i++) {
        uint32_t node = selection->candidates[i];
        float score = selection->scores[i];
        size_t j = i;
        for (; j > 0; j--) {
            float other = selection->scores[j - 1];
            if (!(other < score || (other == score && comes_first(base, node, selection->candidates[j - 1])))) break;
            selection->candidates[j] = selection->candidates[j - 1];
            selection->scores[j] = other;
        }
        selection->candidates[j] = node;
        selection->scores[j] = score;
    }
}

/* Returns whether a candidate is nearer to a selected node than to the base, which lies at selected[-1]. The first few
 * selected nodes cover half of all candidates, so nodes are compared a block at a time. */
static int is_covered(sl_selection *selection, uint32_t candidate, float base_unit) {
    const uint32_t *nodes = selection->selected - 1;
    const size_t end = selection->selected_count + 1;
    float to_base = 0, pairs[BLOCK];
    if (!selection->selected_count) return 0;
    sl_similarity_set(&selection->similarity, candidate);
    for (size_t first = 0; first < end; first += BLOCK) {
        const size_t count = end - first < BLOCK ? end - first : BLOCK;
        sl_similarity_many(&selection->similarity, nodes + first, count, pairs);
        if (!first) to_base = pairs[0] * base_unit;
        for (size_t i = !first; i < count; i++)
            if (pairs[i] * selection->units[first + i - 1] > to_base) return 1;
    }
    return 0;
}

static uint32_t number_gap(uint32_t a, uint32_t b) {
    return a < b ? b - a : a - b;
}

/* Keeps the duplicates whose numbers are nearest to the base's. All duplicates then form a chain, and a walk reaches
 * each. */
static size_t keep_duplicate(uint32_t *duplicates, size_t count, size_t most, uint32_t base, uint32_t duplicate) {
    size_t at = count < most ? count : most;
    for (; at > 0 && number_gap(duplicates[at - 1], base) > number_gap(duplicate, base); at--)
        if (at < most) duplicates[at] = duplicates[at - 1];
    if (at < most) duplicates[at] = duplicate;
    return count < most ? count + 1 : count;
}

void sl_select_neighbours(sl_selection *selection, uint32_t base, size_t limit) {
    uint32_t duplicates[MAX_DUPLICATES];
    size_t duplicate_count = 0, max_duplicates = limit / 2 < MAX_DUPLICATES ? limit / 2 : MAX_DUPLICATES;
    float base_unit = sl_similarity_unit(selection->graph, base);
    selection->selected_count = 0;
    selection->selected[-1] = base;
    sl_similarity_set(&selection->similarity, base);
    sl_similarity_many(&selection->similarity, selection->candidates, selection->candidate_count, selection->scores);
    sort_candidates(selection, base);
    for (size_t i = 0; i < selection->candidate_count && selection->selected_count + duplicate_count < limit; i++) {
        if (sl_is_duplicate(selection->graph, base, selection->candidates[i])) {
            duplicate_count =
                keep_duplicate(duplicates, duplicate_count, max_duplicates, base, selection->candidates[i]);
        } else if (!is_covered(selection, selection->candidates[i], base_unit)) {
            selection->units[selection->selected_count] =
                sl_similarity_unit(selection->graph, selection->candidates[i]);
            selection->selected[selection->selected_count++] = selection->candidates[i];
        }
    }
    for (size_t i = 0; i < duplicate_count; i++)
        selection->selected[selection->selected_count++] = duplicates[i];
}
