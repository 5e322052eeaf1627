/* A check finds each kind of fault, counts it, and says what it is. Faults are made inside an index that was sound. */
#include "hnsw/graph/entry.h"
#include "hnsw/graph/index.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 800, DIM = 12, M = 6 };

static float *x;
static sl_index *idx;

static void set_up(void) {
    uint64_t ids[N];
    x = clusters_make(N, DIM, 0.3, 11);
    for (size_t i = 0; i < N; i++)
        ids[i] = 2 * i;
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.m = M;
    idx = indexes_make(&params, x, SL_F32, N, ids, 1);
    indexes_sound(idx);
}

static void tear_down(void) {
    sl_index_free(idx);
    free(x);
}

static uint32_t *links_of(uint32_t node) {
    return sl_links(&idx->graph, node);
}

static size_t degree(const uint32_t *links, size_t most) {
    size_t count = 0;
    while (count < most && links[count] != SL_NONE)
        count++;
    return count;
}

/* A slot with links on the level, and not on the one above; other than `but`. */
static uint32_t slot_on(uint32_t level, uint32_t but) {
    for (uint32_t slot = 0; slot < idx->graph.upper.count; slot++)
        if (slot != but && idx->graph.upper.start[slot + 1] - idx->graph.upper.start[slot] == level &&
            slot != sl_entry_get(&idx->graph).slot)
            return slot;
    ck_abort_msg("no slot ends on level %u", level);
}

static uint32_t *upper_links(uint32_t slot, uint32_t level) {
    return idx->graph.upper.links + (idx->graph.upper.start[slot] + level - 1) * idx->graph.m;
}

