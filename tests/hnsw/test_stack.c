/* Every call of the index takes less of its thread's stack than the header grants, and a thread of a small stack may
 * make every call. Calls run over every layout, place, kind of codes and way of building, since each takes others of
 * the library's arrays. */
#include "tests/support/clusters.h"
#include "tests/support/scratch.h"
#include "tests/support/stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 600, MORE = 40, LEAVES = 4500, ALL = LEAVES + 500, DIM = 24, QUERIES = 60, K = 10 };

/* `copy` is a file beside the index: a snapshot, a merge, a file of a dead writer. */
static scratch place;
static char copy[SCRATCH_PATH], copy_log[SCRATCH_PATH], log_path[SCRATCH_PATH], work[SCRATCH_PATH];
static float *x, *queries;
static uint64_t ids[QUERIES * 64], tags[ALL], keys[ALL];
static float scores[QUERIES * 64];
static size_t threads;
static uint64_t next_gone; /* the first id that `change` has not deleted */

#define INIT(kind, params) STACK_DO(sl_##kind##_params_init_sized(params, sizeof *(params)))

/* ---------------------------------------------------------------------------------------------------------------
 * Searches
 * ------------------------------------------------------------------------------------------------------------- */

static int allow_odd(void *ctx, uint64_t id) {
    (void)ctx;
    return id % 2 == 1;
}

static int take_range(void *ctx, size_t query, uint64_t id, float score) {
    (void)ctx, (void)query, (void)id, (void)score;
    return 0;
}

static void search_filtered(sl_index *index, sl_search_params *search) {
    const uint64_t few[] = {1, 5, 9, 400}, bits[N / 64 + 1] = {0x5555555555555555u, 0xff};
    sl_filter_params params;
    sl_filter *filter;
    for (int kind = 0; kind < 3; kind++) {
        INIT(filter, &params);
        params.allow = kind == 0 ? few : NULL;
        params.allow_count = kind == 0 ? 4 : 0;
        params.bits = kind == 1 ? bits : NULL;
        params.bits_count = kind == 1 ? N : 0;
        params.accept = kind == 2 ? allow_odd : NULL;
        STACK_OK(sl_filter_create(index, &params, &filter));
        STACK_OK(sl_filter_refresh(filter));
        STACK_DO((void)sl_filter_count(filter));
        search->filter = filter;
        for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_HOPS; strategy++) {
            search->strategy = (sl_filter_strategy)strategy;
            STACK_OK(sl_index_search(index, queries, SL_F32, QUERIES, 0, K, search, ids, scores, NULL));
        }
        STACK_DO(sl_filter_free(filter));
        search->filter = NULL;
        search->strategy = SL_FILTER_AUTO;
    }
    search->accept = allow_odd;
    STACK_OK(sl_index_search(index, queries, SL_F32, QUERIES, 0, K, search, ids, scores, NULL));
    search->accept = NULL;
}

static void search_one(sl_index *index, const sl_search_params *search) {
    sl_searcher *searcher;
    sl_iterator *iterator;
    size_t got;
    STACK_OK(sl_searcher_create(index, 300, &searcher));
    STACK_OK(sl_searcher_search(searcher, queries, SL_F32, K, search, ids, scores, NULL));
    STACK_DO(sl_searcher_free(searcher));
    STACK_OK(sl_iterator_create(index, queries, SL_F32, search, &iterator));
    for (int page = 0; page < 40; page++)
        STACK_OK(sl_iterator_next(iterator, 16, ids, scores, &got, NULL));
    STACK_DO(sl_iterator_free(iterator));
}

static void search_ranges(const sl_index *index) {
    sl_range_params range;
    INIT(range, &range);
    range.threads = threads;
    for (range.exact = 0; range.exact < 2; range.exact++)
        STACK_OK(sl_index_range(index, queries, SL_F32, QUERIES, 0, 0.5, &range, take_range, NULL, NULL));
}

