/* The nearest centres of a row, found among groups of groups: nearly those that comparing with all finds, and the same
 * at any number of threads. */
#include "distance/codec/encode.h"
#include "hnsw/construct/centre_groups.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"

#include <stdlib.h>

enum { DIM = 8, FEW = 900, MANY = 100000, ASKED = 640, KEEP = 4 };

typedef struct centres {
    fault_allocator memory;
    sl_graph graph;
    sl_codec codec;
    uint8_t *rows;
    sl_centre_groups groups;
    size_t n;
} centres;

static void centres_make(centres *c, size_t n, size_t threads) {
    float *floats = clusters_make(n, DIM, 0, 5), scratch[DIM];
    *c = (centres){.n = n};
    fault_allocator_init(&c->memory, 0);
    c->graph.allocator = c->memory.allocator;
    c->graph.kernels = sl_kernels_best();
    ck_ok(sl_codec_init(&c->codec, DIM, SL_METRIC_L2, SL_F32, SL_CODES_I8));
    c->rows = aligned_alloc(64, sl_round_up(sl_codec_rows_size(&c->codec, n), 64));
    ck_assert(floats && c->rows);
    for (size_t i = 0; i < n; i++)
        sl_encode_row(&c->codec, floats + i * DIM, SL_F32, c->rows + i * c->codec.rows.pitch, scratch, NULL);
    c->codec.rows.base = c->rows;
    ck_ok(sl_centre_groups_init(&c->groups, &c->graph, &c->codec, n, threads));
    free(floats);
}

static void centres_free(centres *c) {
    sl_centre_groups_free(&c->groups);
    ck_assert_uint_eq(c->memory.live_blocks, 0);
    free(c->rows);
}

/* Every centre is in one group, and many heads are grouped themselves. */
static void check_order(const centres *c, int are_many) {
    uint8_t *seen = calloc(c->n, 1);
    ck_assert_ptr_nonnull(seen);
    for (size_t i = 0; i < c->n; i++)
        ck_assert_uint_eq(seen[c->groups.order[i]]++, 0);
    free(seen);
    ck_assert_int_eq(c->groups.heads->count > 0, are_many);
    ck_assert_ptr_eq(are_many ? c->groups.heads->heads->heads : c->groups.heads->heads, NULL);
}

/* Share of the KEEP nearest centres that are found, for rows that are centres themselves. */
static double found_share(const centres *c) {
    sl_columns all;
    sl_top_columns exact;
    sl_top_centres top;
    size_t found = 0;
    ck_ok(sl_columns_init(&all, &c->graph, &c->codec, c->n));
    sl_columns_pack(&all, NULL, c->n);
    ck_ok(sl_top_columns_init(&exact, &c->graph, &c->codec, KEEP));
    ck_ok(sl_top_centres_init(&top, &c->groups, KEEP));
    for (size_t first = 0; first < ASKED; first += SL_TOP_QUERIES) {
        uint32_t rows[SL_TOP_QUERIES];
        for (size_t i = 0; i < SL_TOP_QUERIES; i++) {
            sl_query_code query;
            rows[i] = (uint32_t)((first + i) * c->n / ASKED);
            sl_row_as_query(&c->codec, c->rows + rows[i] * c->codec.rows.pitch, top.best.buffer, &query);
            sl_top_centres_query(&top, i, &query);
        }
        sl_top_centres_scan(&top, &c->groups, SL_TOP_QUERIES);
        sl_top_columns_of_rows(&exact, &all, rows, SL_TOP_QUERIES, NULL);
        for (size_t i = 0; i < SL_TOP_QUERIES; i++)
            for (size_t j = 0; j < KEEP && j < top.best.scans[i].count; j++)
                for (size_t k = 0; k < KEEP; k++)
                    found += top.best.scans[i].ids[j] == exact.scans[i].ids[k];
    }
    sl_top_centres_free(&top);
    sl_top_columns_free(&exact);
    sl_columns_free(&all);
    return (double)found / (ASKED * KEEP);
}

