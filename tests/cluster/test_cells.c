/* Cells of a split: what they are learnt from, how they are grouped, what is refused, and which rank holds a part. */
#include "cluster/search/learn_cells.h"
#include "cluster/search/parts.h"
#include "tests/cluster/ranks_main.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 6, ROWS = 360, CELLS = 40, PARTS = 3 };

static const sl_allocator *plain(void) {
    static sl_allocator allocator;
    allocator = sl_allocator_of(NULL);
    return &allocator;
}

/* Row r of a set in which every third row is zero if `zeros`. The others are the same ones, in the same order. */
static void make_row(size_t r, int zeros, float *row) {
    uint32_t state;
    memset(row, 0, DIM * sizeof *row);
    if (zeros && r % 3 == 1) return;
    state = (uint32_t)(zeros ? r - r / 3 - (r % 3 == 2) : r) * 2654435761u + 1;
    for (size_t i = 0; i < DIM; i++) {
        state = state * 1664525u + 1013904223u;
        row[i] = (float)(int32_t)state / 1e9f;
    }
}

static size_t rows_of(int zeros) {
    return zeros ? ROWS : ROWS - ROWS / 3;
}

/* This rank's rows of a sample of `total` rows; the caller frees them. */
static sl_cell_sample sample_of(sl_metric metric, size_t total, size_t dim, float **rows) {
    const size_t first = sl_comm_share(total, all_ranks.rank, all_ranks.ranks);
    const size_t count = sl_comm_share(total, all_ranks.rank + 1, all_ranks.ranks) - first;
    *rows = calloc(count * dim + 1, sizeof **rows);
    return (sl_cell_sample){
        .rows = *rows, .first = first, .count = count, .total = total, .dim = dim, .metric = metric};
}

static sl_cells learn(sl_metric metric, int zeros) {
    float *rows;
    sl_cells cells;
    const sl_cell_sample sample = sample_of(metric, rows_of(zeros), DIM, &rows);
    for (size_t r = 0; r < sample.count; r++)
        make_row(sample.first + r, zeros, rows + r * DIM);
    rank_assert_ok(sl_cell_sample_check(&sample, sample.total));
    rank_assert_ok(sl_cells_learn(&all_ranks, &sample, CELLS, PARTS, 1, &cells));
    rank_assert(sl_cells_are_sound(&cells));
    free(rows);
    return cells;
}

START_TEST(zero_rows_make_no_cells) {
    sl_cells with = learn(SL_METRIC_IP, 1), without = learn(SL_METRIC_IP, 0);
    rank_assert(with.groups == without.groups);
    rank_assert(memcmp(with.starts, without.starts, sl_cells_starts(PARTS, with.groups) * sizeof *with.starts) == 0);
    rank_assert(memcmp(with.centres, without.centres, (size_t)CELLS * DIM * sizeof(float)) == 0);
    sl_cells_free(&with);
    sl_cells_free(&without);
    with = learn(SL_METRIC_L2, 1);
    sl_cells_free(&with);
}
END_TEST

START_TEST(zero_rows_alone_are_refused) {
    float *rows;
    sl_cells cells;
    sl_cell_sample sample = sample_of(SL_METRIC_IP, 50, DIM, &rows);
    rank_assert(sl_cells_learn(&all_ranks, &sample, 4, 2, 1, &cells) == SL_EVALUE);
    rank_assert(strstr(sl_last_error(), "all 50 vectors") != NULL);
    sl_cells_free(&cells);
    /* The last row alone has a direction. */
    if (all_ranks.rank + 1 == all_ranks.ranks) rows[(sample.count - 1) * DIM] = 2;
    rank_assert_ok(sl_cells_learn(&all_ranks, &sample, 4, 2, 1, &cells));
    rank_assert(sl_cells_are_sound(&cells) && cells.centres[0] == 1 && cells.centres[3 * DIM] == 1);
    sl_cells_free(&cells);
    free(rows);
}
END_TEST

START_TEST(a_sample_is_checked) {
    float *rows;
    char row[32];
    sl_cell_sample sample = sample_of(SL_METRIC_COSINE, 50, DIM, &rows);
    snprintf(row, sizeof row, "row %zu:", 10 * sample.first);
    rank_assert(sl_cell_sample_check(&sample, 500) == SL_EVALUE && strstr(sl_last_error(), row));
    sample.metric = SL_METRIC_IP;
    rank_assert_ok(sl_cell_sample_check(&sample, 500));
    rows[DIM + 1] = INFINITY;
    snprintf(row, sizeof row, "row %zu:", 10 * (sample.first + 1));
    rank_assert(sl_cell_sample_check(&sample, 500) == SL_EVALUE && strstr(sl_last_error(), row));
    free(rows);
}
END_TEST

