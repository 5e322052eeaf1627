/* Rules that an index opened to be written is held to. A fault is found wherever it lies, by any number of threads, and
 * the first one is named. */
#include "hnsw/index/open_check.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 9000, DIM = 4 };

static sl_index *index_;
static float *vectors;

static void set_up(void) {
    sl_index_params params;
    vectors = clusters_make(N, DIM, 0.3, 3);
    indexes_params(&params, DIM, SL_METRIC_L2);
    index_ = indexes_make(&params, vectors, SL_F32, N, NULL, 2);
}

static void tear_down(void) {
    sl_index_free(index_);
    free(vectors);
}

static void expect(const char *text) {
    for (size_t threads = 1; threads <= 4; threads++) {
        if (text)
            ck_fails(sl_open_check(&index_->graph, threads), SL_ECORRUPT, text);
        else
            ck_ok(sl_open_check(&index_->graph, threads));
    }
}

/* The end of a list is no fault, the first number that no vector has is one. */
START_TEST(links_lead_to_vectors) {
    const size_t nodes[] = {0, 1023, 4095, 4096, N - 1};
    char text[64];
    expect(NULL);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        uint32_t *link = sl_links(&index_->graph, nodes[i]) + i % index_->graph.m0, before = *link;
        *link = SL_NONE;
        expect(NULL);
        *link = N - 1;
        expect(NULL);
        const uint32_t strays[] = {N, SL_NONE - 1, 1u << 31};
        for (size_t stray = 0; stray < sizeof strays / sizeof *strays; stray++) {
            *link = strays[stray];
            snprintf(text, sizeof text, "vector %zu has a link to %u,", nodes[i], strays[stray]);
            expect(text);
        }
        *link = before;
    }
}
END_TEST

START_TEST(the_first_fault_is_named) {
    sl_links(&index_->graph, 8500)[0] = N;
    expect("vector 8500 ");
    sl_links(&index_->graph, 5000)[1] = N + 1;
    expect("vector 5000 has a link to 9001,");
    /* An id alone, of a vector whose links are sound. */
    char text[64];
    size_t first = 0;
    while (sl_id_of(&index_->graph, (uint32_t)first) < N - 5)
        first++;
    index_->graph.next_id = N - 5;
    indexes_publish(index_);
    sl_links(&index_->graph, 5000)[1] = SL_NONE;
    sl_links(&index_->graph, 8500)[0] = SL_NONE;
    snprintf(text, sizeof text, "vector %zu has an id beyond the largest", first);
    expect(text);
}
END_TEST

START_TEST(upper_layers_fit_together) {
    sl_upper *upper = &index_->graph.upper;
    ck_assert_uint_gt(upper->count, 2);
    uint32_t link = upper->links[upper->rows * index_->graph.m - 1], node = upper->nodes[1];
    upper->links[upper->rows * index_->graph.m - 1] = (uint32_t)upper->count;
    expect("of the upper layers has a link out of range");
    upper->links[upper->rows * index_->graph.m - 1] = link;
    upper->nodes[1] = upper->nodes[0];
    expect("record 1 of the upper layers is broken");
    upper->nodes[1] = node;
    expect(NULL);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("rules");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, links_lead_to_vectors);
    tcase_add_test(tests, the_first_fault_is_named);
    tcase_add_test(tests, upper_layers_fit_together);
    return check_main("rules", &tests, 1);
}
