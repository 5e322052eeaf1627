/* NUMA policies on a machine of four memory nodes, which a table of operations plays. The tests check which calls each
 * part of an index makes, which copies searches read, and which threads run where. The test
 * tests/hnsw/place/test_numa_system.c asks a real machine. */
#define _GNU_SOURCE
#include "hnsw/graph/arrays.h"
#include "hnsw/place/dram_copy.h"
#include "hnsw/place/numa_place.h"
#include "hnsw/place/replicas.h"
#include "hnsw/search/searcher.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"
#include "tests/support/topology.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3000, LARGE = 6000, DIM = 24, LONG_DIM = 200, K = 10, EF = 60, QUERIES = 200, NODES = 4 };

static topology machine;
static fault_allocator faults;
static float *base, *queries;

/* Blocks are handed out full of what the machine takes for untouched. */
static void *dirty_alloc(void *ctx, size_t size, size_t alignment) {
    void *block = faults.allocator.alloc(ctx, size, alignment);
    if (block) memset(block, machine.left, size);
    return block;
}

static sl_allocator dirty_allocator(void) {
    return (sl_allocator){&faults, dirty_alloc, faults.allocator.free};
}

static void setup(void) {
    topology_init(&machine, NODES);
    fault_allocator_init(&faults, 0);
    base = clusters_make(LARGE + QUERIES, DIM, 0.3, 7);
    queries = base + (size_t)LARGE * DIM;
}

static void teardown(void) {
    free(base);
}

static sl_index_params params_of(sl_numa_policy policy, size_t node) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.numa = policy;
    params.numa_node = node;
    params.numa_ops = &machine.ops;
    return params;
}

static sl_index *make(sl_numa_policy policy, size_t node, size_t n) {
    sl_index_params params = params_of(policy, node);
    sl_allocator allocator = dirty_allocator();
    params.allocator = &allocator;
    return indexes_make(&params, base, SL_F32, n, NULL, 1);
}

static sl_index *reopen(const char *path, sl_place place, sl_numa_policy policy, size_t node) {
    sl_open_params params;
    sl_index *index;
    sl_open_params_init(&params);
    params.place = place;
    params.numa = policy;
    params.numa_node = node;
    params.numa_ops = &machine.ops;
    ck_ok(sl_index_open(path, &params, &index));
    return index;
}

static sl_index_numa pages_of(const sl_index *index) {
    sl_index_numa numa = {.struct_size = sizeof numa};
    ck_ok(sl_index_get_numa(index, &numa));
    return numa;
}