START_TEST(near_centres_are_found) {
    static const size_t sizes[] = {FEW, MANY};
    static const double shares[] = {0.99, 0.93};
    centres c, other;
    centres_make(&c, sizes[_i], 1);
    centres_make(&other, sizes[_i], 3);
    ck_ok(sl_centre_groups_arrange(&c.groups));
    ck_ok(sl_centre_groups_arrange(&other.groups));
    check_order(&c, sizes[_i] == MANY);
    ck_assert_mem_eq(c.groups.order, other.groups.order, c.n * sizeof *c.groups.order);
    const double share = found_share(&c);
    ck_assert_msg(share >= shares[_i], "%zu centres: %.4f of the nearest", c.n, share);
    centres_free(&c);
    centres_free(&other);
}
END_TEST

/* Grouped heads take far fewer comparisons. */
START_TEST(comparisons_are_counted) {
    const double few = sl_centre_groups_comparisons(FEW, 1) - sl_centre_groups_comparisons(FEW, 0);
    const double many = sl_centre_groups_comparisons(MANY, 1) - sl_centre_groups_comparisons(MANY, 0);
    ck_assert_double_gt(few, FEW / 2.0);
    ck_assert_double_lt(many, MANY / 75.0);
}
END_TEST

START_TEST(bytes_are_counted) {
    static const size_t sizes[] = {FEW, MANY};
    centres c;
    centres_make(&c, sizes[_i], 3);
    const size_t lasting = c.memory.live_bytes;
    ck_assert_uint_eq(lasting, sl_centre_groups_bytes(&c.codec, c.n, 0));
    c.memory.most_bytes = lasting;
    ck_ok(sl_centre_groups_arrange(&c.groups));
    ck_assert_uint_le(c.memory.most_bytes, sl_centre_groups_bytes(&c.codec, c.n, 3));
    ck_assert_uint_eq(c.memory.live_bytes, lasting);
    sl_top_centres top;
    ck_ok(sl_top_centres_init(&top, &c.groups, KEEP));
    ck_assert_uint_eq(c.memory.live_bytes - lasting, sl_top_centres_bytes(&c.codec, c.n, KEEP));
    sl_top_centres_free(&top);
    centres_free(&c);
}
END_TEST

/* Every allocation fails once: of groups, of a thread's scratch, and of both while centres are grouped. */
static void check_inits_without_memory(centres *c) {
    sl_centre_groups groups;
    sl_top_centres top;
    sl_status status = SL_ENOMEM;
    const size_t blocks = c->memory.live_blocks;
    for (size_t at = 1; status != SL_OK; at++) {
        c->memory.calls = 0;
        c->memory.fail_at = at;
        status = sl_centre_groups_init(&groups, &c->graph, &c->codec, c->n, 1);
        sl_centre_groups_free(&groups);
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        ck_assert_uint_eq(c->memory.live_blocks, blocks);
    }
    status = SL_ENOMEM;
    for (size_t at = 1; status != SL_OK; at++) {
        c->memory.calls = 0;
        c->memory.fail_at = at;
        status = sl_top_centres_init(&top, &c->groups, KEEP);
        sl_top_centres_free(&top);
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        ck_assert_uint_eq(c->memory.live_blocks, blocks);
    }
    c->memory.fail_at = 0;
}

START_TEST(without_memory) {
    centres c;
    centres_make(&c, MANY, 2);
    check_inits_without_memory(&c);
    size_t at = 1;
    for (;; at++) {
        c.memory.calls = 0;
        c.memory.fail_at = at;
        const sl_status status = sl_centre_groups_arrange(&c.groups);
        if (c.memory.calls < at) {
            ck_ok(status);
            break;
        }
        ck_assert_int_eq(status, SL_ENOMEM);
    }
    ck_assert_uint_gt(at, 4);
    c.memory.fail_at = 0;
    check_order(&c, 1);
    centres_free(&c);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("centre groups");
    TCase *threads = tcase_create("threads"), *all[] = {tests, threads};
    tcase_add_loop_test(threads, near_centres_are_found, 0, 2);
    tcase_add_test(tests, comparisons_are_counted);
    tcase_add_loop_test(tests, bytes_are_counted, 0, 2);
    tcase_add_test(tests, without_memory);
    return check_main("centre groups", all, 2);
}
