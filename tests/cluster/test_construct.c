/* An index that ranks build together: the bytes of the index that one process builds; failures of one rank; notes. */
#include "cluster/construct/shared_index.h"
#include "hnsw/graph/index.h"
#include "tests/cluster/ranks_main.h"
#include "tests/support/clusters.h"
#include "tests/support/scratch.h"

#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5003, DIM = 24, WORDS = 3 };

static float *x;
static scratch place; /* rank 0's folder, by its name on all ranks */
static sl_rank_share shared;
static sl_index *built; /* what the ranks build now */
static sl_work_counts counts;

static void set_up(void) {
    x = clusters_make(N, DIM, 1.5, 7);
    if (all_ranks.rank == 0) scratch_open(&place);
    rank_assert_ok(sl_comm_broadcast(&all_ranks, &place, sizeof place, 0));
}

static void tear_down(void) {
    free(x);
    rank_assert_ok(sl_comm_barrier(&all_ranks));
    if (all_ranks.rank == 0) scratch_close(&place);
}

/* An index to build. */
typedef struct kind {
    sl_metric metric;
    sl_codes codes;
    sl_refine refine;
    sl_layout layout;
    enum { SPREAD, APART, ALIKE, CLOSE } data;
    size_t n, threads;
} kind;

static const kind kinds[] = {
    {SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, SL_LAYOUT_ARRAYS, SPREAD, N, 1},
    {SL_METRIC_IP, SL_CODES_I8, SL_REFINE_F32, SL_LAYOUT_RECORDS, SPREAD, N, 2},
    {SL_METRIC_L2, SL_CODES_I16, SL_REFINE_NONE, SL_LAYOUT_ARRAYS, SPREAD, N, 1},
    {SL_METRIC_COSINE, SL_CODES_I4, SL_REFINE_NONE, SL_LAYOUT_ARRAYS, SPREAD, N, 1},
    {SL_METRIC_L2, SL_CODES_F32, SL_REFINE_NONE, SL_LAYOUT_ARRAYS, SPREAD, N, 1},
    {SL_METRIC_IP, SL_CODES_I16, SL_REFINE_BF16, SL_LAYOUT_ARRAYS, APART, N, 1},
    {SL_METRIC_L2, SL_CODES_I8, SL_REFINE_I16, SL_LAYOUT_ARRAYS, APART, N, 2},
    {SL_METRIC_L2, SL_CODES_I8, SL_REFINE_NONE, SL_LAYOUT_RECORDS, ALIKE, N, 1},
    {SL_METRIC_L2, SL_CODES_I16, SL_REFINE_F32, SL_LAYOUT_ARRAYS, CLOSE, N, 1},
    {SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, SL_LAYOUT_ARRAYS, SPREAD, 4096, 1},
};

/* Makes the kind's vectors: all over the place; in clusters far apart, which samples must join; nine of ten alike; or a
 * few in a cluster that bytes don't tell apart, so that the build begins again in floats. */
static void make_vectors(const kind *kind) {
    float *centres = clusters_make(60, DIM, 0, 11);
    for (size_t i = 0; i < (size_t)N * DIM; i++) {
        const float noise = (float)(sl_random_unit(13, i) - 0.5);
        if (kind->data == APART) x[i] = centres[i / DIM % 60 * DIM + i % DIM] * 50 + noise / 4;
        if (kind->data == ALIKE && i / DIM % 10) x[i] = x[i % DIM + DIM];
        if (kind->data == CLOSE && i / DIM % 20 == 3) x[i] = 100 + noise / 50;
    }
    free(centres);
}

static sl_status create_index(const kind *kind, const sl_allocator *allocator, const char *work, sl_index **out) {
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = DIM;
    params.metric = kind->metric;
    params.codes = kind->codes;
    params.refine = kind->refine;
    params.tags = params.keys = kind->data == APART;
    params.work_path = work;
    params.allocator = allocator;
    return sl_index_create(&params, out);
}

