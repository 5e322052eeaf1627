/* The DRAM copy of a mapped index. Searches find the same before the copy is whole, while it is filled and after. With
 * a whole copy, searches read nothing that the copy holds from the file. The tests also check which indexes have a
 * copy, and ending it at any time. The thread that fills it is held at chosen places by a medium that is told of each
 * piece before it is read. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/pages.h"
#include "hnsw/place/dram_copy.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1200, LARGE = 4500, SHORT = 20, LONG = 200, K = 10, EF = 50, QUERIES = 60, THREADS = 3, ALL = 1000000 };

/* ---------------------------------------------------------------------------------------------------------------
 * What is put in the way of the library
 * ------------------------------------------------------------------------------------------------------------- */

int __real_sl_pmem_is_dax(int fd);
int __wrap_sl_pmem_is_dax(int fd);
uint64_t __real_sl_system_memory(void);
uint64_t __wrap_sl_system_memory(void);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *ctx);

static int is_dax, no_threads;
static uint64_t memory; /* 0: what there is */

int __wrap_sl_pmem_is_dax(int fd) {
    return is_dax || __real_sl_pmem_is_dax(fd);
}

uint64_t __wrap_sl_system_memory(void) {
    return memory ? memory : __real_sl_system_memory();
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *ctx) {
    return no_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, ctx);
}

static int allowed, pieces; /* atomic: pieces that may be read, and that have been asked for */
static sigset_t filler_mask;
static sl_medium paced;

static void paced_soon(const void *at, uint64_t size) {
    (void)at;
    (void)size;
    pthread_sigmask(SIG_BLOCK, NULL, &filler_mask);
    int piece = __atomic_add_fetch(&pieces, 1, __ATOMIC_ACQ_REL);
    while (piece > __atomic_load_n(&allowed, __ATOMIC_ACQUIRE))
        usleep(50);
}

static void allow(int count) {
    __atomic_store_n(&allowed, count, __ATOMIC_RELEASE);
}

static void await_piece(int piece) {
    while (__atomic_load_n(&pieces, __ATOMIC_ACQUIRE) < piece)
        usleep(50);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Indexes
 * ------------------------------------------------------------------------------------------------------------- */

static const struct kind {
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    size_t dim;
} kinds[] = {{SL_F32, SL_CODES_I8, SL_REFINE_NONE, SHORT},  {SL_F32, SL_CODES_I16, SL_REFINE_BF16, SHORT},
             {SL_F32, SL_CODES_F32, SL_REFINE_NONE, SHORT}, {SL_F32, SL_CODES_I4, SL_REFINE_NONE, SHORT},
             {SL_F32, SL_CODES_I4, SL_REFINE_F32, SHORT},   {SL_F32, SL_CODES_I4, SL_REFINE_NONE, LONG},
             {SL_U8, SL_CODES_I4, SL_REFINE_NONE, SHORT},   {SL_I16, SL_CODES_I4, SL_REFINE_NONE, SHORT}};
enum { KINDS = sizeof kinds / sizeof *kinds, METRICS = 3, OWN4 = 3, COARSE4 = 6 };

static scratch place;
static char *vectors; /* the index's, and behind them QUERIES */
static const struct kind *made;
static size_t made_n;
static char logged[512];

static void keep_log(void *ctx, sl_log_level level, const char *message) {
    (void)ctx;
    ck_assert_int_eq(level, SL_LOG_WARN);
    strncpy(logged, message, sizeof logged - 1);
}

static void set_up(void) {
    scratch_open(&place);
    is_dax = no_threads = 0;
    memory = 0;
    allow(ALL);
    pieces = 0;
    logged[0] = '\0';
}

static void tear_down(void) {
    free(vectors);
    vectors = NULL;
    scratch_close(&place);
}

/* A file of an index of this kind in which every second vector, or all but a few, are deleted where that is asked. */
enum { NOTHING, HALF, MOST };
static void save_index(const struct kind *kind, sl_metric metric, size_t n, int deleted, size_t room) {
    sl_index_params params;
    sl_save_params save;
    float *x = clusters_make(n + QUERIES, kind->dim, 0.3, 5);
    free(vectors);
    vectors = clusters_as(kind->dtype, x, (n + QUERIES) * kind->dim);
    free(x);
    made = kind;
    made_n = n;
    indexes_params(&params, kind->dim, metric);
    params.dtype = kind->dtype;
    params.codes = kind->codes;
    params.refine = kind->refine;
    params.ef_construction = 30;
    sl_index *index = indexes_make(&params, vectors, kind->dtype, n, NULL, 1);
    static uint64_t gone[LARGE];
    size_t count = 0;
    for (uint64_t id = 0; id < n && deleted != NOTHING; id++)
        if (deleted == HALF ? id % 2 : id % 64) gone[count++] = id;
    ck_ok(sl_index_delete(index, gone, count));
    indexes_save_params(&save);
    save.room = room;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
}

static const void *queries(void) {
    return vectors + made_n * made->dim * sl_dtype_size(made->dtype);
}

static sl_open_params opening(sl_tier tier) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.tier = tier;
    params.log = keep_log;
    return params;
}

