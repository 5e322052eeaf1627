#define _POSIX_C_SOURCE 200809L
#include "tests/support/indexes.h"

#include "hnsw/graph/version.h"
#include "hnsw/index/describe.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void indexes_expect(sl_status got, sl_status wanted, const char *text, const char *call, const char *file, int line) {
    ck_assert_msg(got == wanted, "%s:%d: %s gave %s, not %s; the message is '%s'", file, line, call,
                  sl_status_name(got), sl_status_name(wanted), sl_last_error());
    ck_assert_msg(strstr(sl_last_error(), text), "%s:%d: %s: '%s' does not say '%s'", file, line, call, sl_last_error(),
                  text);
}

void indexes_params(sl_index_params *params, size_t dim, sl_metric metric) {
    sl_index_params_init(params);
    params->dim = dim;
    params->metric = metric;
    params->m = 8;
    params->ef_construction = 60;
}

sl_index *indexes_make(const sl_index_params *params, const void *vectors, sl_dtype dtype, size_t n,
                       const uint64_t *ids, size_t threads) {
    sl_index *index;
    ck_ok(sl_index_create(params, &index));
    sl_add_params add;
    sl_add_params_init(&add);
    add.threads = threads;
    ck_ok(sl_index_add(index, vectors, dtype, n, 0, ids, &add));
    return index;
}

sl_status indexes_add(sl_index *index, const void *vectors, sl_dtype dtype, size_t n, const uint64_t *ids) {
    sl_add_params add;
    sl_add_params_init(&add);
    add.threads = 1;
    return sl_index_add(index, vectors, dtype, n, 0, ids, &add);
}

sl_layout indexes_layout(void) {
    const char *name = getenv("TEST_LAYOUT");
    if (!name || strcmp(name, sl_layout_name(SL_LAYOUT_ARRAYS)) == 0) return SL_LAYOUT_ARRAYS;
    ck_assert_str_eq(name, sl_layout_name(SL_LAYOUT_RECORDS));
    return SL_LAYOUT_RECORDS;
}

sl_index *indexes_open(const char *path, sl_place place) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = place;
    sl_index *index;
    ck_ok(sl_index_open(path, &params, &index));
    ck_assert_int_eq(indexes_stats(index).place, place);
    return index;
}

void indexes_save_params(sl_save_params *params) {
    sl_save_params_init(params);
    params->layout = indexes_layout();
}

sl_status indexes_save(sl_index *index, const char *path) {
    sl_save_params params;
    indexes_save_params(&params);
    return sl_index_save(index, path, &params);
}

void indexes_search(const sl_index *index, vector_rows queries, size_t k, size_t ef, uint64_t *ids, float *scores) {
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = ef;
    ck_ok(sl_index_search(index, queries.rows, queries.dtype, queries.count, 0, k, &params, ids, scores, NULL));
}

void indexes_exact(sl_metric metric, size_t dim, vector_rows base, vector_rows queries, size_t k, uint64_t *ids) {
    sl_exact_params params;
    sl_exact_params_init(&params);
    params.dim = dim;
    params.metric = metric;
    params.dtype = base.dtype;
    params.k = k;
    params.threads = 1;
    sl_exact *exact;
    ck_assert_int_eq(base.dtype, queries.dtype);
    ck_ok(sl_exact_create(&params, queries.rows, queries.count, 0, &exact));
    ck_ok(sl_exact_scan(exact, base.rows, base.count, 0, 0));
    ck_ok(sl_exact_results(exact, ids, NULL));
    sl_exact_free(exact);
}

double indexes_recall(const uint64_t *found, const uint64_t *truth, size_t nq, size_t k) {
    size_t hits = 0;
    for (size_t q = 0; q < nq; q++)
        for (size_t i = 0; i < k; i++)
            for (size_t j = 0; j < k; j++)
                hits += found[q * k + i] == truth[q * k + j];
    return (double)hits / (double)(nq * k);
}

void indexes_save_cut(const sl_index *index, const char *path, const section_bytes *cut, size_t count) {
    sl_description file;
    size_t kept = 0;
    sl_describe(&index->graph, &(sl_described_as){.id_width = (uint32_t)index->graph.arrays[SL_ARRAY_IDS].width},
                &file);
    for (size_t i = 0; i < file.count; i++) {
        sl_section_source section = file.sections[i];
        for (size_t k = 0; k < count; k++)
            if (cut[k].kind == section.kind) section.size = cut[k].size;
        if (section.size) file.sections[kept++] = section;
    }
    sl_progress progress;
    sl_progress_start(&progress, NULL, NULL, 0);
    ck_ok(sl_store_save(path, &(sl_file_content){&sl_index_file, &file.header, file.sections, kept}, NULL, NULL,
                        &progress));
}