static sl_status add_vectors(const kind *kind, sl_index *index) {
    static uint64_t words[WORDS][N];
    sl_add_params params;
    sl_add_params_init(&params);
    params.builder = SL_BUILDER_LEAVES;
    params.threads = kind->threads;
    for (size_t i = 0; i < N; i++)
        for (size_t w = 0; w < WORDS; w++)
            words[w][i] = w ? sl_random_at(w, i) : 7 * i + 1;
    if (kind->data == APART) {
        params.tags = words[1];
        params.keys = words[2];
    }
    return sl_index_add(index, x, SL_F32, kind->n, 0, kind->data == APART ? words[0] : NULL, &params);
}

static sl_status save(const kind *kind, sl_index *index, const char *path, const sl_file_ops *ops) {
    sl_save_params params;
    sl_save_params_init(&params);
    params.layout = kind->layout;
    params.file_ops = ops;
    return sl_index_save(index, path, &params);
}

/* What a rank builds with. */
typedef struct building {
    const sl_allocator *allocator;
    const sl_file_ops *ops;
    int (*stops)(void);
    int is_noted; /* work files beside place.path */
} building;

/* Builds place.path by all ranks. Every rank gets the same status. */
static sl_status build_shared(const kind *kind, building with) {
    char *work = with.is_noted ? sl_rank_work_path(place.path, all_ranks.rank) : NULL;
    built = NULL;
    counts = (sl_work_counts){0, 0};
    sl_rank_share_init(&shared, &all_ranks, with.stops);
    sl_status status = create_index(kind, with.allocator, work, &built);
    if (status == SL_OK) {
        rank_assert(sl_shared_index_can_add(built, SL_BUILDER_LEAVES, kind->n));
        sl_shared_index_begin(built, &shared, 1);
        if (with.is_noted) status = sl_shared_index_resume(built, place.path, &all_ranks);
        if (status == SL_OK) status = add_vectors(kind, built);
        if (status == SL_OK) status = save(kind, built, place.path, with.ops);
    }
    status = sl_rank_share_end(&shared, status);
    if (built) counts = sl_shared_index_counts(built);
    sl_index_free(built);
    free(work);
    return status;
}

/* Builds the same index in this process alone, at another path. */
static void build_alone(const kind *kind, const char *path) {
    sl_index *index;
    rank_assert_ok(create_index(kind, NULL, NULL, &index));
    rank_assert_ok(add_vectors(kind, index));
    rank_assert_ok(save(kind, index, path, NULL));
    sl_index_free(index);
}

static int same_files(const char *a, const char *b) {
    size_t sizes[2];
    unsigned char *bytes[] = {file_read(a, &sizes[0]), file_read(b, &sizes[1])};
    const int same = sizes[0] == sizes[1] && memcmp(bytes[0], bytes[1], sizes[0]) == 0;
    free(bytes[0]);
    free(bytes[1]);
    return same;
}

/* Compares place.path with the file of an index that rank 0 builds alone. */
static void check_same(const kind *kind) {
    char alone[SCRATCH_PATH];
    if (all_ranks.rank == 0) {
        scratch_name(&place, "alone.sl", alone);
        build_alone(kind, alone);
        rank_assert(same_files(place.path, alone));
        rank_assert(remove(alone) == 0);
    }
}

START_TEST(gives_the_same_bytes) {
    const kind *kind = &kinds[_i];
    make_vectors(kind);
    rank_assert_ok(build_shared(kind, (building){.is_noted = 0}));
    check_same(kind);
}
END_TEST

/* ---- Failures ---- */

static size_t entries(void) {
    return all_ranks.rank == 0 ? scratch_count(&place) : 0;
}

/* The last rank has a vector that isn't finite, which it alone looks at. */
START_TEST(names_a_bad_vector) {
    x[(size_t)(N - 2) * DIM + 5] = __builtin_nanf("");
    rank_assert(build_shared(&kinds[0], (building){.is_noted = 0}) == SL_EVALUE);
    rank_assert(strstr(sl_last_error(), "row 5001"));
    char rank[32];
    snprintf(rank, sizeof rank, "rank %zu ", all_ranks.ranks - 1);
    if (all_ranks.ranks > 1) rank_assert(strncmp(sl_last_error(), rank, strlen(rank)) == 0);
    rank_assert(entries() == 0);
}
END_TEST