/* Two cells whose mean is zero are one group. */
START_TEST(opposite_cells_have_a_group) {
    float *rows;
    sl_cells cells;
    const sl_cell_sample sample = sample_of(SL_METRIC_IP, 32, 2, &rows);
    for (size_t r = 0; r < sample.count; r++)
        rows[2 * r + 1] = sample.first + r < 16 ? 3 : -5;
    rank_assert_ok(sl_cells_learn(&all_ranks, &sample, 2, 1, 1, &cells));
    rank_assert(cells.groups == 1 && sl_cells_are_sound(&cells));
    rank_assert(cells.group_centres[0] == 0 && fabsf(cells.group_centres[1]) == 1);
    sl_cells_free(&cells);
    free(rows);
}
END_TEST

START_TEST(a_vector_without_a_direction_is_routed) {
    sl_cells cells = learn(SL_METRIC_IP, 0);
    float vectors[40 * DIM], more[80 * DIM] = {0}, gap, same, zero[DIM] = {0};
    sl_route routes[PARTS];
    sl_router *router;
    for (size_t v = 0; v < 40; v++) {
        make_row(v, 0, vectors + v * DIM);
        memcpy(more + 2 * v * DIM, vectors + v * DIM, DIM * sizeof(float));
    }
    rank_assert_ok(sl_router_create(&cells, &router));
    rank_assert(sl_router_has_direction(router, vectors, SL_F32) && !sl_router_has_direction(router, zero, SL_F32));
    rank_assert_ok(sl_router_choose_gap(router, vectors, SL_F32, 40, 2, &gap));
    rank_assert_ok(sl_router_choose_gap(router, more, SL_F32, 80, 2, &same));
    rank_assert(gap > 0 && gap == same);
    const size_t count =
        sl_router_find(router, zero, SL_F32, (sl_opening){.least = cells.groups, .gap = INFINITY}, routes, NULL);
    rank_assert(count == PARTS && routes[0].reach == 0);
    for (size_t i = 1; i < count; i++)
        rank_assert(routes[i].reach >= routes[i - 1].reach && routes[i].reach <= 1);
    sl_router_free(router);
    sl_cells_free(&cells);
}
END_TEST

/* Returns whether cells are sound once one number has another value. */
static int sound_with(sl_cells *cells, float *number, float value) {
    const float kept = *number;
    *number = value;
    const int sound = sl_cells_are_sound(cells);
    *number = kept;
    return sound;
}

START_TEST(unsound_cells_are_not_saved) {
    sl_cells cells = learn(SL_METRIC_IP, 0), far = learn(SL_METRIC_L2, 0);
    sl_split_part parts[PARTS] = {{.n = 0}};
    sl_split split = {.allocator = *plain(), .cells = cells, .parts = parts};
    split.facts = (sl_split_facts){
        .kind = SL_SPLIT_NEIGHBOURHOODS, .dim = DIM, .parts = PARTS, .groups = (uint32_t)cells.groups, .cells = CELLS};
    rank_assert(!sound_with(&cells, &cells.centres[7], NAN) && !sound_with(&cells, &cells.group_centres[0], INFINITY));
    rank_assert(!sound_with(&cells, &cells.centres[7], 2) && !sound_with(&far, &far.centres[7], NAN));
    rank_assert(sound_with(&far, &far.centres[7], 2) && !sound_with(&far, &far.centres[7], 1e30f));
    const uint32_t kept = cells.starts[1];
    cells.starts[1] = UINT32_MAX;
    rank_assert(!sl_cells_are_sound(&cells));
    cells.starts[1] = kept;
    rank_assert(sl_cells_are_sound(&cells));
    memset(cells.centres, 0, DIM * sizeof *cells.centres);
    rank_assert(sl_split_save(&split, "/tmp") == SL_EVALUE);
    rank_assert(strstr(sl_last_error(), "/tmp/routing.sls") != NULL);
    sl_cells_free(&cells);
    sl_cells_free(&far);
}
END_TEST

START_TEST(parts_lie_in_the_shares_of_ranks) {
    for (size_t parts = 1; parts < 40; parts++)
        for (size_t ranks = 1; ranks < 40; ranks++)
            for (size_t part = 0; part < parts; part++) {
                const size_t rank = sl_rank_of_part(part, parts, ranks);
                rank_assert(rank < ranks && sl_comm_share(parts, rank, ranks) <= part &&
                            part < sl_comm_share(parts, rank + 1, ranks));
            }
}
END_TEST

int main(int argc, char **argv) {
    TCase *test = tcase_create("cells");
    tcase_add_test(test, zero_rows_make_no_cells);
    tcase_add_test(test, zero_rows_alone_are_refused);
    tcase_add_test(test, a_sample_is_checked);
    tcase_add_test(test, opposite_cells_have_a_group);
    tcase_add_test(test, a_vector_without_a_direction_is_routed);
    tcase_add_test(test, unsound_cells_are_not_saved);
    tcase_add_test(test, parts_lie_in_the_shares_of_ranks);
    return ranks_main(argc, argv, "cells", &test, 1);
}