static void put_float(uint32_t node, size_t offset, float value) {
    memcpy(sl_row(&idx->graph, node) + offset, &value, sizeof value);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Faults
 * ------------------------------------------------------------------------------------------------------------- */

static void self_link(void) {
    links_of(9)[0] = 9;
}
static void double_link(void) {
    links_of(9)[1] = links_of(9)[0];
}
static void wild_link(void) {
    links_of(9)[1] = N;
}
static void wilder_link(void) {
    links_of(9)[1] = SL_NONE - 1;
}
static void gap(void) {
    links_of(9)[degree(links_of(9), idx->graph.m0) - 2] = SL_NONE;
}
static void upper_self_link(void) {
    uint32_t slot = slot_on(1, SL_NONE);
    upper_links(slot, 1)[0] = slot;
}
static void upper_wild_link(void) {
    upper_links(slot_on(1, SL_NONE), 1)[0] = (uint32_t)idx->graph.upper.count;
}
/* A link on level 2 to a slot that ends on level 1. */
static void wrong_level_link(void) {
    upper_links(slot_on(2, SL_NONE), 2)[0] = slot_on(1, SL_NONE);
}
static void slots_out_of_order(void) {
    uint32_t node = idx->graph.upper.nodes[3];
    idx->graph.upper.nodes[3] = idx->graph.upper.nodes[4];
    idx->graph.upper.nodes[4] = node;
}
static void slot_of_no_node(void) {
    idx->graph.upper.nodes[idx->graph.upper.count - 1] = N;
}
static void slot_without_rows(void) {
    idx->graph.upper.start[4] = idx->graph.upper.start[3];
}
static void rows_beyond_the_end(void) {
    idx->graph.upper.start[idx->graph.upper.count] = (uint32_t)idx->graph.upper.rows + 1;
}
static void entry_too_high(void) {
    sl_entry_set(idx, sl_entry_get(&idx->graph).level + 1, sl_entry_get(&idx->graph).slot);
}
static void entry_of_no_node(void) {
    idx->graph.upper.nodes[sl_entry_get(&idx->graph).slot] = SL_NONE - 1;
}
static void factor_nan(void) {
    put_float(5, idx->graph.codec.rows.factor, NAN);
}
static void norm_infinite(void) {
    put_float(N - 1, idx->graph.codec.norm, INFINITY);
}
static void two_ids_twice(void) {
    *sl_id_at(&idx->graph, 7) = *sl_id_at(&idx->graph, 3);
    *sl_id_at(&idx->graph, N - 1) = *sl_id_at(&idx->graph, 3);
}

typedef enum counter { BAD_LINKS, BAD_UPPER, BAD_VECTORS, DUPLICATES } counter;

/* count 0: at least one. */
static const struct fault {
    void (*make)(void);
    counter counter;
    size_t count;
    const char *says;
} faults[] = {
    {self_link, BAD_LINKS, 1, "1 links"},
    {double_link, BAD_LINKS, 1, "1 links"},
    {wild_link, BAD_LINKS, 1, "1 links"},
    {wilder_link, BAD_LINKS, 1, "1 links"},
    {gap, BAD_LINKS, 1, "1 links"},
    {upper_self_link, BAD_LINKS, 0, "links"},
    {upper_wild_link, BAD_LINKS, 1, "1 links"},
    {wrong_level_link, BAD_LINKS, 1, "1 links"},
    {slots_out_of_order, BAD_UPPER, 1, "1 broken records"},
    {slot_of_no_node, BAD_UPPER, 1, "1 broken records"},
    {slot_without_rows, BAD_UPPER, 0, "broken records"},
    {rows_beyond_the_end, BAD_UPPER, 1, "1 broken records"},
    {entry_too_high, BAD_UPPER, 1, "1 broken records"},
    {entry_of_no_node, BAD_UPPER, 0, "broken records"},
    {factor_nan, BAD_VECTORS, 1, "1 vectors with a scale"},
    {norm_infinite, BAD_VECTORS, 1, "1 vectors with a scale"},
    {two_ids_twice, DUPLICATES, 2, "2 ids"},
};

START_TEST(each_fault_is_counted) {
    const struct fault *fault = &faults[_i];
    fault->make();
    indexes_publish(idx);
    for (size_t threads = 1; threads <= 4; threads += 3) {
        sl_check_params params;
        sl_check_params_init(&params);
        params.threads = threads;
        sl_check_report report = {.struct_size = sizeof report};
        sl_status status = sl_index_check(idx, &params, &report);
        size_t counts[] = {report.bad_links, report.bad_upper, report.bad_vectors, report.duplicate_ids};
        ck_assert_int_eq(status, SL_ECORRUPT);
        if (fault->count) ck_assert_uint_eq(counts[fault->counter], fault->count);
        ck_assert_uint_gt(counts[fault->counter], 0);
        /* Broken upper links are told first. */
        if (fault->counter == BAD_LINKS || report.bad_links == 0)
            ck_assert_ptr_nonnull(strstr(sl_last_error(), fault->says));
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "build the index again"));
        ck_assert_uint_eq(report.n, N);
        ck_assert_uint_eq(report.unreachable, fault->make == entry_of_no_node ? N : 0);
        ck_assert_uint_eq(report.no_in_link, 0);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What else it reports
 * ------------------------------------------------------------------------------------------------------------- */

/* Codes of two rows: each of their floats, and bytes of the codes that look like one that is none. */
START_TEST(faults_of_both_rows_are_counted) {
    enum { FLOATS = 4 };
    for (int metric = 0; metric < 3; metric++) {
        sl_index_params params;
        indexes_params(&params, DIM, (sl_metric)metric);
        params.codes = SL_CODES_I4;
        sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
        const sl_codec *codec = &index->graph.codec;
        uint8_t *row = sl_row(&index->graph, N - 1), *rest = sl_rest_row(&index->graph, N - 1);
        memset(rest, 0xff, DIM);
        memset(row, 0xff, DIM / 2);
        indexes_sound(index);
        uint8_t *floats[FLOATS] = {row + codec->rows.factor, rest + codec->rest.factor,
                                   codec->rows.bias ? row + codec->rows.bias : NULL,
                                   codec->norm ? rest + codec->norm : NULL};
        for (size_t i = 0; i < FLOATS; i++) {
            float was, bad = i % 2 ? INFINITY : NAN;
            if (!floats[i]) continue;
            memcpy(&was, floats[i], sizeof was);
            memcpy(floats[i], &bad, sizeof bad);
            sl_check_report report = {.struct_size = sizeof report};
            ck_fails(sl_index_check(index, NULL, &report), SL_ECORRUPT, "1 vectors with a scale");
            ck_assert_uint_eq(report.bad_vectors, 1);
            memcpy(floats[i], &was, sizeof was);
        }
        sl_index_free(index);
    }
}
END_TEST

START_TEST(degrees_are_those_of_the_lists) {
    size_t sum = 0, smallest = SIZE_MAX, largest = 0;
    for (uint32_t node = 0; node < N; node++) {
        size_t d = degree(links_of(node), idx->graph.m0);
        sum += d;
        smallest = d < smallest ? d : smallest;
        largest = d > largest ? d : largest;
    }
    sl_check_report report = indexes_sound(idx);
    ck_assert_uint_eq(report.min_degree, smallest);
    ck_assert_uint_eq(report.max_degree, largest);
    ck_assert(fabs(report.mean_degree - (double)sum / N) < 1e-9);
    ck_assert_uint_gt(smallest, 0);
    ck_assert_uint_le(largest, 2 * M);
    ck_assert_uint_eq(report.sections_checked, 0);
}
END_TEST

static size_t lost; /* of the last sample */

static double recall_with(size_t sample, size_t k, size_t ef) {
    sl_check_params params;
    sl_check_params_init(&params);
    params.sample = sample;
    params.k = k;
    params.ef = ef;
    sl_check_report report = {.struct_size = sizeof report};
    ck_ok(sl_index_check(idx, &params, &report));
    lost = report.sampled_lost;
    return report.sampled_recall;
}

/* A ring is sound, and useless. */
START_TEST(sampled_recall_tells_a_bad_graph) {
    double good = recall_with(200, 10, 200), narrow = recall_with(200, 10, 10);
    ck_assert_msg(good >= 0.98 && good <= 1, "recall is %g", good);
    recall_with(200, 10, 200);
    ck_assert_uint_eq(lost, 0);
    ck_assert_msg(narrow > 0.5 && narrow < good, "recall is %g, then %g", narrow, good);
    ck_assert(recall_with(20, 2 * N, 1) <= 1);
    ck_assert(isnan(recall_with(0, 10, 10)));
    memset(links_of(0), 0xff, N * idx->graph.m0 * sizeof(uint32_t));
    for (uint32_t node = 0; node < N; node++)
        links_of(node)[0] = (node + 1) % N;
    double bad = recall_with(200, 10, 10);
    ck_assert_msg(bad < 0.3, "recall is %g", bad);
    ck_assert_uint_gt(lost, 100);
}
END_TEST

/* Leaves of a list the links that go on to no node of a region. Returns whether there were others. */
static int leave_region_out(uint32_t *links, const uint8_t *inside) {
    size_t count = degree(links, idx->graph.m0), kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!inside[links[i]]) links[kept++] = links[i];
    memset(links + kept, 0xff, (count - kept) * sizeof *links);
    return kept < count;
}