static void search_all_ways(sl_index *index, int multi) {
    const uint64_t some[] = {3, 7, 11};
    sl_search_params search;
    INIT(search, &search);
    search.threads = threads;
    search.ef = 120;
    STACK_OK(sl_index_search(index, queries, SL_F32, QUERIES, 0, K, &search, ids, scores, NULL));
    search.probes = 3;
    STACK_OK(sl_index_search(index, queries, SL_F32, QUERIES, 0, K, &search, ids, scores, NULL));
    search.probes = 0;
    search.max_visits = 100;
    STACK_OK(sl_index_search(index, queries, SL_F32, QUERIES, 0, K, &search, ids, scores, NULL));
    search.max_visits = 0;
    search_filtered(index, &search);
    search_one(index, &search);
    search_ranges(index);
    if (!multi) STACK_OK(sl_index_search_ids(index, some, 3, K, &search, ids, scores, NULL));
}

/* ---------------------------------------------------------------------------------------------------------------
 * What is told of an index
 * ------------------------------------------------------------------------------------------------------------- */

static void ask_all(sl_index *index) {
    static float vectors[3 * N * DIM];
    const uint64_t some[] = {3, 7, 11};
    sl_index_stats stats = {.struct_size = sizeof stats};
    sl_index_storage storage = {.struct_size = sizeof storage};
    sl_index_numa numa = {.struct_size = sizeof numa};
    sl_check_params check;
    sl_check_report report = {.struct_size = sizeof report};
    size_t count;
    int found;
    STACK_OK(sl_index_get_stats(index, &stats));
    STACK_OK(sl_index_get_storage(index, &storage));
    STACK_TRY(sl_index_get_numa(index, &numa));
    STACK_DO((void)sl_index_size(index));
    STACK_OK(sl_index_contains(index, 5, &found));
    STACK_OK(sl_index_ids(index, NULL, 0, &count));
    if (!stats.multi) STACK_OK(sl_index_get(index, some, 3, SL_F32, vectors));
    STACK_OK(sl_index_get_all(index, 3, SL_F32, vectors, 1, &count));
    if (stats.tags) STACK_OK(sl_index_get_tags(index, some, 3, tags));
    if (stats.keys) STACK_OK(sl_index_get_keys(index, some, 3, keys));
    INIT(check, &check);
    check.threads = threads;
    check.sample = 50;
    check.scrub = stats.room > 0;
    STACK_OK(sl_index_check(index, &check, &report));
    sl_resolution resolution = {.struct_size = sizeof resolution};
    STACK_OK(sl_index_resolution(index, threads, &resolution));
}

static void change(sl_index *index) {
    const uint64_t gone[] = {next_gone, next_gone + 1}, some[] = {3, 7, 11}, words[] = {1, 2, 3};
    sl_index_stats stats = {.struct_size = sizeof stats};
    sl_add_params add;
    INIT(add, &add);
    add.threads = threads;
    STACK_OK(sl_index_delete(index, gone, 2));
    STACK_OK(sl_index_undelete(index, gone, 2));
    STACK_OK(sl_index_delete(index, gone, 2));
    STACK_OK(sl_index_get_stats(index, &stats));
    sl_compact_params compacts;
    INIT(compact, &compacts);
    if (!stats.room) STACK_OK(sl_index_compact(index, &compacts));
    sl_recall_params recalls;
    sl_recall_report recall = {.struct_size = sizeof recall};
    INIT(recall, &recalls);
    recalls.sample = 2;
    STACK_OK(sl_index_recall(index, &recalls, &recall));
    sl_epoch_holder holder;
    size_t holders;
    STACK_OK(sl_index_holders(index, &holder, 1, &holders));
    next_gone += 2;
    STACK_OK(sl_index_add(index, x, SL_F32, MORE, 0, NULL, &add));
    STACK_OK(sl_index_get_stats(index, &stats));
    if (stats.tags) STACK_OK(sl_index_set_tags(index, some, 3, words));
    if (stats.keys) STACK_OK(sl_index_set_keys(index, some, 3, words));
}

