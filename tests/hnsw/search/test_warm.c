/* A warm search takes no memory, no lock and no page fault, and makes no system call. `test_warm` counts allocations
 * and locks: the program is linked so that each one of the library's objects is counted. `test_warm system` counts page
 * faults and system calls, if the system allows that. */
#define _GNU_SOURCE
#include "base/thread.h"
#include "hnsw/graph/index.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/lock_calls.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"
#include "tests/support/system_calls.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef _OPENMP
enum { COUNTS_OPENMP = 1 };
#else
enum { COUNTS_OPENMP = 0 };
#endif

enum { N = 1500, DIM = 24, K = 10, EF = 60, MOST_EF = 200, QUERIES = 200, OTHERS = 100, ROUNDS = 5 };

/* Every kind of codes with every finer copy it takes. */
static const struct kind {
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
} kinds[] = {{SL_F32, SL_CODES_I8, SL_REFINE_NONE},  {SL_F32, SL_CODES_I8, SL_REFINE_F32},
             {SL_F32, SL_CODES_I8, SL_REFINE_BF16},  {SL_F32, SL_CODES_I8, SL_REFINE_I16},
             {SL_F32, SL_CODES_I16, SL_REFINE_NONE}, {SL_F32, SL_CODES_I16, SL_REFINE_F32},
             {SL_F32, SL_CODES_F32, SL_REFINE_NONE}, {SL_BF16, SL_CODES_I8, SL_REFINE_BF16},
             {SL_I8, SL_CODES_I8, SL_REFINE_NONE},   {SL_U8, SL_CODES_I8, SL_REFINE_NONE},
             {SL_I16, SL_CODES_I16, SL_REFINE_NONE}, {SL_F32, SL_CODES_I4, SL_REFINE_NONE},
             {SL_F32, SL_CODES_I4, SL_REFINE_I16},   {SL_U8, SL_CODES_I4, SL_REFINE_NONE}};
enum { KINDS = sizeof kinds / sizeof *kinds, METRICS = 3 };

/* ---------------------------------------------------------------------------------------------------------------
 * Searches
 * ------------------------------------------------------------------------------------------------------------- */

/* An index in a file, with QUERIES that are counted and OTHERS that are not. */
typedef struct subject {
    scratch scratch;
    sl_dtype dtype;
    void *vectors;
    uint64_t bits[2 * N / 64 + 1]; /* a filter's */
} subject;

static int accept_some(void *ctx, uint64_t id) {
    (void)ctx;
    return id % 5 != 0;
}

/* One of SUBJECTS. In the second half every other vector is deleted. Returns 0 where this build has no such codes. */
enum { SUBJECTS = 2 * KINDS * METRICS };

static int subject_make(subject *subject, size_t number) {
    const struct kind *kind = &kinds[number % KINDS];
    sl_index_params params;
    sl_index *index;
    indexes_params(&params, DIM, (sl_metric)(number / KINDS % METRICS));
    params.dtype = subject->dtype = kind->dtype;
    params.codes = kind->codes;
    params.refine = kind->refine;
    sl_status status = sl_index_create(&params, &index);
    if (status == SL_EUNSUPPORTED && kind->codes == SL_CODES_I4) return 0;
    ck_ok(status);
    float *x = clusters_make(N + QUERIES + OTHERS, DIM, 0.3, 5);
    uint64_t own[N];
    for (size_t i = 0; i < N; i++)
        own[i] = 2 * i;
    subject->vectors = clusters_as(kind->dtype, x, (size_t)(N + QUERIES + OTHERS) * DIM);
    free(x);
    ck_ok(indexes_add(index, subject->vectors, kind->dtype, N, own));
    for (size_t i = 0; i < N && number >= SUBJECTS / 2; i += 2)
        ck_ok(sl_index_delete(index, &own[i], 1));
    scratch_open(&subject->scratch);
    ck_ok(indexes_save(index, subject->scratch.path));
    sl_index_free(index);
    memset(subject->bits, 0x5d, sizeof subject->bits);
    return 1;
}

static void subject_free(subject *subject) {
    free(subject->vectors);
    scratch_close(&subject->scratch);
}

/* The index lies in memory, is mapped, or is mapped with a whole DRAM copy. Each is searched with and without a
 * filter. */
enum { WAYS = 6 };

static const char *way_name(int way) {
    static const char *const names[] = {"in memory", "mapped", "mapped, with a tier"};
    return names[way / 2];
}

