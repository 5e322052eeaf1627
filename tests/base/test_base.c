/* The base room: statuses, growing structs, checksums, memory, progress, the machine. */
#define _GNU_SOURCE
#include "base/cpu.h"
#include "base/crc32c.h"
#include "base/crew.h"
#include "base/failure.h"
#include "base/memory.h"
#include "base/params.h"
#include "base/random.h"
#include "base/system.h"
#include "base/thread.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/sanitized.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------------------------------------------
 * Statuses and names
 * ------------------------------------------------------------------------------------------------------------- */

/* Written out again on purpose, so that a changed number in the header fails. */
static const struct {
    const char *name;
    int number;
} pinned[] = {{"SL_OK", 0},         {"SL_EINVAL", 1},   {"SL_ENOMEM", 2}, {"SL_EIO", 3},       {"SL_EFORMAT", 4},
              {"SL_EVERSION", 5},   {"SL_ECORRUPT", 6}, {"SL_EEXIST", 7}, {"SL_ENOTFOUND", 8}, {"SL_EUNSUPPORTED", 9},
              {"SL_ECANCELED", 10}, {"SL_EBUSY", 11},   {"SL_EDIM", 12},  {"SL_ETYPE", 13},    {"SL_EVALUE", 14},
              {"SL_EREADONLY", 15}, {"SL_ENOSPC", 16},  {"SL_ELIMIT", 17}};

START_TEST(statuses_are_pinned) {
    size_t count = 0;
#define SL_X(name, number, text) count++;
    SL_STATUS_MAP(SL_X)
#undef SL_X
    ck_assert_uint_eq(count, sizeof pinned / sizeof *pinned);
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(sl_status_name((sl_status)pinned[i].number), pinned[i].name);
        ck_assert_uint_gt(strlen(sl_status_text((sl_status)pinned[i].number)), 0);
    }
    ck_assert_str_eq(sl_status_name((sl_status)count), "SL_?");
    ck_assert_str_eq(sl_status_name((sl_status)-1), "SL_?");
    ck_assert_str_eq(sl_status_text((sl_status)-1), "unknown status");
    ck_assert_str_eq(sl_version(), "0.1.0");
}
END_TEST

START_TEST(names_of_values) {
    ck_assert_str_eq(sl_metric_name(SL_METRIC_IP), "ip");
    ck_assert_str_eq(sl_metric_name(SL_METRIC_COSINE), "cosine");
    ck_assert_str_eq(sl_metric_name(SL_METRIC_L2), "l2");
    ck_assert_str_eq(sl_codes_name(SL_CODES_I8), "i8");
    ck_assert_str_eq(sl_codes_name(SL_CODES_I16), "i16");
    ck_assert_str_eq(sl_codes_name(SL_CODES_F32), "f32");
    ck_assert_str_eq(sl_codes_name(SL_CODES_I4), "i4");
    ck_assert_str_eq(sl_refine_name(SL_REFINE_NONE), "none");
    ck_assert_str_eq(sl_refine_name(SL_REFINE_F32), "f32");
    ck_assert_str_eq(sl_refine_name(SL_REFINE_BF16), "bf16");
    ck_assert_str_eq(sl_refine_name(SL_REFINE_I16), "i16");
    ck_assert_str_eq(sl_place_name(SL_PLACE_DRAM), "dram");
    ck_assert_str_eq(sl_place_name(SL_PLACE_MAP), "map");
    ck_assert_str_eq(sl_place_name(SL_PLACE_PMEM), "pmem");
    ck_assert_str_eq(sl_mapping_name(SL_MAPPING_MEMORY), "memory");
    ck_assert_str_eq(sl_mapping_name(SL_MAPPING_SHARED), "shared");
    ck_assert_str_eq(sl_mapping_name(SL_MAPPING_PRIVATE), "private");
    ck_assert_str_eq(sl_mapping_name(SL_MAPPING_DIRECT), "direct");
    ck_assert_str_eq(sl_mapping_name((sl_mapping)4), "?");
    ck_assert_str_eq(sl_metric_name((sl_metric)3), "?");
    ck_assert_str_eq(sl_codes_name((sl_codes)-1), "?");
    ck_assert_str_eq(sl_refine_name((sl_refine)4), "?");
    ck_assert_str_eq(sl_place_name((sl_place)1000), "?");
    ck_assert_str_eq(sl_layout_name(SL_LAYOUT_ARRAYS), "arrays");
    ck_assert_str_eq(sl_layout_name(SL_LAYOUT_RECORDS), "records");
    ck_assert_str_eq(sl_layout_name((sl_layout)1000), "?");
}
END_TEST

