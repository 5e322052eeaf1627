/* NUMA policies on the machine as it is: what was asked for, read back as the system tells it. On a machine of one node
 * all pages lie on that one, by whatever policy; tests/hnsw/place/test_numa.c plays a machine of four. */
#include "base/numa.h"
#include "base/numa_system.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 20000, DIM = 32, K = 10, QUERIES = 50 };

static float *base;

static void setup(void) {
    base = clusters_make(N + QUERIES, DIM, 0.3, 7);
}

static void teardown(void) {
    free(base);
}

static sl_index_params params_of(sl_numa_policy policy) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.m = 4;
    params.ef_construction = 8;
    params.refine = SL_REFINE_F32;
    params.numa = policy;
    return params;
}

#ifdef SL_HAVE_NUMA

/* The first node that memory can be had from. */
static size_t some_node(void) {
    sl_numa_node node = {.struct_size = sizeof node};
    size_t number = 0;
    while (number < SL_MAX_NODES && (sl_numa_get_node(number, &node) != SL_OK || !node.memory))
        number++;
    return number;
}

static uint64_t sum_of(const sl_index_numa *numa) {
    uint64_t sum = 0;
    for (size_t node = 0; node < SL_MAX_NODES; node++) {
        sum += numa->bytes[node];
        ck_assert(node < numa->nodes || numa->bytes[node] == 0);
    }
    return sum;
}

/* All of layer 0 is in memory, where the policy says. */
static void lies(const sl_index *index, sl_numa_policy policy, size_t node) {
    sl_index_numa numa = {.struct_size = sizeof numa};
    sl_index_stats stats = indexes_stats(index);
    ck_ok(sl_index_get_numa(index, &numa));
    ck_assert_int_eq(numa.policy, policy);
    ck_assert_uint_ge(sum_of(&numa), stats.bytes_codes + stats.bytes_links + stats.bytes_refine);
    ck_assert_uint_eq(numa.bytes_absent, 0);
    if (policy == SL_NUMA_BIND) ck_assert_uint_eq(numa.bytes[node], sum_of(&numa));
}

static void searches(sl_index *index) {
    uint64_t ids[QUERIES * K];
    sl_search_params params;
    sl_search_params_init(&params);
    params.threads = 2;
    ck_ok(sl_index_search(index, base + (size_t)N * DIM, SL_F32, QUERIES, 0, K, &params, ids, NULL, NULL));
    indexes_sound(index);
}

START_TEST(each_policy) {
    sl_numa_policy policy = (sl_numa_policy)_i;
    scratch s;
    scratch_open(&s);
    sl_index_params params = params_of(policy);
    params.numa_node = some_node();
    sl_index *index = indexes_make(&params, base, SL_F32, N, NULL, 2);
    lies(index, policy, params.numa_node);
    searches(index);
    ck_ok(sl_index_save(index, s.path, NULL));
    sl_index_free(index);
    for (int place = SL_PLACE_DRAM; place <= SL_PLACE_MAP; place++) {
        sl_open_params open;
        sl_open_params_init(&open);
        open.place = (sl_place)place;
        open.numa = policy;
        open.numa_node = params.numa_node;
        ck_ok(sl_index_open(s.path, &open, &index));
        lies(index, policy, params.numa_node);
        searches(index);
        sl_index_free(index);
    }
    scratch_close(&s);
}
END_TEST

/* Without a policy pages are where they come to lie, those of a mapped file only once they are read. */
START_TEST(an_index_without_a_policy) {
    scratch s;
    sl_index_numa numa = {.struct_size = sizeof numa};
    scratch_open(&s);
    sl_index_params params = params_of(SL_NUMA_DEFAULT);
    sl_index *index = indexes_make(&params, base, SL_F32, N, NULL, 2);
    lies(index, SL_NUMA_DEFAULT, 0);
    ck_ok(sl_index_save(index, s.path, NULL));
    sl_index_free(index);
    ck_ok(sl_index_open(s.path, NULL, &index));
    ck_ok(sl_index_get_numa(index, &numa));
    ck_assert_uint_gt(numa.bytes_absent, 0);
    ck_assert_uint_eq(numa.copies, 0);
    sl_index_free(index);
    scratch_close(&s);
}
END_TEST