static void tune(sl_index *index) {
    sl_tune_params tune;
    sl_tune_report report = {.struct_size = sizeof report};
    sl_tuned tuned = {.struct_size = sizeof tuned};
    INIT(tune, &tune);
    tune.threads = threads;
    STACK_OK(sl_index_tune(index, queries, SL_F32, QUERIES, 0, NULL, K, &tune, &report));
    STACK_OK(sl_index_get_tuned(index, 0, &tuned));
    STACK_TRY(sl_index_find_tuned(index, K, 0.9, &tuned));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------------------------------------------- */

static sl_index *open_at(const char *path, sl_place where, int writable) {
    sl_open_params open;
    sl_index *index;
    INIT(open, &open);
    open.place = where;
    open.writable = writable;
    open.threads = threads;
    open.prefault = where == SL_PLACE_MAP;
    STACK_OK(sl_index_open(path, &open, &index));
    return index;
}

static void save(sl_index *index, const char *path, size_t room, sl_layout layout) {
    sl_save_params params;
    INIT(save, &params);
    params.room = room;
    params.layout = layout;
    STACK_OK(sl_save_try(path));
    STACK_OK(sl_index_save(index, path, &params));
}

static void snapshot(void) {
    sl_snapshot_params params;
    INIT(snapshot, &params);
    STACK_OK(sl_index_snapshot(place.path, copy, &params));
    params.file_ops = &(sl_file_ops){0};
    STACK_OK(sl_index_snapshot(place.path, copy, &params));
}

static void rebuild(void) {
    sl_rebuild_params params;
    sl_rebuild_report report = {.struct_size = sizeof report};
    INIT(rebuild, &params);
    params.threads = threads;
    params.output = copy;
    STACK_OK(sl_index_rebuild(place.path, &params, &report));
}

static void copy_file(const char *from, const char *to) {
    size_t size;
    unsigned char *bytes = file_read(from, &size);
    file_write(to, bytes, size);
    free(bytes);
}

/* The files as they are when a writer dies after a sync: every kind of handle finds what the log has. */
static void die_and_recover(void) {
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_PMEM; where++)
        for (int writable = 0; writable < 2; writable++) {
            if (writable && where != SL_PLACE_MAP) continue;
            sl_index *index = open_at(place.path, SL_PLACE_MAP, 1);
            change(index);
            STACK_OK(sl_index_sync(index));
            copy_file(place.path, copy);
            copy_file(log_path, copy_log);
            STACK_DO(sl_index_free(index));
            index = open_at(copy, (sl_place)where, writable);
            ask_all(index);
            STACK_DO(sl_index_free(index));
        }
}

/* A reader, while a writer adds and dies: its calls find the remains. */
static void read_beside(void) {
    sl_index *index = open_at(place.path, SL_PLACE_MAP, 1);
    copy_file(place.path, copy);
    remove(copy_log);
    sl_index *reader = open_at(copy, SL_PLACE_MAP, 0);
    change(index);
    STACK_OK(sl_index_sync(index));
    size_t size;
    unsigned char *bytes = file_read(place.path, &size);
    file_patch(copy, 0, bytes, size);
    free(bytes);
    copy_file(log_path, copy_log);
    search_all_ways(reader, 0);
    ask_all(reader);
    STACK_DO(sl_index_free(reader));
    STACK_DO(sl_index_free(index));
}

static void use_files(sl_index *index, size_t room, sl_layout layout) {
    save(index, place.path, room, layout);
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_PMEM; where++) {
        sl_index *opened = open_at(place.path, (sl_place)where, 0);
        ask_all(opened);
        if (where == SL_PLACE_MAP) search_all_ways(opened, 0);
        save(opened, copy, room, layout);
        STACK_DO(sl_index_free(opened));
    }
    snapshot();
    rebuild();
    if (!room) return;
    sl_index *writer = open_at(place.path, SL_PLACE_MAP, 1);
    change(writer);
    tune(writer);
    ask_all(writer);
    save(writer, copy, room, layout);
    snapshot();
    size_t dropped;
    STACK_OK(sl_index_drop_damaged(writer, threads, &dropped));
    STACK_OK(sl_index_sync(writer));
    STACK_DO(sl_index_free(writer));
    die_and_recover();
    read_beside();
}

/* ---------------------------------------------------------------------------------------------------------------
 * All calls
 * ------------------------------------------------------------------------------------------------------------- */

static sl_index *make(const sl_index_params *params, size_t n, sl_builder builder) {
    sl_index *index;
    sl_add_params add;
    STACK_OK(sl_index_create(params, &index));
    STACK_OK(sl_index_reserve(index, n));
    INIT(add, &add);
    add.threads = threads;
    add.builder = builder;
    add.tags = params->tags ? tags : NULL;
    add.keys = params->keys ? keys : NULL;
    next_gone = 20;
    STACK_OK(sl_index_add(index, x, SL_F32, n, 0, NULL, &add));
    return index;
}