START_TEST(messages_keep_their_detail) {
    ck_assert_str_eq(sl_last_error(), "");
    ck_assert_int_eq(sl_fail(SL_EVALUE, "row %d", 7), SL_EVALUE);
    ck_assert_int_eq(sl_fail_in(SL_EVALUE, "%s", "base.fbin"), SL_EVALUE);
    ck_assert_str_eq(sl_last_error(), "base.fbin: row 7");
    char text[3 * SL_ERROR_SIZE];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(sl_fail(SL_EINVAL, "%s", text), SL_EINVAL);
    ck_assert_uint_eq(strlen(sl_last_error()), SL_ERROR_SIZE - 1);
    ck_assert_int_eq(sl_fail_in(SL_EINVAL, "file"), SL_EINVAL);
    ck_assert_int_eq(strncmp(sl_last_error(), "file: xxx", 9), 0);
    ck_assert_int_eq(sl_fail_in(SL_EINVAL, "%s", text), SL_EINVAL);
    ck_assert_uint_lt(strlen(sl_last_error()), SL_ERROR_SIZE);
}
END_TEST

START_TEST(errno_becomes_a_status) {
    static const struct {
        int error;
        sl_status status;
        const char *word;
    } errors[] = {{ENOSPC, SL_ENOSPC, "free space"}, {EDQUOT, SL_ENOSPC, "quota"},   {ENOMEM, SL_ENOMEM, "memory"},
                  {ENOENT, SL_EIO, "path"},          {EACCES, SL_EIO, "permission"}, {EIO, SL_EIO, "device"}};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        errno = errors[i].error;
        ck_assert_int_eq(sl_fail_errno("cannot write to", "a/file"), errors[i].status);
        ck_assert_int_eq(strncmp(sl_last_error(), "cannot write to a/file: ", 24), 0);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), strerror(errors[i].error)));
        ck_assert_ptr_nonnull(strstr(sl_last_error(), errors[i].word));
    }
}
END_TEST

static void *fail_elsewhere(void *unused) {
    (void)sl_fail(SL_EIO, "elsewhere");
    return unused;
}