START_TEST(nodes_are_told) {
    sl_system system = {.struct_size = sizeof system};
    sl_numa_node node = {.struct_size = sizeof node};
    ck_ok(sl_system_query(&system));
    ck_assert(system.has_numa);
    size_t nodes = 0, cpus = 0;
    for (size_t i = 0; i < SL_MAX_NODES; i++) {
        sl_status status = sl_numa_get_node(i, &node);
        ck_assert(status == SL_OK || status == SL_ENOTFOUND);
        nodes += status == SL_OK;
        if (status == SL_OK) cpus += node.cpu_count;
    }
    ck_assert_uint_eq(nodes, system.numa_nodes);
    ck_assert_uint_ge(cpus, system.cpus);
    ck_fails(sl_numa_get_node(SL_MAX_NODES, &node), SL_ENOTFOUND, "no memory node 128");
    ck_fails(sl_numa_get_node(0, NULL), SL_EINVAL, "sl_numa_node");
}
END_TEST

START_TEST(a_node_that_is_not_there) {
    sl_index_params params = params_of(SL_NUMA_BIND);
    sl_index *index;
    params.numa_node = 1000;
    ck_fails(sl_index_create(&params, &index), SL_EINVAL, "bind:1000: this machine");
}
END_TEST

/* Tells whether the system, or a container, forbids what is to be tested. */
static int forbidden(void) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_numa_ops ops = sl_numa_ops_of(NULL);
    sl_numa *numa;
    uint64_t bytes[SL_MAX_NODES] = {0}, absent = 0;
    sl_status status = sl_numa_open(SL_NUMA_LOCAL, 0, NULL, &allocator, &numa);
    sl_numa_close(numa);
    if (status == SL_OK) status = sl_numa_count(&ops, &absent, sizeof absent, bytes, &absent);
    return status == SL_EUNSUPPORTED;
}

/* A forbidden policy is refused with the remedy. An index without a policy works. */
START_TEST(what_is_forbidden_is_refused) {
    sl_index_numa numa = {.struct_size = sizeof numa};
    sl_index *index;
    sl_index_params params = params_of(SL_NUMA_LOCAL);
    sl_status status = sl_index_create(&params, &index);
    if (status == SL_OK) {
        sl_index_free(index);
        params.numa = SL_NUMA_DEFAULT;
        index = indexes_make(&params, base, SL_F32, N, NULL, 1);
        status = sl_index_get_numa(index, &numa);
        searches(index);
        sl_index_free(index);
    }
    ck_assert_int_eq(status, SL_EUNSUPPORTED);
}
END_TEST

static void add_tests(TCase *tests) {
    if (forbidden()) {
        tcase_add_test(tests, what_is_forbidden_is_refused);
        return;
    }
    tcase_add_loop_test(tests, each_policy, SL_NUMA_INTERLEAVE, SL_NUMA_LOCAL + 1);
    tcase_add_test(tests, an_index_without_a_policy);
    tcase_add_test(tests, nodes_are_told);
    tcase_add_test(tests, a_node_that_is_not_there);
}

#else

START_TEST(a_build_without_libnuma_says_so) {
    sl_index_params params = params_of((sl_numa_policy)_i);
    sl_numa_node node = {.struct_size = sizeof node};
    sl_index_numa numa = {.struct_size = sizeof numa};
    sl_system system = {.struct_size = sizeof system};
    sl_index *index;
    ck_fails(sl_index_create(&params, &index), SL_EUNSUPPORTED, "this build has no libnuma");
    ck_fails(sl_numa_get_node(0, &node), SL_EUNSUPPORTED, "libnuma");
    params.numa = SL_NUMA_DEFAULT;
    index = indexes_make(&params, base, SL_F32, 100, NULL, 1);
    ck_fails(sl_index_get_numa(index, &numa), SL_EUNSUPPORTED, "libnuma");
    sl_index_free(index);
    ck_ok(sl_system_query(&system));
    ck_assert(!system.has_numa);
}
END_TEST

static void add_tests(TCase *tests) {
    tcase_add_loop_test(tests, a_build_without_libnuma_says_so, SL_NUMA_INTERLEAVE, SL_NUMA_LOCAL + 1);
}

#endif

int main(void) {
    TCase *tests = tcase_create("numa_system");
    tcase_add_checked_fixture(tests, setup, teardown);
    add_tests(tests);
    return check_main("numa_system", &tests, 1);
}