static void merge(sl_index *one, sl_index *other, sl_builder builder) {
    sl_merge_params params;
    sl_index *merged, *both[] = {one, other};
    INIT(merge, &params);
    params.threads = threads;
    params.builder = builder;
    params.clash = SL_CLASH_LATER;
    STACK_OK(sl_index_merge(both, other ? 2 : 1, &params, &merged));
    STACK_DO(sl_index_free(merged));
}

static void kinds_of_codes(void) {
    static const struct {
        sl_codes codes;
        sl_refine refine;
        sl_clip clip;
    } kinds[] = {{SL_CODES_I8, SL_REFINE_NONE, SL_CLIP_MSE},     {SL_CODES_I4, SL_REFINE_NONE, SL_CLIP_AUTO},
                 {SL_CODES_I4, SL_REFINE_F32, SL_CLIP_QUANTILE}, {SL_CODES_I8, SL_REFINE_BF16, SL_CLIP_AUTO},
                 {SL_CODES_I16, SL_REFINE_I16, SL_CLIP_AUTO},    {SL_CODES_F32, SL_REFINE_NONE, SL_CLIP_AUTO}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        sl_index_params params;
        INIT(index, &params);
        params.dim = DIM;
        params.m = 8;
        params.ef_construction = 60;
        params.metric = (sl_metric)(i % 3);
        params.codes = kinds[i].codes;
        params.refine = kinds[i].refine;
        params.clip = kinds[i].clip;
        params.tags = params.keys = 1;
        sl_index *index = make(&params, N, SL_BUILDER_INSERT);
        change(index);
        search_all_ways(index, 0);
        tune(index);
        ask_all(index);
        merge(index, NULL, SL_BUILDER_INSERT);
        merge(index, index, SL_BUILDER_AUTO);
        if (i < 2) {
            use_files(index, 2 * N, SL_LAYOUT_ARRAYS);
            use_files(index, 0, i ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS);
        }
        STACK_DO(sl_index_free(index));
    }
}

static void plan(const sl_index_params *params) {
    sl_plan plan = {.struct_size = sizeof plan};
    sl_build_plan build = {.struct_size = sizeof build};
    STACK_OK(sl_index_plan(params, 100000, &plan));
    STACK_OK(sl_index_plan_build(params, 10000, NULL, NULL, NULL, &build));
}

/* Enough vectors for partitions and for leaves, in bounded memory too. */
static void large_indexes(void) {
    for (int bounded = 0; bounded < 2; bounded++) {
        sl_index_params params;
        INIT(index, &params);
        params.dim = DIM;
        params.codes = bounded ? SL_CODES_I8 : SL_CODES_I4;
        params.metric = bounded ? SL_METRIC_IP : SL_METRIC_COSINE;
        params.work_path = bounded ? work : NULL;
        params.max_memory = bounded ? (size_t)64 << 20 : 0;
        plan(&params);
        sl_index *index = make(&params, LEAVES, SL_BUILDER_LEAVES);
        search_all_ways(index, 0);
        tune(index);
        merge(index, NULL, SL_BUILDER_LEAVES);
        use_files(index, bounded ? 0 : 2 * ALL, SL_LAYOUT_ARRAYS);
        STACK_DO(sl_index_free(index));
    }
}

static void several_vectors_an_id(void) {
    static uint64_t shared[N];
    sl_index_params params;
    for (size_t i = 0; i < N; i++)
        shared[i] = i / 3;
    INIT(index, &params);
    params.dim = DIM;
    params.multi = params.keys = 1;
    sl_index *index;
    sl_search_params search;
    STACK_OK(sl_index_create(&params, &index));
    STACK_OK(sl_index_add(index, x, SL_F32, N, 0, shared, NULL));
    search_all_ways(index, 1);
    INIT(search, &search);
    search.group_size = 2;
    STACK_OK(sl_index_search(index, queries, SL_F32, QUERIES, 0, K, &search, ids, scores, NULL));
    ask_all(index);
    STACK_DO(sl_index_free(index));
}

static void exact(void) {
    sl_exact_params params;
    sl_exact *scan;
    INIT(exact, &params);
    params.dim = DIM;
    params.k = K;
    params.threads = threads;
    for (int metric = SL_METRIC_IP; metric <= SL_METRIC_L2; metric++) {
        params.metric = (sl_metric)metric;
        STACK_OK(sl_exact_create(&params, queries, QUERIES, 0, &scan));
        STACK_OK(sl_exact_scan(scan, x, N, 0, 0));
        STACK_OK(sl_exact_results(scan, ids, scores));
        STACK_DO(sl_exact_free(scan));
    }
}