START_TEST(messages_belong_to_a_thread) {
    pthread_t other;
    (void)sl_fail(SL_EIO, "here");
    ck_assert_int_eq(pthread_create(&other, NULL, fail_elsewhere, NULL), 0);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    ck_assert_str_eq(sl_last_error(), "here");
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Growing structs
 * ------------------------------------------------------------------------------------------------------------- */

/* The struct as three releases of the library might have had it. */
typedef struct first_release {
    size_t struct_size;
    size_t a;
} first_release;
typedef struct second_release {
    size_t struct_size;
    size_t a, b;
} second_release;
typedef struct third_release {
    size_t struct_size;
    size_t a, b, c;
} third_release;

static const second_release defaults = {sizeof(second_release), 10, 20};

START_TEST(parameters_of_other_releases) {
    second_release mine = defaults;
    ck_assert_int_eq(sl_params_in(&mine, sizeof mine, NULL, "init"), SL_OK);
    ck_assert_uint_eq(mine.b, 20);
    first_release older = {sizeof older, 1};
    ck_assert_int_eq(sl_params_in(&mine, sizeof mine, &older, "init"), SL_OK);
    ck_assert_uint_eq(mine.struct_size, sizeof mine);
    ck_assert_uint_eq(mine.a, 1);
    ck_assert_uint_eq(mine.b, 20);
    second_release same = {sizeof same, 2, 3};
    ck_assert_int_eq(sl_params_in(&mine, sizeof mine, &same, "init"), SL_OK);
    ck_assert_uint_eq(mine.b, 3);
    third_release newer = {sizeof newer, 4, 5, 0};
    ck_assert_int_eq(sl_params_in(&mine, sizeof mine, &newer, "init"), SL_OK);
    ck_assert_uint_eq(mine.struct_size, sizeof mine);
    ck_assert_uint_eq(mine.b, 5);
    newer.c = 1;
    ck_assert_int_eq(sl_params_in(&mine, sizeof mine, &newer, "init"), SL_EUNSUPPORTED);
}
END_TEST

START_TEST(parameters_nobody_filled) {
    second_release mine = defaults, given = {0, 2, 3};
    size_t sizes[] = {0, 1, sizeof(size_t), SIZE_MAX, 1u << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        given.struct_size = sizes[i];
        ck_assert_int_eq(sl_params_in(&mine, sizeof mine, &given, "sl_thing_init"), SL_EINVAL);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "call sl_thing_init first"));
        ck_assert_uint_eq(mine.a, 10);
        ck_assert_int_eq(sl_params_check_out(&given, "sl_thing"), SL_EINVAL);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "sizeof(sl_thing)"));
    }
    ck_assert_int_eq(sl_params_check_out(NULL, "sl_thing"), SL_EINVAL);
}
END_TEST

START_TEST(results_for_other_releases) {
    second_release mine = {0, 7, 8};
    third_release out = {sizeof(first_release), 1, 2, 3};
    ck_assert_int_eq(sl_params_check_out(&out, "sl_thing"), SL_OK);
    sl_params_out(&out, &mine, sizeof mine);
    ck_assert_uint_eq(out.struct_size, sizeof(first_release));
    ck_assert_uint_eq(out.a, 7);
    ck_assert_uint_eq(out.b, 2);
    out = (third_release){sizeof out, 1, 2, 3};
    sl_params_out(&out, &mine, sizeof mine);
    ck_assert_uint_eq(out.struct_size, sizeof out);
    ck_assert_uint_eq(out.b, 8);
    ck_assert_uint_eq(out.c, 0);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * CRC-32C
 * ------------------------------------------------------------------------------------------------------------- */

/* Computes the CRC bit by bit, from the definition. */
static uint32_t crc_by_definition(const unsigned char *data, size_t size) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* RFC 3720, appendix B.4, and the check value of the polynomial. */
START_TEST(crc_of_known_texts) {
    unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
    memset(ones, 0xff, sizeof ones);
    for (unsigned char i = 0; i < 32; i++) {
        up[i] = i;
        down[i] = (unsigned char)(31 - i);
    }
    uint32_t (*const functions[])(uint32_t, const void *, size_t) = {sl_crc32c, sl_crc32c_portable};
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(functions[i](0, "123456789", 9), 0xe3069283u);
        ck_assert_uint_eq(functions[i](0, zeros, 32), 0x8a9136aau);
        ck_assert_uint_eq(functions[i](0, ones, 32), 0x62a8ab43u);
        ck_assert_uint_eq(functions[i](0, up, 32), 0x46dd794eu);
        ck_assert_uint_eq(functions[i](0, down, 32), 0x113fdb5cu);
        ck_assert_uint_eq(functions[i](0, NULL, 0), 0);
        ck_assert_uint_eq(functions[i](5, NULL, 0), 5);
    }
}
END_TEST

#define CRC_LARGE ((size_t)3 << 20)

static unsigned char *random_bytes(size_t size) {
    unsigned char *data = malloc(size);
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)sl_random_at(3, i);
    return data;
}

START_TEST(crc_of_every_short_length) {
    unsigned char *data = random_bytes(512);
    for (size_t size = 0; size <= 300; size++) {
        for (size_t offset = 0; offset < 16; offset++) {
            uint32_t wanted = crc_by_definition(data + offset, size);
            ck_assert_uint_eq(sl_crc32c_portable(0, data + offset, size), wanted);
            ck_assert_uint_eq(sl_crc32c(0, data + offset, size), wanted);
        }
    }
    free(data);
}
END_TEST