static sl_index *opened(const sl_open_params *params) {
    sl_index *index;
    ck_ok(sl_index_open(place.path, params, &index));
    return index;
}

static sl_index *opened_with(sl_tier tier) {
    sl_open_params params = opening(tier);
    return opened(&params);
}

/* Opens without a DRAM copy, then fills one by as many pieces as are allowed. */
static sl_index *opened_paced(const sl_allocator *allocator) {
    sl_open_params params = opening(SL_TIER_NONE);
    params.allocator = allocator;
    sl_index *index = opened(&params);
    paced = *index->store->medium;
    paced.advise_soon = paced_soon;
    index->store->medium = &paced;
    sl_dram_copy_start(index, SL_TIER_DRAM);
    return index;
}

static sl_tier_state state_of(const sl_index *index) {
    uint64_t bytes;
    return sl_dram_copy_state(index, &bytes);
}

typedef struct answers {
    uint64_t ids[QUERIES * K];
    float scores[QUERIES * K];
    sl_search_stats stats;
} answers;

static answers ask(const sl_index *index, size_t probes) {
    answers out;
    sl_search_params params;
    memset(&out, 0, sizeof out);
    sl_search_params_init(&params);
    params.ef = EF;
    params.probes = probes;
    ck_ok(sl_index_search(index, queries(), made->dtype, QUERIES, 0, K, &params, out.ids, out.scores, &out.stats));
    return out;
}

static void same(const answers *a, const answers *b) {
    ck_assert_mem_eq(a->ids, b->ids, sizeof a->ids);
    ck_assert_mem_eq(a->scores, b->scores, sizeof a->scores);
    ck_assert_uint_eq(a->stats.evaluations, b->stats.evaluations);
    ck_assert_uint_eq(a->stats.expansions, b->stats.expansions);
}

static answers answers_without(size_t probes) {
    sl_index *index = opened_with(SL_TIER_NONE);
    ck_assert_int_eq(indexes_storage(index).tier, SL_TIER_STATE_NONE);
    ck_assert_uint_eq(indexes_storage(index).bytes_tier, 0);
    answers out = ask(index, probes);
    sl_index_free(index);
    return out;
}

/* ---------------------------------------------------------------------------------------------------------------
 * What searches find, and where
 * ------------------------------------------------------------------------------------------------------------- */

/* From here on reading a section of the mapped file ends the process. */
static void close_section(const sl_index *index, uint32_t kind) {
    const sl_file_section *section = sl_store_section(index->store, kind);
    if (!section) return;
    void *at = sl_store_data(index->store, section);
    ck_assert_uint_eq((uintptr_t)at % SL_SECTION_ALIGN, 0);
    ck_assert_int_eq(mprotect(at, sl_round_up((size_t)section->size, SL_SECTION_ALIGN), PROT_NONE), 0);
}

static void close_what_is_copied(const sl_index *index) {
    close_section(index, SL_SECTION_UPPER_NODES);
    close_section(index, SL_SECTION_UPPER_START);
    close_section(index, SL_SECTION_UPPER_LINKS);
    if (made->codes == SL_CODES_I4)
        close_section(index, sl_has(&index->graph, SL_ARRAY_COARSE) ? SL_SECTION_COARSE : SL_SECTION_CODES);
}

static uint64_t bytes_copied(const sl_index *index) {
    const sl_file_section *rows =
        sl_store_section(index->store, sl_has(&index->graph, SL_ARRAY_COARSE) ? SL_SECTION_COARSE : SL_SECTION_CODES);
    return indexes_stats(index).bytes_upper + (made->codes == SL_CODES_I4 ? rows->size : 0);
}