static sl_index *subject_open(const subject *subject, int way) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = way / 2 ? SL_PLACE_MAP : SL_PLACE_DRAM;
    params.tier = way / 2 == 2 ? SL_TIER_DRAM : SL_TIER_NONE;
    sl_index *index;
    ck_ok(sl_index_open(subject->scratch.path, &params, &index));
    indexes_await_tier(index);
    ck_assert_int_eq(indexes_storage(index).tier, way / 2 == 2 ? SL_TIER_STATE_FILLED : SL_TIER_STATE_NONE);
    return index;
}

/* Objects that a thread of a service has. */
typedef struct asker {
    const subject *subject;
    sl_searcher *searcher;
    sl_search_params params;
    uint64_t ids[K];
    float scores[K];
    sl_search_stats stats;
} asker;

static void asker_make(asker *asker, const subject *subject, const sl_index *index, int filtered) {
    *asker = (struct asker){.subject = subject};
    sl_search_params_init(&asker->params);
    asker->params.ef = EF;
    if (filtered) {
        asker->params.accept = accept_some;
        asker->params.accept_bits = subject->bits;
        asker->params.accept_bits_count = 2 * N;
    }
    ck_ok(sl_searcher_create(index, MOST_EF, &asker->searcher));
}

/* The first `count` queries, `rounds` times; how many calls failed. Nothing else is done here. */
static size_t ask(asker *asker, size_t count, size_t rounds) {
    const subject *subject = asker->subject;
    size_t row = DIM * sl_dtype_size(subject->dtype), failed = 0;
    const char *queries = (const char *)subject->vectors + N * row;
    for (size_t i = 0; i < rounds * count; i++)
        failed += sl_searcher_search(asker->searcher, queries + i % count * row, subject->dtype, K, &asker->params,
                                     asker->ids, asker->scores, &asker->stats) != SL_OK;
    return failed;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Allocations and locks
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(the_counters_count) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    sl_spin spin = {0};
    /* Check itself allocates and locks, so nothing is asserted in between. */
    size_t allocations = system_calls(), locks = lock_calls();
    int refused = pthread_mutex_lock(&mutex) || pthread_mutex_unlock(&mutex);
    sl_spin_lock(&spin);
#pragma omp critical(test_warm)
    refused |= sl_thread_number() != 0;
    void *volatile block = malloc(1);
    free(block);
    allocations = system_calls() - allocations;
    locks = lock_calls() - locks;
    ck_assert_int_eq(refused, 0);
    ck_assert_uint_ge(locks, 3 + COUNTS_OPENMP);
    ck_assert_uint_eq(allocations, 2);
}
END_TEST

/* Once it has asked, it takes no memory and no lock. */
static void expect_quiet(asker *asker) {
    size_t failed = ask(asker, QUERIES + OTHERS, 1);
    size_t allocations = system_calls(), locks = lock_calls();
    failed += ask(asker, QUERIES, ROUNDS);
    allocations = system_calls() - allocations;
    locks = lock_calls() - locks;
    ck_assert_uint_eq(failed, 0);
    ck_assert_uint_eq(asker->stats.results, K);
    ck_assert_uint_eq(allocations, 0);
    ck_assert_uint_eq(locks, 0);
}

START_TEST(a_warm_search_takes_no_memory_and_no_lock) {
    subject subject;
    if (!subject_make(&subject, (size_t)_i)) return;
    for (int way = 0; way < WAYS; way++) {
        sl_index *index = subject_open(&subject, way);
        asker asker;
        asker_make(&asker, &subject, index, way % 2);
        expect_quiet(&asker);
        sl_searcher_free(asker.searcher);
        sl_index_free(index);
    }
    subject_free(&subject);
}
END_TEST