/* Sizes around multiples of what the interleaved streams take at once, and every cut of the data in two. */
START_TEST(crc_of_large_blocks) {
    unsigned char *data = random_bytes(CRC_LARGE);
    for (size_t blocks = 1; blocks <= 4; blocks++)
        for (size_t size = blocks * 24576 - 9; size <= blocks * 24576 + 9; size++)
            ck_assert_uint_eq(sl_crc32c(9, data + blocks, size), sl_crc32c_portable(9, data + blocks, size));
    uint32_t whole = crc_by_definition(data, CRC_LARGE);
    ck_assert_uint_eq(sl_crc32c(0, data, CRC_LARGE), whole);
    ck_assert_uint_eq(sl_crc32c_portable(0, data, CRC_LARGE), whole);
    for (uint64_t i = 0; i < 50; i++) {
        size_t cut = (size_t)(sl_random_at(4, i) % CRC_LARGE);
        uint32_t first = sl_crc32c(0, data, cut), second = sl_crc32c(0, data + cut, CRC_LARGE - cut);
        ck_assert_uint_eq(sl_crc32c(first, data + cut, CRC_LARGE - cut), whole);
        ck_assert_uint_eq(sl_crc32c_combine(first, second, sl_crc32c_shift(CRC_LARGE - cut)), whole);
    }
    free(data);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Crews
 * ------------------------------------------------------------------------------------------------------------- */

enum { WORK = 10007 };

typedef struct crew_work {
    unsigned char times[WORK];
    size_t longest; /* atomic: WORK less the longest range */
    pthread_t caller;
    int others; /* atomic: ranges that another thread worked on */
} crew_work;

static void count_once(void *ctx, size_t from, size_t to) {
    crew_work *work = ctx;
    for (size_t i = from; i < to; i++)
        work->times[i]++;
    sl_atomic_min(&work->longest, WORK - (to - from));
    __atomic_fetch_add(&work->others, !pthread_equal(pthread_self(), work->caller), __ATOMIC_RELAXED);
}

START_TEST(crews_do_all_of_it_once) {
    const size_t grains[] = {1, 64, 5000, WORK, 2 * WORK}, counts[] = {0, 1, 64, WORK};
    for (size_t threads = 0; threads <= 9; threads++)
        for (size_t grain = 0; grain < sizeof grains / sizeof *grains; grain++)
            for (size_t count = 0; count < sizeof counts / sizeof *counts; count++) {
                static crew_work work;
                work = (crew_work){.longest = WORK, .caller = pthread_self()};
                sl_crew_run(threads, counts[count], grains[grain], count_once, &work);
                for (size_t i = 0; i < WORK; i++)
                    ck_assert_uint_eq(work.times[i], i < counts[count]);
                ck_assert_uint_ge(work.longest, grains[grain] < WORK ? WORK - grains[grain] : 0);
                if (threads == 1) ck_assert_int_eq(work.others, 0);
            }
}
END_TEST

typedef struct company {
    size_t there; /* atomic */
    size_t deaf;  /* atomic: threads that the program's signals do not reach, though those of a failing read do */
} company;

static void wait_for_company(void *ctx, size_t from, size_t to) {
    company *all = ctx;
    sigset_t blocked;
    (void)from, (void)to;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    __atomic_fetch_add(&all->deaf, sigismember(&blocked, SIGTERM) && !sigismember(&blocked, SIGBUS), __ATOMIC_RELAXED);
    __atomic_fetch_add(&all->there, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&all->there, __ATOMIC_RELAXED) < 3)
        sched_yield();
}

/* Three threads that wait for one another. With fewer at a time they would wait for ever. */
START_TEST(crews_work_at_the_same_time) {
    company all = {0};
    sl_crew_run(3, 3, 1, wait_for_company, &all);
    ck_assert_uint_eq(all.there, 3);
    ck_assert_uint_eq(all.deaf, 2);
}
END_TEST