START_TEST(answers_come_from_the_tier_and_are_the_same) {
    const struct kind *kind = &kinds[_i % KINDS];
    save_index(kind, (sl_metric)(_i / KINDS % METRICS), N, _i / KINDS / METRICS, 0);
    answers plain = answers_without(0);
    sl_index *index = opened_with(SL_TIER_DRAM);
    answers any = ask(index, 0);
    same(&any, &plain);
    indexes_await_tier(index);
    sl_index_storage storage = indexes_storage(index);
    ck_assert_int_eq(storage.tier, SL_TIER_STATE_FILLED);
    ck_assert_uint_eq(storage.bytes_tier, bytes_copied(index));
    close_what_is_copied(index);
    answers tiered = ask(index, 0);
    same(&tiered, &plain);
    sl_index_free(index);
    ck_assert_str_eq(logged, "");
}
END_TEST

START_TEST(scans_of_partitions_too) {
    save_index(&kinds[_i ? COARSE4 : OWN4], SL_METRIC_L2, LARGE, NOTHING, 0);
    answers plain = answers_without(3);
    sl_index *index = opened_with(SL_TIER_DRAM);
    ck_assert_uint_gt(index->graph.partitions.count, 0);
    indexes_await_tier(index);
    close_what_is_copied(index);
    answers tiered = ask(index, 3);
    same(&tiered, &plain);
    sl_index_free(index);
}
END_TEST

typedef struct asker {
    const sl_index *index;
    const answers *wanted;
    const int *finish;
} asker;

/* A search by one searcher, over and over. Returns NULL where all was well. */
static void *ask_on(void *ctx) {
    const asker *asker = ctx;
    sl_searcher *searcher;
    sl_search_params params;
    const char *fault = NULL;
    size_t row = made->dim * sl_dtype_size(made->dtype);
    sl_search_params_init(&params);
    params.ef = EF;
    if (sl_searcher_create(asker->index, EF, &searcher) != SL_OK) return "a searcher could not be made";
    for (int last = 0; !last && !fault;) {
        last = __atomic_load_n(asker->finish, __ATOMIC_ACQUIRE);
        for (size_t i = 0; i < QUERIES && !fault; i++) {
            uint64_t ids[K];
            float scores[K];
            if (sl_searcher_search(searcher, (const char *)queries() + i * row, made->dtype, K, &params, ids, scores,
                                   NULL) != SL_OK)
                fault = "a search failed";
            else if (memcmp(ids, asker->wanted->ids + i * K, sizeof ids) != 0 ||
                     memcmp(scores, asker->wanted->scores + i * K, sizeof scores) != 0)
                fault = "a search beside the filling found something else";
        }
    }
    sl_searcher_free(searcher);
    return (void *)(uintptr_t)fault;
}