/* The index has partitions; the same queries are scanned for. */
START_TEST(nor_does_a_warm_scan) {
    enum { LARGE = 5000 };
    subject subject = {.dtype = SL_F32};
    sl_index_params params;
    float *x = clusters_make(LARGE + N + QUERIES + OTHERS, DIM, 0.3, 6);
    indexes_params(&params, DIM, (sl_metric)_i);
    sl_index *index = indexes_make(&params, x, SL_F32, LARGE, NULL, 2);
    subject.vectors = x + (size_t)LARGE * DIM;
    asker asker;
    asker_make(&asker, &subject, index, 0);
    asker.params.probes = 7;
    expect_quiet(&asker);
    ck_assert_uint_eq(asker.stats.expansions, 0);
    sl_searcher_free(asker.searcher);
    sl_index_free(index);
    free(x);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Page faults and system calls
 * ------------------------------------------------------------------------------------------------------------- */

/* Findings of a child, in memory shared with it. */
typedef struct findings {
    int finished;
    size_t failed;
    long faults; /* over the counted searches */
    int barred;  /* system calls other than these few were made to end the process */
    int called;  /* one was made, and this was its number */
    int call;
} findings;

static findings *found;

static void on_system_call(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    found->called = 1;
    found->call = info->si_syscall;
    _exit(1);
}

/* From here on system calls of this thread end in on_system_call, except the count of faults and the exit. Returns
 * whether the system can do that. */
static int bar_system_calls(void) {
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(getrusage),
        ALLOW(exit_group),
        ALLOW(rt_sigreturn),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
#undef ALLOW
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    struct sigaction action = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static long faults(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) return -1;
    return usage.ru_minflt + usage.ru_majflt;
}

/* Runs `work` in a child, which reports its findings. Returns whether there was a child. */
static int in_child(void (*work)(const void *), const void *argument) {
    int how;
    memset(found, 0, sizeof *found);
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) return 0;
    if (pid == 0) {
        work(argument);
        found->finished = 1;
        _exit(0);
    }
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
        ;
    return 1;
}

typedef struct trial {
    const subject *subject;
    int way;
} trial;

static void search_in_child(const void *argument) {
    const trial *trial = argument;
    sl_index *index = subject_open(trial->subject, trial->way);
    asker asker;
    asker_make(&asker, trial->subject, index, trial->way % 2);
    found->barred = bar_system_calls();
    found->failed = ask(&asker, QUERIES + OTHERS, 1);
    long before = faults();
    found->failed += ask(&asker, QUERIES, ROUNDS);
    found->faults = faults() - before;
}

/* The system may take a page away for reasons of its own, such as moving it. A search's own faults occur at each
 * repetition. */
enum { TRIALS = 5 };

START_TEST(a_warm_search_asks_nothing_of_the_system) {
    subject subject;
    if (!subject_make(&subject, (size_t)_i)) return;
    for (int way = 0; way < WAYS; way++) {
        trial trial = {&subject, way};
        long fewest = LONG_MAX;
        for (int i = 0; i < TRIALS && fewest > 0; i++) {
            ck_assert(in_child(search_in_child, &trial));
            ck_assert_msg(!found->called, "a search made system call %d (%s, %sfiltered)", found->call, way_name(way),
                          way % 2 ? "" : "not ");
            ck_assert_int_eq(found->finished, 1);
            ck_assert_int_eq(found->barred, 1);
            ck_assert_uint_eq(found->failed, 0);
            if (found->faults < fewest) fewest = found->faults;
        }
        ck_assert_msg(fewest == 0, "%ld page faults in %d searches (%s, %sfiltered)", fewest, QUERIES * ROUNDS,
                      way_name(way), way % 2 ? "" : "not ");
    }
    subject_free(&subject);
}
END_TEST

/* A fault to be counted, and a system call that must not return. */
static void probe(const void *argument) {
    const size_t *page = argument;
    char *fresh = mmap(NULL, *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return;
    long before = faults();
    *(volatile char *)fresh = 1;
    found->faults = faults() - before;
    found->barred = bar_system_calls();
    if (found->barred) (void)syscall(SYS_getppid);
}

/* Why page faults and system calls cannot be counted here; NULL: they can. */
static const char *obstacle(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (SANITIZED) return "the sanitizer's runtime takes page faults and makes system calls of its own";
    if (!in_child(probe, &page)) return "no process can be started";
    if (found->faults < 1) return "the system does not count page faults";
    if (!found->barred) return "the system has no seccomp filters, by which system calls are seen";
    if (!found->called) return "the system's seccomp filters let everything pass";
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        TCase *tests = tcase_create("warm");
        tcase_add_test(tests, the_counters_count);
        tcase_add_loop_test(tests, a_warm_search_takes_no_memory_and_no_lock, 0, SUBJECTS);
        tcase_add_loop_test(tests, nor_does_a_warm_scan, 0, METRICS);
        return check_main("warm", &tests, 1);
    }
    if (strcmp(argv[1], "system") != 0) {
        fprintf(stderr, "usage: test_warm [system]\n");
        return 2;
    }
    found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return 1;
    const char *reason = obstacle();
    if (reason) {
        printf("skipped: %s\n", reason);
        return 77;
    }
    TCase *tests = tcase_create("warm_system");
    tcase_add_loop_test(tests, a_warm_search_asks_nothing_of_the_system, 0, SUBJECTS);
    return check_main("warm_system", &tests, 1);
}