/* All links into a region are cut but one, and a chain leads on from there. All nodes are reached, and recall is high
 * still: the count of vectors lost tells of the region. */
START_TEST(a_region_behind_one_door_is_told) {
    enum { INSIDE = N / 10 };
    static uint64_t region[INSIDE];
    uint8_t inside[N] = {0};
    int door = 0;
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){x, SL_F32, 1}, INSIDE, region);
    for (size_t i = 0; i < INSIDE; i++)
        inside[region[i]] = 1;
    ck_assert(!inside[sl_entry_get(&idx->graph).node]);
    recall_with(500, 10, 10);
    ck_assert_uint_le(lost, 2);
    for (uint32_t node = 0; node < N; node++) {
        uint32_t *links = links_of(node);
        int others = leave_region_out(links, inside);
        if (others && !inside[node] && !door) links[degree(links, idx->graph.m0)] = (uint32_t)region[door++];
    }
    for (size_t i = 0; i + 1 < INSIDE; i++)
        links_of((uint32_t)region[i])[degree(links_of((uint32_t)region[i]), idx->graph.m0 - 1)] =
            (uint32_t)region[i + 1];
    ck_assert_double_ge(recall_with(500, 10, 10), 0.85);
    ck_assert_uint_ge(lost, 25);
}
END_TEST

START_TEST(impossible_samples_are_refused) {
    sl_check_report report = {.struct_size = sizeof report};
    size_t values[][2] = {{0, 10}, {10, 0}, {SL_MAX_EF, 10}, {10, SL_MAX_EF}, {SIZE_MAX, SIZE_MAX}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        sl_check_params params;
        sl_check_params_init(&params);
        params.k = values[i][0];
        params.ef = values[i][1];
        ck_fails(sl_index_check(idx, &params, &report), SL_EINVAL, "k is");
    }
}
END_TEST

/* A mapped index's file is verified too: a changed byte that breaks no rule of the graph is found. */
START_TEST(files_are_verified) {
    scratch place;
    scratch_open(&place);
    ck_ok(sl_index_save(idx, place.path, NULL));
    sl_index *mapped;
    ck_ok(sl_index_open(place.path, NULL, &mapped));
    sl_check_report report = indexes_sound(mapped);
    ck_assert_uint_eq(report.sections_checked, 6);
    sl_index_free(mapped);

    file_patch(place.path, SL_HEADER_SIZE, "\x55", 1);
    ck_ok(sl_index_open(place.path, NULL, &mapped));
    report.struct_size = sizeof report;
    ck_fails(sl_index_check(mapped, NULL, &report), SL_ECORRUPT, place.path);
    ck_assert_uint_eq(report.sections_checked, 0);
    sl_index_free(mapped);
    scratch_close(&place);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("check");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, each_fault_is_counted, 0, sizeof faults / sizeof *faults);
    tcase_add_test(tests, faults_of_both_rows_are_counted);
    tcase_add_test(tests, degrees_are_those_of_the_lists);
    tcase_add_test(tests, sampled_recall_tells_a_bad_graph);
    tcase_add_test(tests, a_region_behind_one_door_is_told);
    tcase_add_test(tests, impossible_samples_are_refused);
    tcase_add_test(tests, files_are_verified);
    return check_main("check", &tests, 1);
}
