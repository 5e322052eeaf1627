/* Storage of an index, as reported and as it is; reading ahead; and planned sizes against those of real indexes. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/pages.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 600, MORE = 50, DIM = 20, ROOM = 1000, WIDE = 500, LARGE = 4500 };

static scratch place;

static void set_up(void) {
    scratch_open(&place);
}

static void tear_down(void) {
    scratch_close(&place);
}

static sl_index *opened(const sl_open_params *params) {
    sl_index *index;
    ck_ok(sl_index_open(place.path, params, &index));
    return index;
}

/* An index that is saved, with room where that is not 0. */
static void save_index(size_t n, size_t dim, size_t room) {
    sl_index_params params;
    sl_save_params save;
    float *x = clusters_make(n, dim, 0.3, 5);
    indexes_params(&params, dim, SL_METRIC_L2);
    params.refine = SL_REFINE_F32;
    params.ef_construction = 10;
    sl_index *index = indexes_make(&params, x, SL_F32, n, NULL, 1);
    sl_save_params_init(&save);
    save.room = room;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
    free(x);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Pages
 * ------------------------------------------------------------------------------------------------------------- */

static uint8_t *map_pages(size_t size, int advice, uint8_t **mapping) {
    *mapping = mmap(NULL, size + SL_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(*mapping, MAP_FAILED);
    (void)madvise(*mapping, size + SL_HUGE_PAGE, advice);
    return (uint8_t *)sl_round_up((uintptr_t)*mapping, SL_HUGE_PAGE);
}

START_TEST(pages_that_were_touched) {
    size_t size = 4 * SL_HUGE_PAGE, page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *mapping, *at = map_pages(size, MADV_NOHUGEPAGE, &mapping);
    at[5] = at[page] = at[size / 2] = at[size - 1] = 1;
    sl_pages pages;
    sl_span all = {at, size};
    ck_assert(sl_pages_count(&all, 1, &pages));
    ck_assert_uint_eq(pages.resident, 4 * page);
    ck_assert_uint_eq(pages.huge, 0);
    ck_assert_uint_eq(pages.page_size, page);
    /* Parts of pages count as whole ones; what lies between the spans does not. */
    const sl_span parts[] = {{at + 5, 1}, {at + page + 1, 2 * page}, {at + size / 2 + page, page}, {NULL, 0}};
    ck_assert(sl_pages_count(parts, 4, &pages));
    ck_assert_uint_eq(pages.resident, 2 * page);
    munmap(mapping, size + SL_HUGE_PAGE);
    ck_assert(sl_pages_count(NULL, 0, &pages));
    ck_assert_uint_eq(pages.resident + pages.page_size, 0);
}
END_TEST

START_TEST(huge_pages_are_told) {
    size_t size = 8 * SL_HUGE_PAGE;
    sl_system machine = {.struct_size = sizeof machine};
    ck_ok(sl_system_query(&machine));
    if (strcmp(machine.huge_page_mode, "always") != 0 && strcmp(machine.huge_page_mode, "madvise") != 0) return;
    uint8_t *mapping, *at = map_pages(size, MADV_HUGEPAGE, &mapping);
    memset(at, 1, size);
    sl_pages pages;
    sl_span all = {at, size};
    ck_assert(sl_pages_count(&all, 1, &pages));
    ck_assert_uint_eq(pages.resident, size);
    ck_assert_uint_ge(pages.huge, SL_HUGE_PAGE);
    ck_assert_uint_le(pages.huge, size);
    munmap(mapping, size + SL_HUGE_PAGE);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Where an index lies
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(in_memory) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    float *x = clusters_make(N, DIM, 0.3, 5);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    sl_index_storage s = indexes_storage(index);
    sl_index_stats stats = indexes_stats(index);
    ck_assert_int_eq(s.place, SL_PLACE_DRAM);
    ck_assert_int_eq(s.mapping, SL_MAPPING_MEMORY);
    ck_assert_int_eq(s.writable, 1);
    ck_assert_int_eq(s.dax, 0);
    ck_assert_int_eq(s.pages_known, 1);
    ck_assert_uint_ge(s.bytes_layer0, stats.bytes_codes + stats.bytes_links);
    ck_assert_uint_ge(s.bytes_resident, s.bytes_layer0);
    ck_assert_uint_eq(s.room + s.bytes_log + s.recoveries, 0);
    sl_index_free(index);
    free(x);
    ck_fails(sl_index_get_storage(NULL, &s), SL_EINVAL, "index is NULL");
}
END_TEST

static int stop(void *ctx, uint64_t done, uint64_t total) {
    *(uint64_t *)ctx = total;
    (void)done;
    return 1;
}

/* The first step is told at once, since that is longer after none than a tenth of a second. */
START_TEST(read_ahead) {
    const sl_place where = _i ? SL_PLACE_PMEM : SL_PLACE_MAP;
    save_index(2000, WIDE, 0);
    struct stat file;
    ck_assert_int_eq(stat(place.path, &file), 0);
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = where;
    sl_index *index = opened(&params);
    sl_index_storage s = indexes_storage(index);
    ck_assert_int_eq(s.place, where);
    ck_assert_int_eq(s.mapping, SL_MAPPING_SHARED);
    ck_assert_int_eq(s.writable, 0);
    ck_assert_int_eq(s.dax, 0);
    ck_assert_uint_lt(s.bytes_resident, s.bytes_layer0);
    ck_assert_uint_eq(s.bytes_layer0, indexes_stats(index).bytes_codes + indexes_stats(index).bytes_links +
                                          indexes_stats(index).bytes_ids + indexes_stats(index).bytes_refine);
    sl_index_free(index);

    params.prefault = 1;
    index = opened(&params);
    s = indexes_storage(index);
    ck_assert_uint_ge(s.bytes_resident, s.bytes_layer0);
    ck_assert_uint_le(s.bytes_huge, s.bytes_resident);
    sl_index_free(index);

    uint64_t total = 0;
    params.progress = stop;
    params.progress_ctx = &total;
    ck_fails(sl_index_open(place.path, &params, &index), SL_ECANCELED, "progress callback");
    ck_assert_ptr_null(index);
    ck_assert_uint_eq(total, (uint64_t)file.st_size);
}
END_TEST

static void no_flush(void *ctx, const void *at, size_t size, uint64_t offset) {
    (void)ctx;
    (void)at;
    (void)size;
    (void)offset;
}

static void no_drain(void *ctx) {
    (void)ctx;
}

static void add_more(sl_index *writer) {
    float *x = clusters_make(MORE, DIM, 0.3, 6);
    ck_ok(indexes_add(writer, x, SL_F32, MORE, NULL));
    ck_ok(sl_index_sync(writer));
    free(x);
}

START_TEST(written_in_place) {
    save_index(N, DIM, ROOM);
    sl_open_params params;
    sl_open_params_init(&params);
    sl_index *reader = opened(&params);
    params.writable = 1;
    sl_index *writer = opened(&params);
    sl_index_storage s = indexes_storage(writer);
    ck_assert_int_eq(s.mapping, SL_MAPPING_PRIVATE);
    ck_assert_int_eq(s.writable, 1);
    ck_assert_uint_eq(s.room, ROOM);
    ck_assert_uint_eq(s.recoveries, 0);
    ck_assert_uint_eq(s.bytes_log, 0);
    add_more(writer);
    s = indexes_storage(writer);
    ck_assert_uint_gt(s.bytes_log, MORE * DIM);
    sl_index_storage r = indexes_storage(reader);
    ck_assert_int_eq(r.mapping, SL_MAPPING_SHARED);
    ck_assert_int_eq(r.writable, 0);
    ck_assert_uint_eq(r.room, ROOM);
    ck_assert_uint_eq(r.bytes_log, s.bytes_log);
    ck_assert_uint_eq(r.bytes_layer0, s.bytes_layer0);
    sl_index_free(writer);
    ck_assert_uint_eq(indexes_storage(reader).bytes_log, 0);
    sl_index_free(reader);

    const sl_file_ops direct = {.flush = no_flush, .drain = no_drain};
    params.place = SL_PLACE_PMEM;
    params.file_ops = &direct;
    writer = opened(&params);
    s = indexes_storage(writer);
    ck_assert_int_eq(s.mapping, SL_MAPPING_DIRECT);
    ck_assert_int_eq(s.dax, 0);
    ck_assert_uint_eq(s.bytes_log, 0);
    sl_index_free(writer);
}
END_TEST

START_TEST(recoveries_are_counted) {
    save_index(N, DIM, ROOM);
    sl_open_params params;
    sl_open_params_init(&params);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        params.writable = 1;
        add_more(opened(&params));
        _exit(0); /* without a word to the library: the log is left */
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
    char log[SCRATCH_PATH];
    struct stat left;
    scratch_name(&place, "index.sl.log", log);
    ck_assert_int_eq(stat(log, &left), 0);
    sl_index *index = opened(&params);
    sl_index_storage s = indexes_storage(index);
    ck_assert_uint_eq(s.recoveries, 1);
    ck_assert_uint_eq(s.recovered_groups, 1);
    ck_assert_uint_gt(s.recovered_bytes, MORE * DIM);
    ck_assert_uint_le(s.recovered_bytes, (uint64_t)left.st_size);
    ck_assert_uint_eq(sl_index_size(index), N + MORE);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What one will take
 * ------------------------------------------------------------------------------------------------------------- */

static const struct kind {
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    sl_metric metric;
    size_t m;
} kinds[] = {
    {SL_F32, SL_CODES_I8, SL_REFINE_NONE, SL_METRIC_L2, 8},
    {SL_F32, SL_CODES_I8, SL_REFINE_BF16, SL_METRIC_COSINE, 4},
    {SL_F32, SL_CODES_I16, SL_REFINE_I16, SL_METRIC_IP, 16},
    {SL_F32, SL_CODES_F32, SL_REFINE_NONE, SL_METRIC_L2, 2},
    {SL_U8, SL_CODES_I8, SL_REFINE_NONE, SL_METRIC_COSINE, 8},
    {SL_F32, SL_CODES_I4, SL_REFINE_F32, SL_METRIC_COSINE, 8},
    {SL_U8, SL_CODES_I4, SL_REFINE_NONE, SL_METRIC_L2, 8},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint64_t gap(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

/* Five deviations of the upper layers, and the alignment of the sections behind them. */
static void check_file(const sl_plan *plan, const sl_index_stats *stats) {
    const uint64_t page = 4096, spread = 5 * plan->bytes_upper_deviation;
    struct stat file;
    ck_assert_int_eq(stat(place.path, &file), 0);
    ck_assert_uint_eq(stats->bytes_codes,
                      plan->bytes_codes + plan->bytes_rest + plan->bytes_coarse + plan->bytes_projection);
    ck_assert_uint_eq(stats->bytes_links, plan->bytes_links);
    ck_assert_uint_eq(stats->bytes_ids, plan->bytes_ids);
    ck_assert_uint_eq(stats->bytes_refine, plan->bytes_refine);
    ck_assert_uint_le(gap(stats->bytes_upper, plan->bytes_upper), spread);
    ck_assert_uint_le(stats->bytes_partitions, plan->bytes_partitions);
    /* Those of an index in floats are counted in floats, and made in bytes here. */
    ck_assert_uint_ge((stats->codes == SL_CODES_F32 ? 4 : 2) * stats->bytes_partitions, plan->bytes_partitions);
    ck_assert_uint_le(gap((uint64_t)file.st_size, plan->bytes_total),
                      spread + plan->bytes_partitions - stats->bytes_partitions + 5 * page);
    ck_assert_uint_eq(plan->bytes_tier, plan->bytes_upper + (stats->codes != SL_CODES_I4 ? 0
                                                             : plan->bytes_coarse        ? plan->bytes_coarse
                                                                                         : plan->bytes_codes));
    ck_assert_uint_eq(plan->bytes_layer0, plan->bytes_codes + plan->bytes_rest + plan->bytes_coarse +
                                              plan->bytes_links + plan->bytes_ids + plan->bytes_refine);
}

START_TEST(planned_as_built) {
    const struct kind *kind = &kinds[_i % KINDS];
    size_t n = _i < KINDS ? N : LARGE;
    sl_index_params params;
    indexes_params(&params, DIM, kind->metric);
    params.dtype = kind->dtype;
    params.codes = kind->codes;
    params.refine = kind->refine;
    params.m = kind->m;
    params.ef_construction = 16;
    sl_plan plan = {.struct_size = sizeof plan};
    ck_ok(sl_index_plan(&params, n, &plan));
    ck_assert_uint_eq(plan.n, n);

    float *x = clusters_make(n, DIM, 0.3, 7);
    void *rows = clusters_as(kind->dtype, x, n * DIM);
    sl_index *index = indexes_make(&params, rows, kind->dtype, n, NULL, 1);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_stats stats = indexes_stats(index);
    check_file(&plan, &stats);

    sl_save_params save;
    sl_save_params_init(&save);
    save.room = n;
    ck_ok(sl_index_save(index, place.path, &save));
    struct stat file;
    ck_assert_int_eq(stat(place.path, &file), 0);
    ck_assert_uint_le(gap((uint64_t)file.st_size, plan.bytes_with_room),
                      plan.bytes_partitions ? plan.bytes_partitions - stats.bytes_partitions + 4096 : 0);
    sl_index_free(index);
    free(rows);
    free(x);
}
END_TEST

START_TEST(planned_large) {
    sl_index_params params;
    sl_plan plan = {.struct_size = sizeof plan};
    sl_index_params_init(&params);
    params.dim = 100;
    ck_ok(sl_index_plan(&params, 4000000000U, &plan));
    ck_assert_uint_eq(plan.bytes_codes % 4000000000U, 0);
    ck_assert_uint_ge(plan.bytes_codes, 4000000000U * 100ULL);
    ck_assert_uint_eq(plan.bytes_links, 4000000000U * 32ULL * 4);
    ck_assert_uint_eq(plan.bytes_ids, 4000000000U * 4ULL);
    ck_assert_uint_gt(plan.bytes_total, plan.bytes_layer0 + plan.bytes_upper);
    /* The deviation grows with the root alone. */
    ck_assert_uint_lt(plan.bytes_upper_deviation, plan.bytes_upper / 1000);
    ck_assert_uint_ge(plan.bytes_with_room, plan.bytes_total + 4000000000U * 4ULL);
    params.dim = SL_MAX_DIM;
    params.codes = SL_CODES_F32;
    ck_ok(sl_index_plan(&params, SL_MAX_VECTORS, &plan));
    ck_assert_uint_ge(plan.bytes_codes, (uint64_t)SL_MAX_VECTORS * SL_MAX_DIM * 4);
    ck_ok(sl_index_plan(&params, 0, &plan));
    ck_assert_uint_eq(plan.bytes_layer0 + plan.bytes_upper, 0);
}
END_TEST

START_TEST(what_cannot_be_planned) {
    sl_index_params params;
    sl_plan plan = {.struct_size = sizeof plan};
    sl_index_params_init(&params);
    ck_fails(sl_index_plan(&params, 10, &plan), SL_EINVAL, "dim");
    ck_fails(sl_index_plan(NULL, 10, &plan), SL_EINVAL, "dim");
    params.dim = DIM;
    ck_fails(sl_index_plan(&params, (uint64_t)SL_MAX_VECTORS + 1, &plan), SL_ELIMIT, "4294901761 vectors");
    ck_fails(sl_index_plan(&params, 10, NULL), SL_EINVAL, "sl_plan");
    params.refine = SL_REFINE_F32;
    params.codes = SL_CODES_F32;
    ck_fails(sl_index_plan(&params, 10, &plan), SL_EINVAL, "refine");
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("pages"), tcase_create("storage"), tcase_create("plan")};
    for (size_t i = 0; i < 3; i++)
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
    tcase_add_test(cases[0], pages_that_were_touched);
    tcase_add_test(cases[0], huge_pages_are_told);
    tcase_add_test(cases[1], in_memory);
    tcase_add_loop_test(cases[1], read_ahead, 0, 2);
    tcase_add_test(cases[1], written_in_place);
    tcase_add_test(cases[1], recoveries_are_counted);
    tcase_set_timeout(cases[2], 500);
    tcase_add_loop_test(cases[2], planned_as_built, 0, 2 * KINDS);
    tcase_add_test(cases[2], planned_large);
    tcase_add_test(cases[2], what_cannot_be_planned);
    return check_main("stored", cases, 3);
}