/* Every third number fails, but none below 10. Threads reach the numbers in any order. */
static void fail_some(void *ctx, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        size_t at = (i * 7919 + 5) % WORK;
        sl_status status = at % 3 || at < 10 ? SL_OK : sl_fail(at % 2 ? SL_EIO : SL_ENOMEM, "number %zu", at);
        if (i % 2 || !sl_failure_before(ctx, at)) sl_failure_keep(ctx, at, status);
    }
}

START_TEST(failures_of_threads_are_passed_on) {
    for (size_t threads = 1; threads <= 4; threads++) {
        sl_failure failure;
        sl_failure_init(&failure);
        ck_assert_int_eq(sl_failure_pass(&failure), SL_OK);
        ck_assert(!sl_failure_before(&failure, WORK));
        sl_crew_run(threads, WORK, 64, fail_some, &failure);
        (void)sl_fail(SL_EINVAL, "here");
        ck_assert_uint_eq(failure.at, 12);
        ck_assert_int_eq(sl_failure_pass(&failure), SL_ENOMEM);
        ck_assert_str_eq(sl_last_error(), "number 12");
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

static int all_are(unsigned char value, const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value) return 0;
    return 1;
}

START_TEST(blocks_are_zeroed_aligned_and_kept) {
    sl_allocator memory = sl_allocator_of(NULL);
    size_t sizes[] = {0, 1, 63, 64, 4097, SL_HUGE_PAGE - 1, SL_HUGE_PAGE, 3 * SL_HUGE_PAGE + 5};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block;
        ck_assert_int_eq(sl_mem_alloc(&memory, sizes[i], &block), SL_OK);
        ck_assert_uint_eq((uintptr_t)block % SL_CACHE_LINE, 0);
        if (sizes[i] >= SL_HUGE_PAGE) ck_assert_uint_eq((uintptr_t)block % SL_HUGE_PAGE, 0);
        ck_assert(all_are(0, block, sizes[i]));
        memset(block, 0x5a, sizes[i]);
        ck_assert_int_eq(sl_mem_resize(&memory, &block, sizes[i], sizes[i] + 100), SL_OK);
        ck_assert(all_are(0x5a, block, sizes[i]));
        ck_assert(all_are(0, (unsigned char *)block + sizes[i], 100));
        sl_mem_free(&memory, block, sizes[i] + 100);
    }
    sl_mem_free(&memory, NULL, 10);
}
END_TEST

START_TEST(failed_allocations_change_nothing) {
    sl_allocator memory = sl_allocator_of(NULL);
    fault_allocator faults;
    void *block = &faults;
    ck_assert_int_eq(sl_mem_alloc(&memory, SIZE_MAX - 7, &block), SL_ENOMEM);
    ck_assert_ptr_null(block);
    fault_allocator_init(&faults, 2);
    ck_assert_int_eq(sl_mem_alloc(&faults.allocator, 8, &block), SL_OK);
    void *before = block;
    ck_assert_int_eq(sl_mem_resize(&faults.allocator, &block, 8, 16), SL_ENOMEM);
    ck_assert_ptr_eq(block, before);
    size_t capacity = 8;
    sl_status status = SL_OK;
    block = sl_mem_grow(&faults.allocator, block, &capacity, SIZE_MAX / 4, 8, &status);
    ck_assert_int_eq(status, SL_ENOMEM);
    ck_assert_ptr_eq(block, before);
    block = sl_mem_grow(&faults.allocator, block, &capacity, 9, 1, &status);
    ck_assert_uint_eq(capacity, 8);
    ck_assert_uint_eq(capacity, 8); /* nothing after a failure */
    status = SL_OK;
    block = sl_mem_grow(&faults.allocator, block, &capacity, 9, 1, &status);
    ck_assert_int_eq(status, SL_OK);
    ck_assert_uint_ge(capacity, 12);
    ck_assert_uint_eq(faults.live_bytes, capacity);
    sl_mem_free(&faults.allocator, block, capacity);
    ck_assert_uint_eq(faults.live_blocks, 0);
}
END_TEST