sl_index *indexes_broken(const char *path, const char *says) {
    sl_index *index;
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = SL_PLACE_DRAM;
    ck_fails(sl_index_open(path, &params, &index), SL_ECORRUPT, says);
    ck_ok(sl_index_open(path, NULL, &index));
    sl_check_report report = {.struct_size = sizeof report};
    ck_fails(sl_index_check(index, NULL, &report), SL_ECORRUPT, says);
    return index;
}

int indexes_cancel(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return 1;
}

sl_check_report indexes_sound(sl_index *index) {
    sl_check_params params;
    sl_check_params_init(&params);
    params.sample = 30;
    params.threads = 1;
    params.scrub = 1;
    sl_check_report report = {.struct_size = sizeof report};
    ck_ok(sl_index_check(index, &params, &report));
    ck_assert_uint_eq(report.n, sl_index_size(index));
    ck_assert_uint_eq(report.unreachable + report.no_in_link + report.bad_links + report.bad_upper, 0);
    return report;
}

void indexes_publish(sl_index *index) {
    ck_ok(sl_version_reserve(index, 1));
    sl_version_publish_now(index);
}

sl_index_stats indexes_stats(const sl_index *index) {
    sl_index_stats stats = {.struct_size = sizeof stats};
    ck_ok(sl_index_get_stats(index, &stats));
    return stats;
}

sl_index_storage indexes_storage(const sl_index *index) {
    sl_index_storage storage = {.struct_size = sizeof storage};
    ck_ok(sl_index_get_storage(index, &storage));
    return storage;
}

void indexes_await_tier(const sl_index *index) {
    const struct timespec moment = {0, 1000000};
    for (int i = 0; indexes_storage(index).tier == SL_TIER_STATE_FILLING; i++) {
        ck_assert_int_lt(i, 60000);
        nanosleep(&moment, NULL);
    }
}

void indexes_equal(const sl_index_stats *a, const sl_index_stats *b) {
    /* Compares field by field: there is padding between some. */
#define SAME(field) ck_assert_msg(a->field == b->field, "of the statistics, " #field " differs")
    SAME(struct_size);
    SAME(n);
    SAME(dim);
    SAME(m);
    SAME(ef_construction);
    SAME(seed);
    SAME(metric);
    SAME(dtype);
    SAME(codes);
    SAME(refine);
    SAME(place);
    SAME(max_level);
    SAME(bytes_codes);
    SAME(bytes_links);
    SAME(bytes_ids);
    SAME(bytes_upper);
    SAME(bytes_refine);
    SAME(bytes_total);
    SAME(quant_error_mean);
    SAME(quant_error_max);
    SAME(isa);
    SAME(tuned);
    SAME(bytes_partitions);
    SAME(partitions);
    SAME(groups);
    SAME(deleted);
    SAME(layout);
    SAME(clip);
    SAME(clip_share);
#undef SAME
}

sl_tuned indexes_tuned(const sl_index *index, size_t i) {
    sl_tuned tuned = {.struct_size = sizeof tuned};
    ck_ok(sl_index_get_tuned(index, i, &tuned));
    return tuned;
}

/* Compares field by field, since padding may differ. */
void ck_same_tuned(const sl_tuned *a, const sl_tuned *b) {
    ck_assert_double_eq(a->target, b->target);
    ck_assert_double_eq(a->stop, b->stop);
    ck_assert_double_eq(a->recall, b->recall);
    ck_assert_double_eq(a->standard_error, b->standard_error);
    ck_assert_double_eq(a->evaluations, b->evaluations);
    ck_assert_int_eq(a->limit, b->limit);
    const size_t x[] = {a->k,      a->least_k,    a->ef,     a->rerank,           a->n, a->queries, a->ef_alone,
                        a->probes, a->probes_one, a->groups, (size_t)a->scan_only};
    const size_t y[] = {b->k,      b->least_k,    b->ef,     b->rerank,           b->n, b->queries, b->ef_alone,
                        b->probes, b->probes_one, b->groups, (size_t)b->scan_only};
    ck_assert_mem_eq(x, y, sizeof x);
}