static void search_on(const sl_index *index, size_t threads, size_t nq) {
    uint64_t *ids = malloc(nq * K * sizeof *ids);
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = EF;
    params.threads = threads;
    ck_ok(sl_index_search(index, queries, SL_F32, nq, 0, K, &params, ids, NULL, NULL));
    free(ids);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Words and refusals
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(policies_are_words) {
    static const struct {
        const char *text;
        sl_numa_policy policy;
        size_t node;
    } words[] = {{"default", SL_NUMA_DEFAULT, 0},
                 {"interleave", SL_NUMA_INTERLEAVE, 0},
                 {"local", SL_NUMA_LOCAL, 0},
                 {"bind:0", SL_NUMA_BIND, 0},
                 {"bind:31", SL_NUMA_BIND, 31}};
    static const char *const wrong[] = {"",        "bind",    "bind:", "bind:x",       "bind:-1",
                                        "bind:1,", "bind: 1", "Local", "interleave:1", "bind:99999999999999999999999"};
    sl_numa_policy policy;
    size_t node;
    char text[32];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        ck_ok(sl_numa_parse(words[i].text, &policy, &node));
        ck_assert_int_eq(policy, words[i].policy);
        ck_assert_uint_eq(node, words[i].node);
        ck_assert_str_eq(sl_numa_format(policy, node, text, sizeof text), words[i].text);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_fails(sl_numa_parse(wrong[i], &policy, &node), SL_EINVAL, "give interleave, bind:N");
    ck_assert_str_eq(sl_numa_policy_name((sl_numa_policy)9), "?");
}
END_TEST

static void refuses(sl_numa_policy policy, size_t node, sl_status status, const char *text) {
    sl_index_params params = params_of(policy, node);
    sl_index *index = (sl_index *)&params;
    sl_allocator allocator = dirty_allocator();
    params.allocator = &allocator;
    ck_fails(sl_index_create(&params, &index), status, text);
    ck_assert_ptr_null(index);
    ck_assert_uint_eq(faults.live_blocks, 0);
}

START_TEST(what_the_machine_has_not_is_refused) {
    refuses(SL_NUMA_BIND, 7, SL_EINVAL, "bind:7: this machine's memory nodes are numbered 0 to 3;");
    machine.bare = 2;
    refuses(SL_NUMA_BIND, 2, SL_EINVAL, "that one has no memory");
    refuses((sl_numa_policy)9, 0, SL_EINVAL, "NUMA policy 9 is unknown");
    machine.nodes = 1;
    refuses(SL_NUMA_BIND, 7, SL_EINVAL, "bind:7: this machine has one memory node, 0");
    machine.nodes = SL_MAX_NODES + 1;
    refuses(SL_NUMA_LOCAL, 0, SL_ELIMIT, "node numbers go up to 128");
    machine.nodes = 0;
    refuses(SL_NUMA_LOCAL, 0, SL_EUNSUPPORTED, "NUMA policy");
}
END_TEST

/* As a container does. */
START_TEST(what_the_system_forbids_is_said) {
    machine.policy_error = EPERM;
    refuses(SL_NUMA_BIND, 1, SL_EUNSUPPORTED,
            "NUMA policy bind:1: Operation not permitted; the system or its container");
    machine.policy_error = ENOSYS;
    refuses(SL_NUMA_INTERLEAVE, 0, SL_EUNSUPPORTED, "allow mbind and move_pages");
    machine.policy_error = ENOMEM;
    refuses(SL_NUMA_INTERLEAVE, 0, SL_ENOMEM, "free memory");
    machine.policy_error = 0;
    sl_index *index = make(SL_NUMA_INTERLEAVE, 0, 100);
    machine.move_error = EPERM;
    sl_index_numa numa = {.struct_size = sizeof numa};
    ck_fails(sl_index_get_numa(index, &numa), SL_EUNSUPPORTED, "cannot learn where");
    /* Later on memory that no policy can be had for is memory that is not to be had. */
    machine.policy_error = EPERM;
    ck_fails(sl_index_reserve(index, LARGE), SL_ENOMEM, "cannot allocate");
    machine.policy_error = 0;
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

START_TEST(a_wrong_node_does_not_make_a_file_a_damaged_one) {
    scratch s;
    scratch_open(&s);
    sl_index *index = make(SL_NUMA_DEFAULT, 0, 100);
    ck_ok(sl_index_save(index, s.path, NULL));
    sl_index_free(index);
    sl_open_params params;
    sl_open_params_init(&params);
    params.numa = SL_NUMA_BIND;
    params.numa_node = NODES;
    params.numa_ops = &machine.ops;
    for (int place = SL_PLACE_DRAM; place <= SL_PLACE_MAP; place++) {
        params.place = (sl_place)place;
        ck_fails(sl_index_open(s.path, &params, &index), SL_EINVAL, "bind:4");
    }
    scratch_close(&s);
}
END_TEST

START_TEST(nothing_is_asked_without_a_policy) {
    scratch s;
    scratch_open(&s);
    sl_index *index = make(SL_NUMA_DEFAULT, 0, N);
    search_on(index, 3, QUERIES);
    ck_ok(sl_index_save(index, s.path, NULL));
    sl_index_free(index);
    for (int place = SL_PLACE_DRAM; place <= SL_PLACE_MAP; place++) {
        index = reopen(s.path, (sl_place)place, SL_NUMA_DEFAULT, 0);
        search_on(index, 3, QUERIES);
        ck_assert_ptr_null(index->graph.replicas);
        sl_index_free(index);
    }
    ck_assert_uint_eq(machine.calls, 0);
    scratch_close(&s);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

/* The whole array is in one range of the policy. The range had the policy before anybody wrote to the array. */
static void lies(const void *array, size_t size, sl_numa_policy policy, size_t node) {
    ck_assert_ptr_nonnull(array);
    const topology_range *range = topology_find(&machine, array);
    ck_assert_ptr_nonnull(range);
    ck_assert_int_eq(range->policy, policy);
    ck_assert_uint_eq(range->node, node);
    ck_assert_uint_le((uintptr_t)array + size, range->at + range->size);
    ck_assert(!range->touched);
}

static void layer0_lies(const sl_index *index, sl_numa_policy policy, size_t node) {
    size_t n = index->graph.capacity;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const sl_array *array = &index->graph.arrays[kind];
        if (array->at && (sl_array_lines[kind].flags & SL_ARRAY_PLACED))
            lies(array->at, n * array->width, policy, node);
    }
    const void *const others[] = {index, index->graph.upper.nodes, index->graph.upper.start, index->graph.upper.links,
                                  index->graph.arrays[SL_ARRAY_PROJECTION].at};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_ptr_null(topology_find(&machine, others[i]));
}

/* Codes of a kind, and the bytes that they take for 1,000 vectors of this dimension. */
static const struct kind {
    sl_codes codes;
    sl_refine refine;
    size_t dim;
} kinds[] = {
    {SL_CODES_I8, SL_REFINE_F32, DIM}, {SL_CODES_I4, SL_REFINE_NONE, DIM}, {SL_CODES_I4, SL_REFINE_I16, LONG_DIM}};

static const struct asked {
    sl_numa_policy policy;
    size_t node, found; /* found: on which node a range is then said to be */
} asked[] = {{SL_NUMA_INTERLEAVE, 0, 0}, {SL_NUMA_BIND, 2, 2}, {SL_NUMA_LOCAL, 0, 1}};

enum { KINDS = sizeof kinds / sizeof *kinds, ASKED = sizeof asked / sizeof *asked };

START_TEST(layer0_has_its_policy_before_it_is_touched) {
    const struct kind *kind = &kinds[_i % KINDS];
    const struct asked *policy = &asked[_i / KINDS];
    float *vectors = clusters_make(1000, kind->dim, 0.3, 3);
    uint64_t ids[1000];
    for (size_t i = 0; i < 1000; i++)
        ids[i] = 10 * i + 3;
    topology_stand_on(&machine, 1, 1);
    sl_allocator allocator = dirty_allocator();
    sl_index_params params = params_of(policy->policy, policy->node);
    params.dim = kind->dim;
    params.codes = kind->codes;
    params.refine = kind->refine;
    params.allocator = &allocator;
    sl_index *index = indexes_make(&params, vectors, SL_F32, 400, ids, 1);
    layer0_lies(index, policy->policy, policy->found);
    /* Growing moves all of it. */
    size_t before = machine.policies;
    ck_ok(indexes_add(index, vectors + 400 * kind->dim, SL_F32, 600, ids + 400));
    ck_assert_uint_ge(machine.policies, before + 3);
    layer0_lies(index, policy->policy, policy->found);
    indexes_sound(index);

    scratch s;
    scratch_open(&s);
    ck_ok(sl_index_save(index, s.path, NULL));
    sl_index_free(index);
    sl_open_params open;
    sl_open_params_init(&open);
    open.place = SL_PLACE_DRAM;
    open.allocator = &allocator;
    open.numa = policy->policy;
    open.numa_node = policy->node;
    open.numa_ops = &machine.ops;
    ck_ok(sl_index_open(s.path, &open, &index));
    layer0_lies(index, policy->policy, policy->found);
    sl_index_free(index);
    scratch_close(&s);
    /* Memory goes back without a policy. */
    ck_assert_uint_eq(machine.range_count, 0);
    ck_assert_uint_eq(faults.live_blocks, 0);
    free(vectors);
}
END_TEST

/* Also where the vectors have been numbered anew, which makes the ids an array. */
START_TEST(ids_of_an_index_in_a_new_order) {
    sl_index *index = make(SL_NUMA_BIND, 3, LARGE);
    ck_assert_uint_eq(index->graph.arrays[SL_ARRAY_IDS].width, 8);
    layer0_lies(index, SL_NUMA_BIND, 3);
    sl_index_free(index);
    ck_assert_uint_eq(machine.range_count, 0);
}
END_TEST

static uint64_t all_bytes(const sl_index_numa *numa) {
    uint64_t sum = numa->bytes_absent;
    for (size_t node = 0; node < SL_MAX_NODES; node++)
        sum += numa->bytes[node];
    return sum;
}

START_TEST(pages_are_read_back) {
    sl_index *index = make(SL_NUMA_BIND, 2, N);
    sl_index_numa numa = pages_of(index);
    ck_assert_int_eq(numa.policy, SL_NUMA_BIND);
    ck_assert_uint_eq(numa.node, 2);
    ck_assert_uint_eq(numa.nodes, NODES);
    ck_assert_uint_eq(numa.bytes[2], all_bytes(&numa));
    ck_assert_uint_ge(numa.bytes[2], N * (index->graph.codec.rows.pitch + index->graph.m0 * sizeof(uint32_t)));
    sl_index_free(index);
    index = make(SL_NUMA_INTERLEAVE, 0, N);
    numa = pages_of(index);
    for (size_t node = 0; node < NODES; node++)
        ck_assert_uint_gt(5 * numa.bytes[node], all_bytes(&numa));
    sl_index_free(index);
    ck_fails(sl_index_get_numa(NULL, &numa), SL_EINVAL, "index is NULL");
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Mapped files
 * ------------------------------------------------------------------------------------------------------------- */

static char logged[512];

static void keep_log(void *ctx, sl_log_level level, const char *message) {
    (void)ctx;
    (void)level;
    strcat(strcat(logged, message), "\n");
}

/* A file whose layer 0 takes several of the 2 MB that INTERLEAVE deals out. */
static size_t save_large(const char *path) {
    enum { WIDE = 1024 };
    sl_index_params params = params_of(SL_NUMA_DEFAULT, 0);
    params.dim = WIDE;
    params.codes = SL_CODES_F32;
    params.m = 2;
    params.ef_construction = 4;
    float *vectors = clusters_make(2500, WIDE, 0.3, 3);
    sl_index *index = indexes_make(&params, vectors, SL_F32, 2500, NULL, 1);
    ck_ok(sl_index_save(index, path, NULL));
    sl_index_free(index);
    free(vectors);
    return 2500 * WIDE * sizeof(float);
}

START_TEST(pages_of_a_mapped_file_are_moved) {
    scratch s;
    scratch_open(&s);
    size_t size = save_large(s.path);
    sl_index *index = reopen(s.path, SL_PLACE_MAP, SL_NUMA_BIND, 2);
    sl_index_numa numa = pages_of(index);
    ck_assert_uint_eq(numa.bytes[2], all_bytes(&numa));
    ck_assert_uint_ge(numa.bytes[2], size);
    ck_assert_uint_eq(machine.policies, 1); /* that it was tried once */
    sl_index_free(index);

    topology_init(&machine, NODES);
    index = reopen(s.path, SL_PLACE_MAP, SL_NUMA_INTERLEAVE, 0);
    numa = pages_of(index);
    for (size_t node = 0; node < NODES; node++)
        ck_assert_uint_ge(numa.bytes[node], size / 8);
    for (size_t i = 0; i < machine.moved_count; i++)
        ck_assert_int_eq(machine.moved[i].node,
                         (int)((machine.moved[i].at - (uintptr_t)index->store->base) / SL_HUGE_PAGE % NODES));
    sl_index_free(index);

    topology_init(&machine, NODES);
    topology_stand_on(&machine, 3, 1);
    index = reopen(s.path, SL_PLACE_MAP, SL_NUMA_LOCAL, 0);
    numa = pages_of(index);
    ck_assert_uint_eq(numa.bytes[3], all_bytes(&numa));
    sl_index_free(index);
    scratch_close(&s);
}
END_TEST

START_TEST(pages_that_others_hold_stay) {
    scratch s;
    sl_index *index;
    scratch_open(&s);
    size_t size = save_large(s.path);
    sl_open_params params;
    sl_open_params_init(&params);
    params.numa = SL_NUMA_BIND;
    params.numa_node = 1;
    params.numa_ops = &machine.ops;
    params.log = keep_log;
    machine.stuck = 5;
    ck_ok(sl_index_open(s.path, &params, &index));
    ck_assert_ptr_nonnull(strstr(logged, "bytes of the mapped file stay on other memory nodes"));
    sl_index_numa numa = pages_of(index);
    ck_assert_uint_ge(numa.bytes[0] * 5 + 5 * sl_page_size(), all_bytes(&numa));
    ck_assert_uint_eq(numa.bytes[0] + numa.bytes[1], all_bytes(&numa));
    ck_assert_uint_ge(all_bytes(&numa), size);
    sl_index_free(index);
    machine.move_error = ENOSYS;
    ck_fails(sl_index_open(s.path, &params, &index), SL_EUNSUPPORTED, "Function not implemented");
    scratch_close(&s);
}
END_TEST

static int cancel(void *ctx, uint64_t done, uint64_t total) {
    (void)total;
    *(uint64_t *)ctx = done;
    return 1;
}

START_TEST(reading_ahead_can_be_cancelled) {
    scratch s;
    sl_index *index;
    uint64_t done = 0;
    scratch_open(&s);
    (void)save_large(s.path);
    sl_open_params params;
    sl_open_params_init(&params);
    params.numa = SL_NUMA_LOCAL;
    params.numa_ops = &machine.ops;
    params.progress = cancel;
    params.progress_ctx = &done;
    ck_fails(sl_index_open(s.path, &params, &index), SL_ECANCELED, "cancelled");
    ck_assert_uint_gt(done, 0);
    scratch_close(&s);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Copies of the upper layers
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct outcome {
    uint64_t ids[K * QUERIES];
    size_t evaluations;
} outcome;

static outcome ask(sl_searcher *searcher) {
    outcome outcome = {.evaluations = 0};
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = EF;
    for (size_t i = 0; i < QUERIES; i++) {
        sl_search_stats stats;
        ck_ok(sl_searcher_search(searcher, queries + i * DIM, SL_F32, K, &params, outcome.ids + i * K, NULL, &stats));
        outcome.evaluations += stats.evaluations;
    }
    return outcome;
}

static void same(const outcome *a, const outcome *b) {
    ck_assert_uint_eq(a->evaluations, b->evaluations);
    ck_assert_mem_eq(a->ids, b->ids, sizeof a->ids);
}

/* Leads every walk down to the first slot's node. */
static void spoil(const sl_upper *upper, size_t m) {
    memset(upper->links, 0xff, upper->rows * m * sizeof(uint32_t));
}

START_TEST(each_node_has_a_copy_and_reads_it) {
    sl_searcher *searcher;
    sl_index *index = make(SL_NUMA_INTERLEAVE, 0, N);
    ck_assert_uint_eq(pages_of(index).copies, 0);
    ck_ok(sl_searcher_create(index, EF, &searcher));
    ck_assert_uint_eq(pages_of(index).copies, NODES);
    const sl_upper *copies[NODES];
    for (size_t node = 0; node < NODES; node++) {
        topology_stand_on(&machine, node, 1);
        copies[node] = sl_upper_here(&index->graph);
        lies(copies[node]->nodes, index->graph.upper.count * sizeof(uint32_t), SL_NUMA_BIND, node);
        lies(copies[node]->start, (index->graph.upper.count + 1) * sizeof(uint32_t), SL_NUMA_BIND, node);
        lies(copies[node]->links, index->graph.upper.rows * index->graph.m * sizeof(uint32_t), SL_NUMA_BIND, node);
    }
    outcome sound = ask(searcher);
    /* With the index's own and the other nodes' copies spoiled, a search on a node finds what it found. */
    spoil(&index->graph.upper, index->graph.m);
    for (size_t node = 0; node < NODES; node++)
        if (node != 2) spoil(copies[node], index->graph.m);
    topology_stand_on(&machine, 2, 1);
    outcome again = ask(searcher);
    same(&again, &sound);
    /* The thread moves on, and so do its searches. */
    topology_stand_on(&machine, 1, 1);
    outcome spoiled = ask(searcher);
    ck_assert_uint_ne(spoiled.evaluations, sound.evaluations);
    sl_searcher_free(searcher);
    sl_index_free(index);
    ck_assert_uint_eq(machine.range_count, 0);
}
END_TEST

/* The copies are gone. Searches read the index's own upper layers until a batch makes the copies anew. */
static void copies_are_outdated(sl_index *index, sl_searcher *searcher) {
    ck_assert_uint_eq(pages_of(index).copies, 0);
    ck_assert_ptr_eq(sl_upper_here(&index->graph), &index->graph.upper);
    outcome own = ask(searcher);
    search_on(index, 1, 3);
    ck_assert_uint_eq(pages_of(index).copies, NODES);
    ck_assert_ptr_ne(sl_upper_here(&index->graph), &index->graph.upper);
    ck_assert_uint_eq(sl_upper_here(&index->graph)->count, index->graph.upper.count);
    outcome copied = ask(searcher);
    same(&copied, &own);
}

/* Also when nothing but their numbers changes, as a save does. */
START_TEST(what_changes_the_upper_layers_makes_copies_outdated) {
    enum { FIRST = 4200, MORE = 1000 };
    scratch s;
    sl_searcher *searcher;
    sl_index *index = make(SL_NUMA_LOCAL, 0, FIRST);
    ck_ok(sl_searcher_create(index, EF, &searcher));
    search_on(index, 1, 3); /* which leaves a searcher for the next batch */
    ck_ok(indexes_add(index, base + (size_t)FIRST * DIM, SL_F32, MORE, NULL));
    ck_assert_uint_eq(index->ordered, FIRST);
    copies_are_outdated(index, searcher);
    scratch_open(&s);
    ck_ok(sl_index_save(index, s.path, NULL));
    ck_assert_uint_eq(index->ordered, FIRST + MORE);
    copies_are_outdated(index, searcher);
    sl_searcher_free(searcher);
    sl_index_free(index);
    scratch_close(&s);
}
END_TEST

START_TEST(copies_where_they_are_of_use) {
    sl_index *index = make(SL_NUMA_BIND, 3, N);
    search_on(index, 1, 3);
    ck_assert_uint_eq(pages_of(index).copies, 1);
    topology_stand_on(&machine, 3, 1);
    ck_assert_ptr_ne(sl_upper_here(&index->graph), &index->graph.upper);
    topology_stand_on(&machine, 0, 1);
    ck_assert_ptr_eq(sl_upper_here(&index->graph), &index->graph.upper);
    sl_index_free(index);
    machine.bare = 1;
    index = make(SL_NUMA_INTERLEAVE, 0, N);
    search_on(index, 1, 3);
    ck_assert_uint_eq(pages_of(index).copies, NODES - 1);
    sl_index_free(index);
    machine.nodes = 1;
    index = make(SL_NUMA_INTERLEAVE, 0, N);
    search_on(index, 1, 3);
    ck_assert_ptr_null(index->graph.replicas);
    ck_assert_uint_eq(pages_of(index).copies, 0);
    sl_index_free(index);
    /* Nothing stands above layer 0. */
    machine.nodes = NODES;
    index = make(SL_NUMA_INTERLEAVE, 0, 1);
    search_on(index, 1, 3);
    ck_assert_uint_eq(pages_of(index).copies, 0);
    sl_index_free(index);
}
END_TEST

/* A mapped index opens without them. */
START_TEST(copies_of_a_mapped_index) {
    scratch s;
    sl_searcher *searcher;
    scratch_open(&s);
    sl_index *index = make(SL_NUMA_DEFAULT, 0, N);
    ck_ok(sl_index_save(index, s.path, NULL));
    sl_index_free(index);
    index = reopen(s.path, SL_PLACE_MAP, SL_NUMA_INTERLEAVE, 0);
    ck_assert_uint_eq(pages_of(index).copies, 0);
    ck_ok(sl_searcher_create(index, EF, &searcher));
    ck_assert_uint_eq(pages_of(index).copies, NODES);
    outcome copied = ask(searcher);
    sl_replicas_drop(index);
    outcome own = ask(searcher);
    same(&copied, &own);
    sl_searcher_free(searcher);
    sl_index_free(index);
    scratch_close(&s);
}
END_TEST

/* The DRAM copy's rows are layer 0's and have the policy. Searches on a node read the node's copy of the upper layers.
 * Searches read the DRAM copy's upper layers only on a node that has none. */
START_TEST(a_tier_beside_the_copies) {
    scratch s;
    sl_searcher *searcher;
    scratch_open(&s);
    sl_index_params made = params_of(SL_NUMA_DEFAULT, 0);
    made.codes = SL_CODES_I4;
    sl_index *index = indexes_make(&made, base, SL_F32, N, NULL, 1);
    ck_ok(sl_index_save(index, s.path, NULL));
    sl_index_free(index);
    sl_allocator allocator = dirty_allocator();
    sl_open_params params;
    sl_open_params_init(&params);
    params.numa = SL_NUMA_INTERLEAVE;
    params.numa_ops = &machine.ops;
    params.allocator = &allocator;
    params.tier = SL_TIER_DRAM;
    ck_ok(sl_index_open(s.path, &params, &index));
    indexes_await_tier(index);
    const sl_dram_copy *tier = sl_dram_copy_now(&index->graph);
    lies(tier->walked.rows.base, N * sl_codec_of_walks(&index->graph)->rows.pitch, SL_NUMA_INTERLEAVE, 0);
    ck_assert_ptr_null(topology_find(&machine, tier->upper.links));
    ck_ok(sl_searcher_create(index, EF, &searcher));
    outcome sound = ask(searcher);
    spoil(&tier->upper, index->graph.m);
    outcome copied = ask(searcher);
    same(&copied, &sound);
    sl_replicas_drop(index);
    outcome spoiled = ask(searcher);
    ck_assert_uint_ne(spoiled.evaluations, sound.evaluations);
    sl_searcher_free(searcher);
    sl_index_free(index);
    ck_assert_uint_eq(machine.range_count, 0);
    ck_assert_uint_eq(faults.live_blocks, 0);
    scratch_close(&s);
}
END_TEST

START_TEST(without_memory_for_a_copy) {
    sl_searcher *searcher;
    sl_allocator allocator = dirty_allocator();
    sl_index_params params = params_of(SL_NUMA_INTERLEAVE, 0);
    params.allocator = &allocator;
    params.log = keep_log;
    sl_index *index = indexes_make(&params, base, SL_F32, N, NULL, 1);
    ck_ok(sl_searcher_create(index, EF, &searcher));
    outcome sound = ask(searcher);
    sl_replicas_drop(index);
    /* The second of the four. */
    faults.fail_at = faults.calls + 2;
    sl_replicas_make(index);
    ck_assert_uint_eq(pages_of(index).copies, NODES - 1);
    ck_assert_ptr_nonnull(strstr(logged, "no copy of the upper layers on memory node 1"));
    topology_stand_on(&machine, 1, 1);
    ck_assert_ptr_eq(sl_upper_here(&index->graph), &index->graph.upper);
    outcome own = ask(searcher);
    same(&own, &sound);
    sl_searcher_free(searcher);
    sl_index_free(index);
    ck_assert_uint_eq(faults.live_blocks, 0);
}
END_TEST

/* Wherever memory ends, nothing is left behind, neither a block nor a policy. */
START_TEST(every_allocation_fails_once) {
    scratch s;
    sl_index *index;
    uint64_t ids[K];
    scratch_open(&s);
    index = make(SL_NUMA_DEFAULT, 0, 300);
    ck_ok(sl_index_save(index, s.path, NULL));
    sl_index_free(index);
    sl_allocator allocator = dirty_allocator();
    sl_open_params params;
    sl_open_params_init(&params);
    params.allocator = &allocator;
    params.place = (sl_place)_i;
    params.numa = SL_NUMA_INTERLEAVE;
    params.numa_ops = &machine.ops;
    sl_status status = SL_ENOMEM;
    for (size_t fail_at = 1; status != SL_OK; fail_at++) {
        fault_allocator_init(&faults, fail_at);
        status = sl_index_open(s.path, &params, &index);
        if (status == SL_OK) status = sl_index_search(index, queries, SL_F32, 1, 0, K, NULL, ids, NULL, NULL);
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        /* Failures that a search lives with come last. */
        if (status == SL_OK && faults.calls >= fail_at) status = SL_ENOMEM;
        sl_index_free(index);
        ck_assert_uint_eq(faults.live_blocks, 0);
        ck_assert_uint_eq(machine.range_count, 0);
        ck_assert_uint_lt(fail_at, 1000);
    }
    scratch_close(&s);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Threads
 * ------------------------------------------------------------------------------------------------------------- */

/* How often a thread was given the CPUs of a node alone. */
static size_t pins_to(size_t node) {
    size_t count = 0;
    for (size_t i = 0; i < machine.pin_count; i++)
        count += machine.pins[i].first == node * TOPOLOGY_CPUS && machine.pins[i].count == TOPOLOGY_CPUS;
    return count;
}

/* Each thread's last word is what it had before. */
static void all_free(size_t first_node, size_t nodes) {
    for (size_t i = 0; i < machine.pin_count; i++) {
        size_t last = i;
        for (size_t j = i; j < machine.pin_count; j++)
            if (machine.pins[j].thread == machine.pins[i].thread) last = j;
        ck_assert_uint_eq(machine.pins[last].first, first_node * TOPOLOGY_CPUS);
        ck_assert_uint_eq(machine.pins[last].count, nodes * TOPOLOGY_CPUS);
    }
}

START_TEST(threads_of_a_batch_run_where_their_part_is) {
    if (sl_thread_count(2) < 2) return; /* a build without OpenMP */
    sl_index *index = make(_i ? SL_NUMA_LOCAL : SL_NUMA_INTERLEAVE, 0, LARGE);
    search_on(index, 1, QUERIES);
    ck_assert_uint_eq(machine.pin_count, 0);
    search_on(index, 8, QUERIES);
    ck_assert_uint_eq(machine.pin_count, 16);
    for (size_t node = 0; node < NODES; node++)
        ck_assert_uint_eq(pins_to(node), 2);
    all_free(0, NODES);

    /* A scan of partitions too. */
    uint64_t ids[QUERIES * K];
    sl_search_params params;
    sl_search_params_init(&params);
    params.threads = 4;
    params.probes = 3;
    machine.pin_count = 0;
    ck_ok(sl_index_search(index, queries, SL_F32, QUERIES, 0, K, &params, ids, NULL, NULL));
    ck_assert_uint_eq(machine.pin_count, 8);
    for (size_t node = 0; node < NODES; node++)
        ck_assert_uint_eq(pins_to(node), 1);
    all_free(0, NODES);
    sl_index_free(index);
}
END_TEST

START_TEST(threads_of_an_index_on_one_node) {
    if (sl_thread_count(2) < 2) return; /* a build without OpenMP */
    sl_index *index = make(SL_NUMA_BIND, 1, N);
    /* As many as it has CPUs: more would take turns while other nodes idle. */
    search_on(index, TOPOLOGY_CPUS + 3, QUERIES);
    ck_assert_uint_eq(pins_to(1), TOPOLOGY_CPUS);
    ck_assert_uint_eq(machine.pin_count, 2 * TOPOLOGY_CPUS);
    all_free(0, NODES);
    sl_index_free(index);
}
END_TEST

/* The process has only the nodes that an operator left it. */
START_TEST(threads_stay_where_they_may_run) {
    sl_numa *numa;
    sl_numa_pin pin;
    sl_allocator allocator = sl_allocator_of(NULL);
    ck_ok(sl_numa_open(SL_NUMA_INTERLEAVE, 0, &machine.ops, &allocator, &numa));
    topology_stand_on(&machine, 1, 2);
    for (size_t thread = 0; thread < 4; thread++) {
        sl_numa_pin_thread(numa, thread, 4, &pin);
        ck_assert(pin.pinned);
        sl_numa_unpin_thread(numa, &pin);
    }
    ck_assert_uint_eq(pins_to(1), 2);
    ck_assert_uint_eq(pins_to(2), 2);
    all_free(1, 2);
    topology_stand_on(&machine, 3, 1);
    sl_numa_pin_thread(numa, 0, 4, &pin);
    ck_assert(!pin.pinned);
    sl_numa_close(numa);
    ck_ok(sl_numa_open(SL_NUMA_BIND, 0, &machine.ops, &allocator, &numa));
    sl_numa_pin_thread(numa, 0, 4, &pin);
    ck_assert(!pin.pinned);
    sl_numa_close(numa);
    sl_numa_pin_thread(NULL, 0, 4, &pin);
    ck_assert(!pin.pinned);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("numa"), *threads = tcase_create("threads");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_checked_fixture(threads, setup, teardown);
    tcase_add_test(tests, policies_are_words);
    tcase_add_test(tests, what_the_machine_has_not_is_refused);
    tcase_add_test(tests, what_the_system_forbids_is_said);
    tcase_add_test(tests, a_wrong_node_does_not_make_a_file_a_damaged_one);
    tcase_add_test(tests, nothing_is_asked_without_a_policy);
    tcase_add_loop_test(tests, layer0_has_its_policy_before_it_is_touched, 0, KINDS * ASKED);
    tcase_add_test(tests, ids_of_an_index_in_a_new_order);
    tcase_add_test(tests, pages_are_read_back);
    tcase_add_test(tests, pages_of_a_mapped_file_are_moved);
    tcase_add_test(tests, pages_that_others_hold_stay);
    tcase_add_test(tests, reading_ahead_can_be_cancelled);
    tcase_add_test(tests, each_node_has_a_copy_and_reads_it);
    tcase_add_test(threads, what_changes_the_upper_layers_makes_copies_outdated);
    tcase_add_test(tests, copies_where_they_are_of_use);
    tcase_add_test(tests, copies_of_a_mapped_index);
    tcase_add_test(tests, a_tier_beside_the_copies);
    tcase_add_test(tests, without_memory_for_a_copy);
    tcase_add_loop_test(tests, every_allocation_fails_once, SL_PLACE_DRAM, SL_PLACE_MAP + 1);
    tcase_add_loop_test(threads, threads_of_a_batch_run_where_their_part_is, 0, 2);
    tcase_add_test(threads, threads_of_an_index_on_one_node);
    tcase_add_test(threads, threads_stay_where_they_may_run);
    return check_main("numa", (TCase *[]){tests, threads}, 2);
}