/* A forked child takes over a lock that a thread of its parent holds. Nobody else does. */
START_TEST(a_child_takes_a_lock_over) {
    static sl_spin lock;
    int status;
    sl_spin_lock_owned(&lock);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(20);
        sl_spin_lock_owned(&lock);
        sl_spin_unlock(&lock);
        sl_spin_lock_owned(&lock);
        _exit(lock.held == (int)getpid() ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(lock.held, (int)getpid());
    sl_spin_unlock(&lock);
    ck_assert_int_eq(lock.held, 0);
}
END_TEST

START_TEST(sizes_that_do_not_fit) {
    size_t out;
    ck_assert(sl_mul(SIZE_MAX, 1, &out) && out == SIZE_MAX);
    ck_assert(!sl_mul(SIZE_MAX / 2 + 1, 2, &out));
    ck_assert(sl_add(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
    ck_assert(!sl_add(SIZE_MAX, 1, &out));
    ck_assert_uint_eq(sl_round_up(0, 64), 0);
    ck_assert_uint_eq(sl_round_up(65, 64), 128);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Progress, random numbers, the machine
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct told {
    size_t times;
    uint64_t done, total;
    int answer;
} told;

static int tell(void *ctx, uint64_t done, uint64_t total) {
    told *t = ctx;
    t->times++;
    t->done = done;
    t->total = total;
    return t->answer;
}

START_TEST(progress_is_told_and_cancels) {
    told t = {0};
    sl_progress progress;
    sl_progress_start(&progress, tell, &t, 1000);
    for (int i = 0; i < 1000; i++)
        sl_progress_step(&progress, 1);
    ck_assert_uint_lt(t.times, 1000);
    ck_assert_int_eq(sl_progress_end(&progress), SL_OK);
    ck_assert_uint_eq(t.done, 1000);
    ck_assert_uint_eq(t.total, 1000);
    t = (told){.answer = 1};
    sl_progress_start(&progress, tell, &t, 1000);
    ck_assert(!sl_progress_cancelled(&progress));
    sl_progress_step(&progress, 1);
    ck_assert(sl_progress_cancelled(&progress));
    ck_assert_int_eq(sl_progress_end(&progress), SL_ECANCELED);
    ck_assert_uint_eq(t.times, 1);
    sl_progress_step(NULL, 1);
    ck_assert(!sl_progress_cancelled(NULL));
    ck_assert_int_eq(sl_progress_end(NULL), SL_OK);
    sl_progress_start(&progress, NULL, NULL, 1000);
    sl_progress_step(&progress, 1);
    ck_assert_int_eq(sl_progress_end(&progress), SL_OK);
}
END_TEST

/* SplitMix64's published first outputs for seed 1234567. Files and graphs depend on this sequence. */
START_TEST(random_numbers_are_pinned) {
    ck_assert_uint_eq(sl_random_at(1234567, 0), UINT64_C(6457827717110365317));
    ck_assert_uint_eq(sl_random_at(1234567, 1), UINT64_C(3203168211198807973));
    ck_assert_uint_eq(sl_random_at(1234567, 2), UINT64_C(9817491932198370423));
    for (uint64_t i = 0; i < 10000; i++)
        ck_assert(sl_random_unit(5, i) > 0 && sl_random_unit(5, i) <= 1);
}
END_TEST

START_TEST(the_machine_is_described) {
    sl_system machine = {0};
    ck_assert_int_eq(sl_system_query(&machine), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "sl_system"));
    ck_assert_int_eq(sl_system_query(NULL), SL_EINVAL);
    machine.struct_size = sizeof machine;
    ck_assert_int_eq(sl_system_query(&machine), SL_OK);
    ck_assert_uint_eq(machine.struct_size, sizeof machine);
    ck_assert_int_eq(machine.isa, sl_cpu_tier());
    ck_assert_uint_eq(machine.isa_available, sl_cpu_tiers());
    ck_assert(machine.isa_available >> machine.isa & 1);
    ck_assert_uint_ge(machine.numa_nodes, 1);
    ck_assert_uint_ge(machine.page_size, 4096);
    ck_assert_uint_eq(machine.memory, sl_system_memory());
    ck_assert_uint_eq(machine.max_threads, sl_thread_count(0));
    ck_assert_uint_eq(machine.most_threads, sl_thread_count(100000));
    ck_assert_uint_le(machine.most_threads, SL_MAX_THREADS);
    const char *mode = machine.huge_page_mode;
    ck_assert(!strcmp(mode, "always") || !strcmp(mode, "madvise") || !strcmp(mode, "never") || !strcmp(mode, "none"));
    ck_assert_int_eq(machine.huge_page_size == 0, !strcmp(mode, "none"));
    struct {
        size_t struct_size;
        sl_isa isa;
        unsigned isa_available;
        size_t untouched;
    } older = {offsetof(sl_system, cpus), SL_ISA_COUNT, 0, 77};
    ck_assert_int_eq(sl_system_query((sl_system *)(void *)&older), SL_OK);
    ck_assert_int_eq(older.isa, machine.isa);
    ck_assert_uint_eq(older.untouched, 77);
}
END_TEST

/* Counts CPUs that numactl or a container allows, which may be fewer than the machine's. */
START_TEST(pinned_processors_are_counted) {
    cpu_set_t all, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    sl_system machine = {.struct_size = sizeof machine};
    ck_assert_int_eq(sl_system_query(&machine), SL_OK);
    ck_assert_int_eq((int)machine.cpus, CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_int_eq(sl_system_query(&machine), SL_OK);
    ck_assert_uint_eq(machine.cpus, 1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

/* A sparse block takes memory where it was written to, until it is cleared. */
START_TEST(sparse_blocks_are_zeros) {
    const int bits = SANITIZED ? 33 : 40; /* sanitizers refuse the large ones */
    const size_t size = ((size_t)1 << bits) + 5, at[] = {0, size / 2, size - 1};
    void *block;
    ck_assert_int_eq(sl_mem_alloc_raw(&sl_sparse_allocator, size, &block), SL_OK);
    uint8_t *bytes = block;
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(bytes[at[i]], 0);
        bytes[at[i]] = 7;
    }
    sl_sparse_clear(block, size);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(bytes[at[i]], 0);
    sl_mem_free(&sl_sparse_allocator, block, size);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("base");
    tcase_add_test(tests, statuses_are_pinned);
    tcase_add_test(tests, names_of_values);
    tcase_add_test(tests, messages_keep_their_detail);
    tcase_add_test(tests, errno_becomes_a_status);
    tcase_add_test(tests, messages_belong_to_a_thread);
    tcase_add_test(tests, parameters_of_other_releases);
    tcase_add_test(tests, parameters_nobody_filled);
    tcase_add_test(tests, results_for_other_releases);
    tcase_add_test(tests, crc_of_known_texts);
    tcase_add_test(tests, crc_of_every_short_length);
    tcase_add_test(tests, crc_of_large_blocks);
    tcase_add_test(tests, blocks_are_zeroed_aligned_and_kept);
    tcase_add_test(tests, failed_allocations_change_nothing);
    tcase_add_test(tests, crews_do_all_of_it_once);
    tcase_add_test(tests, failures_of_threads_are_passed_on);
    tcase_add_test(tests, crews_work_at_the_same_time);
    tcase_add_test(tests, a_child_takes_a_lock_over);
    tcase_add_test(tests, sizes_that_do_not_fit);
    tcase_add_test(tests, progress_is_told_and_cancels);
    tcase_add_test(tests, random_numbers_are_pinned);
    tcase_add_test(tests, the_machine_is_described);
    tcase_add_test(tests, pinned_processors_are_counted);
    tcase_add_test(tests, sparse_blocks_are_zeros);
    return check_main("base", &tests, 1);
}