START_TEST(searches_go_on_while_it_is_filled) {
    enum { ROUNDS = 15 };
    save_index(&kinds[(const int[]){0, OWN4, COARSE4}[_i]], SL_METRIC_COSINE, N, NOTHING, 0);
    answers plain = answers_without(0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        int finish = 0;
        pieces = 0;
        allow(0);
        asker asker = {opened_paced(NULL), &plain, &finish};
        for (size_t t = 0; t < THREADS; t++)
            ck_assert_int_eq(pthread_create(&threads[t], NULL, ask_on, &asker), 0);
        for (int piece = 1; state_of(asker.index) == SL_TIER_STATE_FILLING; piece++) {
            ck_assert_int_le(piece, 10000);
            usleep(500);
            allow(piece);
        }
        ck_assert_int_eq(state_of(asker.index), SL_TIER_STATE_FILLED);
        __atomic_store_n(&finish, 1, __ATOMIC_RELEASE);
        for (size_t t = 0; t < THREADS; t++) {
            void *fault;
            ck_assert_int_eq(pthread_join(threads[t], &fault), 0);
            ck_assert_msg(!fault, "%s", (const char *)fault);
        }
        sl_index_free((sl_index *)(uintptr_t)asker.index);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Who has one
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(it_has_words) {
    ck_assert_str_eq(sl_tier_name(SL_TIER_AUTO), "auto");
    ck_assert_str_eq(sl_tier_name(SL_TIER_NONE), "none");
    ck_assert_str_eq(sl_tier_name(SL_TIER_DRAM), "dram");
    ck_assert_str_eq(sl_tier_name((sl_tier)3), "?");
    ck_assert_str_eq(sl_tier_state_name(SL_TIER_STATE_NONE), "none");
    ck_assert_str_eq(sl_tier_state_name(SL_TIER_STATE_FILLING), "filling");
    ck_assert_str_eq(sl_tier_state_name(SL_TIER_STATE_FILLED), "filled");
    ck_assert_str_eq(sl_tier_state_name((sl_tier_state)3), "?");
}
END_TEST

/* The state of an index opened so, once nothing is under way. */
static sl_tier_state state_with(sl_place where, sl_tier tier) {
    sl_open_params params = opening(tier);
    params.place = where;
    sl_index *index = opened(&params);
    indexes_await_tier(index);
    sl_tier_state state = state_of(index);
    ck_assert_int_eq(indexes_storage(index).tier, state);
    sl_index_free(index);
    return state;
}

START_TEST(who_has_one_unasked) {
    sl_open_params params;
    sl_open_params_init(&params);
    ck_assert_int_eq(params.tier, SL_TIER_AUTO);
    save_index(&kinds[OWN4], SL_METRIC_L2, N, NOTHING, 0);
    ck_assert_int_eq(state_with(SL_PLACE_MAP, SL_TIER_AUTO), SL_TIER_STATE_NONE);
    ck_assert_int_eq(state_with(SL_PLACE_PMEM, SL_TIER_AUTO), SL_TIER_STATE_NONE);
    ck_assert_int_eq(state_with(SL_PLACE_PMEM, SL_TIER_DRAM), SL_TIER_STATE_FILLED);
    ck_assert_int_eq(state_with(SL_PLACE_DRAM, SL_TIER_DRAM), SL_TIER_STATE_NONE);
    is_dax = 1;
    ck_assert_int_eq(state_with(SL_PLACE_PMEM, SL_TIER_AUTO), SL_TIER_STATE_FILLED);
    ck_assert_int_eq(state_with(SL_PLACE_MAP, SL_TIER_AUTO), SL_TIER_STATE_FILLED);
    ck_assert_int_eq(state_with(SL_PLACE_PMEM, SL_TIER_NONE), SL_TIER_STATE_NONE);
    ck_assert_int_eq(state_with(SL_PLACE_DRAM, SL_TIER_AUTO), SL_TIER_STATE_NONE);
    ck_assert_str_eq(logged, "");
    /* Not where it might be what memory ends by, unless it is asked for. */
    sl_index *index = opened_with(SL_TIER_DRAM);
    uint64_t bytes = bytes_copied(index);
    sl_index_free(index);
    memory = 2 * bytes;
    ck_assert_int_eq(state_with(SL_PLACE_PMEM, SL_TIER_AUTO), SL_TIER_STATE_FILLED);
    memory = 2 * bytes - 1;
    ck_assert_int_eq(state_with(SL_PLACE_PMEM, SL_TIER_AUTO), SL_TIER_STATE_NONE);
    ck_assert_ptr_nonnull(strstr(logged, "no tier in DRAM"));
    ck_assert_ptr_nonnull(strstr(logged, "ask for it by tier dram"));
    ck_assert_int_eq(state_with(SL_PLACE_PMEM, SL_TIER_DRAM), SL_TIER_STATE_FILLED);
}
END_TEST

/* Nothing stands above layer 0. */
START_TEST(where_there_is_nothing_to_copy) {
    save_index(&kinds[0], SL_METRIC_L2, 1, NOTHING, 0);
    ck_assert_int_eq(state_with(SL_PLACE_MAP, SL_TIER_DRAM), SL_TIER_STATE_NONE);
    save_index(&kinds[OWN4], SL_METRIC_L2, 1, NOTHING, 0);
    answers plain = answers_without(0);
    sl_index *index = opened_with(SL_TIER_DRAM);
    indexes_await_tier(index);
    ck_assert_int_eq(state_of(index), SL_TIER_STATE_FILLED);
    answers tiered = ask(index, 0);
    same(&tiered, &plain);
    sl_index_free(index);
    save_index(&kinds[OWN4], SL_METRIC_L2, 0, NOTHING, 0);
    ck_assert_int_eq(state_with(SL_PLACE_MAP, SL_TIER_DRAM), SL_TIER_STATE_NONE);
}
END_TEST

START_TEST(files_with_room_have_none) {
    sl_index *index;
    save_index(&kinds[OWN4], SL_METRIC_L2, N, NOTHING, 2 * N);
    sl_open_params params = opening(SL_TIER_DRAM);
    for (int writable = 0; writable < 2; writable++)
        for (int where = SL_PLACE_MAP; where <= SL_PLACE_PMEM; where++) {
            params.writable = writable;
            params.place = (sl_place)where;
            ck_fails(sl_index_open(place.path, &params, &index), SL_EUNSUPPORTED, "tier none, or save it without room");
            ck_assert_ptr_null(index);
        }
    is_dax = 1;
    params.tier = SL_TIER_AUTO;
    for (int writable = 0; writable < 2; writable++) {
        params.writable = writable;
        index = opened(&params);
        ck_assert_int_eq(indexes_storage(index).tier, SL_TIER_STATE_NONE);
        sl_index_free(index);
    }
    ck_assert_int_eq(state_with(SL_PLACE_DRAM, SL_TIER_DRAM), SL_TIER_STATE_NONE);
    ck_assert_str_eq(logged, "");
    params = opening((sl_tier)3);
    ck_fails(sl_index_open(place.path, &params, &index), SL_EINVAL, "tier 3 is unknown");
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory, threads, processes
 * ------------------------------------------------------------------------------------------------------------- */

/* Pages of its own for each block, and a word of who asks. */
typedef struct own_pages {
    pthread_t opener;
    sl_span largest;
} own_pages;

static void *pages_alloc(void *ctx, size_t size, size_t alignment) {
    own_pages *pages = ctx;
    ck_assert(pthread_equal(pthread_self(), pages->opener));
    ck_assert_uint_le(alignment, (size_t)sysconf(_SC_PAGESIZE));
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return NULL;
    (void)madvise(block, size, MADV_NOHUGEPAGE);
    if (size > pages->largest.size) pages->largest = (sl_span){block, size};
    return block;
}

static void pages_free(void *ctx, void *block, size_t size) {
    (void)ctx;
    munmap(block, size);
}

static uint64_t resident(sl_span span) {
    sl_pages pages;
    ck_assert(sl_pages_count(&span, 1, &pages));
    return pages.resident;
}

START_TEST(opening_takes_memory_and_touches_none) {
    own_pages own = {.opener = pthread_self()};
    const sl_allocator allocator = {&own, pages_alloc, pages_free};
    sigset_t before, after;
    save_index(&kinds[OWN4], SL_METRIC_L2, N, NOTHING, 0);
    allow(0);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    sl_index *index = opened_paced(&allocator);
    await_piece(1);
    ck_assert_uint_ge(own.largest.size, N * sl_codec_of_walks(&index->graph)->rows.pitch);
    ck_assert_uint_eq(resident(own.largest), 0);
    sl_index_storage storage = indexes_storage(index);
    ck_assert_int_eq(storage.tier, SL_TIER_STATE_FILLING);
    ck_assert_uint_eq(storage.bytes_tier, 0);
    /* Signals are the program's, but for those of a failing read. */
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int number = 1; number < 32; number++) {
        int stays = number == SIGBUS || number == SIGSEGV || number == SIGFPE || number == SIGILL;
        ck_assert_int_eq(sigismember(&after, number), sigismember(&before, number));
        if (number != SIGKILL && number != SIGSTOP) ck_assert_int_eq(sigismember(&filler_mask, number), !stays);
    }
    allow(ALL);
    indexes_await_tier(index);
    ck_assert_uint_ge(resident(own.largest), N * sl_codec_of_walks(&index->graph)->rows.pitch);
    sl_index_free(index);
}
END_TEST

/* Each block in turn is refused. */
START_TEST(without_memory_there_is_none) {
    fault_allocator faults;
    sl_status status = SL_ENOMEM;
    size_t went_without = 0;
    save_index(&kinds[_i ? COARSE4 : OWN4], SL_METRIC_L2, N, NOTHING, 0);
    answers plain = answers_without(0);
    for (size_t fail_at = 1; fail_at < 1000; fail_at++) {
        sl_index *index;
        sl_open_params params = opening(SL_TIER_DRAM);
        params.allocator = &faults.allocator;
        fault_allocator_init(&faults, fail_at);
        status = sl_index_open(place.path, &params, &index);
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        int reached = faults.calls >= fail_at;
        if (status == SL_OK && reached) {
            went_without++;
            ck_assert_int_eq(state_of(index), SL_TIER_STATE_NONE);
            ck_assert_ptr_nonnull(strstr(logged, "no tier in DRAM"));
            ck_assert_ptr_nonnull(strstr(logged, "cannot allocate"));
            answers own = ask(index, 0);
            same(&own, &plain);
        }
        sl_index_free(index);
        ck_assert_uint_eq(faults.live_blocks, 0);
        if (!reached) break;
    }
    ck_assert_int_eq(status, SL_OK);
    ck_assert_uint_eq(went_without, 3);
}
END_TEST

START_TEST(without_a_thread_there_is_none) {
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    save_index(&kinds[OWN4], SL_METRIC_L2, N, NOTHING, 0);
    answers plain = answers_without(0);
    sl_open_params params = opening(SL_TIER_DRAM);
    params.allocator = &faults.allocator;
    no_threads = 1;
    sl_index *index = opened(&params);
    ck_assert_int_eq(indexes_storage(index).tier, SL_TIER_STATE_NONE);
    ck_assert_ptr_nonnull(strstr(logged, "no thread"));
    answers own = ask(index, 0);
    same(&own, &plain);
    sl_index_free(index);
    ck_assert_uint_eq(faults.live_blocks, 0);
}
END_TEST

static void *allow_later(void *ctx) {
    usleep(100000);
    allow(ALL);
    return ctx;
}

/* Half a DRAM copy is let go without being finished. */
START_TEST(freed_while_it_is_filled) {
    pthread_t thread;
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    save_index(&kinds[OWN4], SL_METRIC_L2, N, NOTHING, 0);
    allow(1);
    sl_index *index = opened_paced(&faults.allocator);
    await_piece(2);
    ck_assert_int_eq(state_of(index), SL_TIER_STATE_FILLING);
    ck_assert_uint_gt(indexes_storage(index).bytes_tier, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, allow_later, NULL), 0);
    sl_index_free(index);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(pieces, 2);
    ck_assert_uint_eq(faults.live_blocks, 0);
    /* And at moments of nobody's choosing. */
    for (int i = 0; i < 200; i++) {
        index = opened_with(SL_TIER_DRAM);
        if (i % 4) usleep((useconds_t)(i % 4 * 20));
        sl_index_free(index);
    }
}
END_TEST

static void in_child(sl_index *index, const answers *wanted, sl_tier_state state) {
    int how;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int fault = state_of(index) != state;
        answers found = ask(index, 0);
        fault |= memcmp(found.ids, wanted->ids, sizeof found.ids) != 0;
        sl_index_free(index);
        /* Past the thread sanitizer, to which a thread that its parent has to join is one that was forgotten. */
        syscall(SYS_exit_group, fault);
    }
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

START_TEST(a_child_has_what_was_whole) {
    save_index(&kinds[OWN4], SL_METRIC_L2, N, NOTHING, 0);
    answers plain = answers_without(0);
    allow(1);
    sl_index *index = opened_paced(NULL);
    await_piece(2);
    in_child(index, &plain, SL_TIER_STATE_NONE);
    ck_assert_int_eq(state_of(index), SL_TIER_STATE_FILLING);
    allow(ALL);
    indexes_await_tier(index);
    close_what_is_copied(index);
    in_child(index, &plain, SL_TIER_STATE_FILLED);
    answers found = ask(index, 0);
    same(&found, &plain);
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("answers"), tcase_create("asked"), tcase_create("threads")};
    for (size_t i = 0; i < 3; i++)
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
    tcase_add_loop_test(cases[0], answers_come_from_the_tier_and_are_the_same, 0, KINDS * METRICS * (MOST + 1));
    tcase_add_loop_test(cases[0], scans_of_partitions_too, 0, 2);
    tcase_add_test(cases[1], it_has_words);
    tcase_add_test(cases[1], who_has_one_unasked);
    tcase_add_test(cases[1], where_there_is_nothing_to_copy);
    tcase_add_test(cases[1], files_with_room_have_none);
    tcase_add_loop_test(cases[2], searches_go_on_while_it_is_filled, 0, 3);
    tcase_add_test(cases[2], opening_takes_memory_and_touches_none);
    tcase_add_loop_test(cases[2], without_memory_there_is_none, 0, 2);
    tcase_add_test(cases[2], without_a_thread_there_is_none);
    tcase_add_test(cases[2], freed_while_it_is_filled);
    tcase_add_test(cases[2], a_child_has_what_was_whole);
    return check_main("tier", cases, 3);
}