/* Memory that refuses block number `left`, counted from the first; 0: never. */
typedef struct refusing {
    sl_allocator from;
    size_t left, blocks;
} refusing;

static void *refusing_alloc(void *ctx, size_t size, size_t alignment) {
    refusing *r = ctx;
    if (++r->blocks == r->left) return NULL;
    return r->from.alloc(r->from.ctx, size, alignment);
}

static void refusing_free(void *ctx, void *block, size_t size) {
    refusing *r = ctx;
    r->from.free(r->from.ctx, block, size);
}

/* Wherever one rank lacks memory, all ranks end with its message, and nothing is left. */
START_TEST(ends_on_all_ranks_without_memory) {
    refusing memory = {.from = sl_allocator_of(NULL)};
    const sl_allocator allocator = {&memory, refusing_alloc, refusing_free};
    const size_t bad = all_ranks.ranks / 2;
    rank_assert_ok(build_shared(&kinds[0], (building){.allocator = &allocator}));
    uint64_t blocks = memory.blocks;
    rank_assert_ok(sl_comm_broadcast(&all_ranks, &blocks, sizeof blocks, bad));
    if (all_ranks.rank == 0) remove(place.path);
    rank_assert_ok(sl_comm_barrier(&all_ranks));
    size_t failed = 0;
    for (size_t i = 1; i <= blocks; i += 1 + blocks / 25) {
        memory.blocks = 0;
        memory.left = all_ranks.rank == bad ? i : 0;
        sl_status status = build_shared(&kinds[0], (building){.allocator = &allocator});
        rank_assert(status == SL_ENOMEM || status == SL_OK);
        uint64_t least = status, most = status;
        rank_assert_ok(sl_comm_min(&all_ranks, &least));
        rank_assert_ok(sl_comm_max(&all_ranks, &most));
        rank_assert(least == most);
        failed += status != SL_OK;
        if (status == SL_OK) check_same(&kinds[0]);
        if (status == SL_OK && all_ranks.rank == 0) remove(place.path);
        rank_assert_ok(sl_comm_barrier(&all_ranks));
        rank_assert(entries() == 0);
    }
    rank_assert(failed > 10);
}
END_TEST

static int64_t full_pwrite(void *ctx, int fd, const void *data, size_t size, uint64_t offset) {
    (void)ctx, (void)fd, (void)data, (void)size, (void)offset;
    errno = ENOSPC;
    return -1;
}

/* A device that is full for one rank leaves the old file, and no other. */
START_TEST(keeps_the_old_file_if_a_device_is_full) {
    for (size_t bad = 0; bad < all_ranks.ranks; bad++) {
        const sl_file_ops full = {.pwrite = full_pwrite};
        char rank[32];
        if (all_ranks.rank == 0) file_write(place.path, "old", 3);
        rank_assert_ok(sl_comm_barrier(&all_ranks));
        const building with = {.ops = all_ranks.rank == bad ? &full : NULL};
        rank_assert(build_shared(&kinds[0], with) == SL_ENOSPC);
        snprintf(rank, sizeof rank, "rank %zu ", bad);
        if (all_ranks.ranks > 1) rank_assert(strncmp(sl_last_error(), rank, strlen(rank)) == 0);
        rank_assert_ok(sl_comm_barrier(&all_ranks));
        if (all_ranks.rank) continue;
        size_t size;
        unsigned char *old = file_read(place.path, &size);
        rank_assert(size == 3 && entries() == 1);
        free(old);
    }
}
END_TEST