static void names(void) {
    char text[32];
    sl_numa_policy policy;
    size_t node;
    double score;
    uint16_t halves[DIM];
    sl_system machine = {.struct_size = sizeof machine};
    sl_numa_node memory = {.struct_size = sizeof memory};
    sl_file_kind kind;
    STACK_DO((void)sl_status_name(SL_OK));
    STACK_DO((void)sl_status_text(SL_OK));
    STACK_DO((void)sl_last_error());
    STACK_DO((void)sl_version());
    STACK_DO((void)sl_metric_name(SL_METRIC_IP));
    STACK_DO((void)sl_dtype_name(SL_F32));
    STACK_DO((void)sl_codes_name(SL_CODES_I8));
    STACK_DO((void)sl_refine_name(SL_REFINE_F32));
    STACK_DO((void)sl_clip_name(SL_CLIP_MSE));
    STACK_DO((void)sl_place_name(SL_PLACE_MAP));
    STACK_DO((void)sl_layout_name(SL_LAYOUT_RECORDS));
    STACK_DO((void)sl_tier_name(SL_TIER_DRAM));
    STACK_DO((void)sl_numa_policy_name(SL_NUMA_BIND));
    STACK_DO((void)sl_mapping_name(SL_MAPPING_SHARED));
    STACK_DO((void)sl_tier_state_name(SL_TIER_STATE_NONE));
    STACK_DO((void)sl_tune_limit_name(SL_LIMIT_NONE));
    STACK_DO((void)sl_tune_limit_text(SL_LIMIT_EF));
    STACK_DO((void)sl_isa_name(SL_ISA_AVX2));
    STACK_DO((void)sl_dtype_size(SL_F32));
    STACK_OK(sl_numa_parse("bind:0", &policy, &node));
    STACK_DO((void)sl_numa_format(policy, node, text, sizeof text));
    STACK_OK(sl_score(SL_METRIC_COSINE, SL_F32, x, queries, DIM, &score));
    STACK_OK(sl_convert(x, SL_F32, halves, SL_BF16, DIM));
    STACK_OK(sl_system_query(&machine));
    STACK_TRY(sl_numa_get_node(0, &memory));
    STACK_OK(sl_file_kind_of(place.path, &kind));
}

/* Each takes a message that has to be written. */
static void failures(void) {
    char missing[SCRATCH_PATH];
    sl_index *index;
    scratch_name(&place, "missing", missing);
    STACK_FAILS(sl_index_open(missing, NULL, &index), SL_EIO);
    STACK_FAILS(sl_index_snapshot(missing, copy, NULL), SL_EIO);
    STACK_FAILS(sl_index_rebuild(missing, NULL, NULL), SL_EIO);
    size_t size;
    unsigned char *bytes = file_read(place.path, &size);
    bytes[size / 2] ^= 1;
    bytes[size / 3] ^= 1;
    file_write(copy, bytes, size);
    remove(copy_log);
    free(bytes);
    sl_check_report report = {.struct_size = sizeof report};
    index = open_at(copy, SL_PLACE_MAP, 0);
    STACK_FAILS(sl_index_check(index, NULL, &report), SL_ECORRUPT);
    STACK_FAILS(sl_index_save(index, work, NULL), SL_ECORRUPT);
    STACK_DO(sl_index_free(index));
}

static void (*const all[])(void) = {kinds_of_codes, large_indexes, several_vectors_an_id, exact, names, failures};

static void set_up(void) {
    scratch_open(&place);
    scratch_name(&place, "copy.sl", copy);
    scratch_name(&place, "copy.sl.log", copy_log);
    scratch_name(&place, "index.sl.log", log_path);
    scratch_name(&place, "work", work);
    x = clusters_make(ALL + QUERIES, DIM, 0.3, 1);
    queries = x + ALL * DIM;
    for (size_t i = 0; i < ALL; i++) {
        tags[i] = i % 7;
        keys[i] = i / 5;
    }
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

int main(void) {
    const stack_suite suite = {"stack", SL_TEST_HEADER, set_up, tear_down, all, sizeof all / sizeof *all, &threads};
    return stack_main(&suite);
}