/* A rank with other rows has another index, which must not get into the file. */
START_TEST(refuses_ranks_that_differ) {
    if (all_ranks.ranks == 1) return;
    kind kind = kinds[0];
    kind.data = APART; /* with tags */
    static uint64_t tags[N];
    sl_add_params params;
    sl_index *index;
    sl_rank_share_init(&shared, &all_ranks, NULL);
    rank_assert_ok(create_index(&kind, NULL, NULL, &index));
    sl_shared_index_begin(index, &shared, 0);
    sl_add_params_init(&params);
    params.builder = SL_BUILDER_LEAVES;
    params.tags = tags;
    tags[7] = all_ranks.rank == all_ranks.ranks - 1;
    sl_status status = sl_index_add(index, x, SL_F32, N, 0, NULL, &params);
    rank_assert_ok(status);
    status = sl_rank_share_end(&shared, save(&kind, index, place.path, NULL));
    rank_assert(status == SL_ECORRUPT && strstr(sl_last_error(), "differs from that of rank 0"));
    rank_assert(entries() == 0);
    sl_index_free(index);
}
END_TEST

/* ---- Notes ---- */

static size_t asked;

/* Stops when all leaves have been compared: at the exchange of the second half of them. */
static int stops_after_leaves(void) {
    return built && sl_shared_index_counts(built).pieces && ++asked == 4;
}

static int stops_at_tenth(void) {
    return ++asked == 10;
}

static void stop_build(const kind *kind, int (*stops)(void)) {
    asked = 0;
    rank_assert(build_shared(kind, (building){.stops = stops, .is_noted = 1}) == SL_ECANCELED);
    rank_assert(strstr(sl_last_error(), "interrupted"));
}

/* Cuts this rank's notes in the middle of one, as a kill does. */
static void cut_notes(void) {
    char *path = sl_rank_work_path(place.path, all_ranks.rank);
    size_t size;
    unsigned char *notes = file_read(path, &size);
    file_write(path, notes, size / 10 * 9 + 1);
    free(notes);
    free(path);
    rank_assert_ok(sl_comm_barrier(&all_ranks));
}

/* What leaves have found stays after a build that was stopped, and the next build goes on from there. */
START_TEST(goes_on_from_notes) {
    const kind *kind = &kinds[_i];
    make_vectors(kind);
    stop_build(kind, stops_at_tenth);
    rank_assert(counts.pieces == 0);
    stop_build(kind, stops_after_leaves);
    rank_assert(counts.noted == 0 && counts.pieces > 20);
    cut_notes();
    stop_build(kind, stops_after_leaves);
    rank_assert(counts.noted > 20 && counts.noted < counts.pieces);
    rank_assert_ok(build_shared(kind, (building){.is_noted = 1}));
    rank_assert(counts.noted == counts.pieces);
    check_same(kind);
    rank_assert(entries() <= 1);
}
END_TEST

/* Gives the notes of ranks other than 0 higher numbers, as a run of more ranks leaves them. */
static void rename_notes(size_t by) {
    for (size_t r = all_ranks.ranks; all_ranks.rank == 0 && --r > 0;) {
        char *from = sl_rank_work_path(place.path, r), *to = sl_rank_work_path(place.path, r + by);
        rank_assert(rename(from, to) == 0 || errno == ENOENT);
        free(from);
        free(to);
    }
    rank_assert_ok(sl_comm_barrier(&all_ranks));
}

START_TEST(goes_on_from_notes_of_other_ranks) {
    const kind *kind = &kinds[0];
    stop_build(kind, stops_after_leaves);
    rename_notes(5 + all_ranks.ranks / 2);
    rank_assert_ok(build_shared(kind, (building){.is_noted = 1}));
    rank_assert(counts.noted == counts.pieces);
    check_same(kind);
    rank_assert(entries() <= 1);
}
END_TEST

int main(int argc, char **argv) {
    TCase *test = tcase_create("construct");
    const int count = (int)(sizeof kinds / sizeof *kinds);
    tcase_set_timeout(test, 300);
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_add_loop_test(test, gives_the_same_bytes, 0, count);
    tcase_add_test(test, names_a_bad_vector);
    tcase_add_test(test, ends_on_all_ranks_without_memory);
    tcase_add_test(test, keeps_the_old_file_if_a_device_is_full);
    tcase_add_test(test, refuses_ranks_that_differ);
    tcase_add_loop_test(test, goes_on_from_notes, 0, 2);
    tcase_add_test(test, goes_on_from_notes_of_other_ranks);
    return ranks_main(argc, argv, "construct", &test, 1);
}
