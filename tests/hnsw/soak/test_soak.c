/* The soak of each kind of index (soak.h).
 *   test_soak            as long as a test run has time for
 *   test_soak MINUTES    so long in all, saying what was done
 *   test_soak MINUTES N  a third of that with one kind, number N */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/random.h"
#include "tests/hnsw/soak/soak.h"
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KINDS = 3 };
static const char *const kind_names[KINDS] = {"in memory", "opened into DRAM", "written in place"};
/* All kinds together. The thread sanitizer sees races that seldom make an answer wrong. */
#if defined(__SANITIZE_THREAD__) || CLANG_HAS(thread_sanitizer)
static double seconds = 60;
#else
static double seconds = 9;
#endif

/* Memory may grow by a tenth after the warm-up, and by some MB in all: places of deleted vectors, and versions, which a
 * search keeps while the system holds it up. malloc keeps the most that there ever was. */
#define MOST_GROWTH   1.1
#define MOST_MORE     1
#define MOST_RESIDENT 16
/* Shorter soaks measure too seldom to tell. */
enum { LEAST_SECONDS = 300 };
/* Walks miss a vector now and then, since links change beside them. */
#define MOST_MISSED 0.002

static soak *s;

/* ---------------------------------------------------------------------------------------------------------------
 * Counting
 * ------------------------------------------------------------------------------------------------------------- */

void soak_count(soak *of, soak_op op, uint64_t more) {
    __atomic_fetch_add(&of->counts[op], more, __ATOMIC_RELAXED);
}

void soak_differ(soak *of, const char *format, ...) {
    const uint64_t number = __atomic_fetch_add(&of->differences, 1, __ATOMIC_RELAXED);
    va_list args;
    va_start(args, format);
    if (number < TEXTS) vsnprintf(of->texts[number], TEXT, format, args);
    va_end(args);
}

int soak_fails(soak *of, sl_status status, const char *call) {
    if (status == SL_OK) return 0;
    soak_differ(of, "%s: %s: %s", call, sl_status_name(status), sl_last_error());
    return 1;
}

int soak_goes_on(const soak *of) {
    return !__atomic_load_n(&of->over, __ATOMIC_RELAXED);
}

void soak_sleep(double time) {
    for (const int64_t end = sl_now_ns() + (int64_t)(1e9 * time); sl_now_ns() < end;)
        sl_pause_ns(2000000);
}

/* The mean of a tenth, in MB. */
static double mean(const soak_memory *memory, size_t tenth) {
    return 1e-6 * (double)memory->sums[tenth] / (double)(memory->counts[tenth] + !memory->counts[tenth]);
}

/* The least of tenths [from, to) that were measured; 0: none was. Growth shows there, too. */
static double least(const soak_memory *memory, size_t from, size_t to) {
    double of = 0;
    for (size_t tenth = from; tenth < to; tenth++)
        if (memory->counts[tenth] && (of <= 0 || mean(memory, tenth) < of)) of = mean(memory, tenth);
    return of;
}

/* The warm-up takes three tenths of the time. The next three are compared with the last three. */
static double after_warm_up(const soak_memory *memory) {
    return least(memory, 3, 6);
}
static double at_end(const soak_memory *memory) {
    return least(memory, 7, TENTHS);
}

static void tell_memory(const soak_memory *memory, const char *of) {
    printf("  %.2f MB after the warm-up, %.2f MB at the end: %s. By tenths of the time:", after_warm_up(memory),
           at_end(memory), of);
    for (size_t tenth = 0; tenth < TENTHS; tenth++)
        printf(" %.2f", mean(memory, tenth));
    printf("\n");
}

static void tell(void) {
    static const char *const names[SOAK_OPS] = {
#define SOAK_X(name, text) text,
        SOAK_OPS_MAP(SOAK_X)
#undef SOAK_X
    };
    printf("%s: %.0f s, %llu differences\n", kind_names[s->kind], 1e-9 * (double)(sl_now_ns() - s->begun),
           (unsigned long long)s->differences);
    for (size_t i = 0; i < SOAK_OPS; i++)
        if (s->counts[i]) printf("  %12llu %s\n", (unsigned long long)s->counts[i], names[i]);
    tell_memory(&s->allocated, "allocated");
    tell_memory(&s->resident, "resident");
    tell_memory(&s->stored, "by the index's statistics");
    for (size_t i = 0; i < TEXTS && s->texts[i][0]; i++)
        printf("  %s\n", s->texts[i]);
    fflush(stdout);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Processes
 * ------------------------------------------------------------------------------------------------------------- */

static pid_t start(void (*run)(soak *, uint64_t), uint64_t life) {
    const pid_t parent = getpid(), child = fork();
    ck_assert_int_ge(child, 0);
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
    run(s, life);
    _exit(4);
}

static void work(soak *of, uint64_t life) {
    soak_work(of, life);
}
static void read_on(soak *of, uint64_t life) {
    soak_read(of, life);
}

/* Waits for a process to end, and counts any other end than that by SIGKILL or, if it's wanted, by itself. */
static void await(pid_t child, const char *who, int ends) {
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    if (ends ? how != 0 : !(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL)) soak_differ(s, "%s ended with %d", who, how);
}

static void kill_now(pid_t child, const char *who) {
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    await(child, who, 0);
}

/* Returns whether a process has ended. It stays to be waited for. */
static int has_ended(pid_t child) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------------------------------------------- */

static void set_up(soak_kind kind) {
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(s, MAP_FAILED);
    s->kind = kind;
    s->oracle = oracle_make(IDS);
    scratch_open(&s->place);
    scratch_name(&s->place, "copy.sl", s->copy);
    s->begun = sl_now_ns();
    s->ends = s->begun + (int64_t)(1e9 * seconds / KINDS);
}

static void tear_down(void) {
    scratch_close(&s->place);
    oracle_free(s->oracle);
    munmap(s, sizeof *s);
}

static void make_file(void) {
    sl_index *index;
    sl_index_params params;
    sl_save_params save;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.codes = SL_CODES_F32;
    params.tags = 1;
    ck_ok(sl_index_create(&params, &index));
    indexes_save_params(&save);
    save.room = s->kind == SOAK_FILE ? ROOM : 0;
    ck_ok(sl_index_save(index, s->place.path, &save));
    sl_index_free(index);
}

/* Compares what the file holds after the worker's life with what is durable, and tells the oracle. */
static void recover(void) {
    sl_index *index;
    float x[DIM];
    const char *wrong;
    ck_ok(soak_open(s->place.path, SL_PLACE_MAP, s->kind == SOAK_FILE, &index));
    for (uint64_t id = 0; id < IDS; id++) {
        const sl_status status = sl_index_get(index, &id, 1, SL_F32, x);
        if (status != SL_ENOTFOUND && soak_fails(s, status, "get after a writer's end")) continue;
        wrong = oracle_recovered(s->oracle, id, status == SL_OK ? x : NULL);
        if (wrong) soak_differ(s, "after a writer's end: id %llu: %s", (unsigned long long)id, wrong);
    }
    wrong = oracle_recovered_all(s->oracle);
    if (wrong) soak_differ(s, "after a writer's end: %s", wrong);
    soak_check(s, index, "the check after a writer's end");
    sl_index_free(index);
}

/* Makes a file anew that is nearly full. */
static void rebuild_if_full(void) {
    sl_index *index;
    sl_rebuild_params params;
    ck_ok(soak_open(s->place.path, SL_PLACE_MAP, 0, &index));
    const sl_index_stats stats = indexes_stats(index);
    sl_index_free(index);
    if (s->kind != SOAK_FILE || stats.n + stats.deleted + stats.reusable < ROOM / 4 * 3) return;
    sl_rebuild_params_init(&params);
    params.threads = 1;
    soak_fails(s, sl_index_rebuild(s->place.path, &params, NULL), "sl_index_rebuild");
    __atomic_fetch_add(&s->files, 1, __ATOMIC_SEQ_CST);
    soak_count(s, SOAK_REBUILDS, 1);
}

/* Copies the file beside its writer, and looks at the copy. */
static void take_snapshot(void) {
    static soak_looker looker;
    static uint32_t durable[IDS];
    looker.soak = s;
    looker.who = "a snapshot";
    looker.elsewhere = 1;
    looker.durable = durable;
    looker.turn++;
    oracle_look_synced(s->oracle, durable);
    const sl_status status = sl_index_snapshot(s->place.path, s->copy, NULL);
    if (status == SL_EIO && s->kind == SOAK_MEMORY && !s->counts[SOAK_SYNCS]) return; /* there was no save yet */
    if (soak_fails(s, status, "sl_index_snapshot")) return;
    if (soak_fails(s, soak_open(s->copy, SL_PLACE_DRAM, 0, &looker.index), "opening a snapshot")) return;
    soak_look_at_all(&looker);
    soak_check(s, looker.index, "the check of a snapshot");
    sl_index_free(looker.index);
    soak_count(s, SOAK_SNAPSHOTS, 1);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Lives
 * ------------------------------------------------------------------------------------------------------------- */

static double random_time(uint64_t life, uint64_t which, double from, double to) {
    return from + (to - from) * sl_random_unit(life, which);
}

static double time_left(void) {
    return 1e-9 * (double)(s->ends - sl_now_ns());
}

/* A worker's life, with a reader beside it. An index in memory has one life. Every other life of the others is cut
 * off. */
static void live_once(uint64_t life) {
    const int killed = s->kind != SOAK_MEMORY && life % 2 == 0;
    const double most = s->kind == SOAK_MEMORY ? INFINITY : random_time(life, 0, 0.2, SANITIZED ? 6 : 3);
    __atomic_store_n(&s->over, 0, __ATOMIC_RELAXED);
    pid_t reader = start(read_on, life), worker = start(work, life);
    const int64_t begun = sl_now_ns();
    for (uint64_t turn = 1;
         !has_ended(worker) && soak_goes_on(s) && time_left() > 0 && 1e-9 * (double)(sl_now_ns() - begun) < most;
         turn++) {
        soak_sleep(random_time(life, turn, 0.05, 0.4));
        if (turn % 2 == 0) take_snapshot();
        if (turn % 3) continue;
        kill_now(reader, "the reader");
        soak_count(s, SOAK_READERS_KILLED, 1);
        reader = start(read_on, 1000000 * turn + life);
    }
    if (killed && soak_goes_on(s) && !has_ended(worker)) {
        kill_now(worker, "the worker");
        soak_count(s, SOAK_KILLS, 1);
    } else {
        __atomic_store_n(&s->over, 1, __ATOMIC_RELAXED);
        await(worker, "the worker", 1);
    }
    recover();
    rebuild_if_full();
    kill_now(reader, "the reader");
}

static int is_flat(const soak_memory *memory, double more) {
    return at_end(memory) <= MOST_GROWTH * after_warm_up(memory) + more;
}

/* Sanitizers keep memory that is freed. */
static void check_memory(void) {
    if (seconds < LEAST_SECONDS) return;
    ck_assert_msg(is_flat(&s->stored, MOST_MORE), "%s: the index grows", kind_names[s->kind]);
    if (SANITIZED) return;
    ck_assert_msg(is_flat(&s->allocated, MOST_MORE), "%s: allocated memory grows", kind_names[s->kind]);
    ck_assert_msg(is_flat(&s->resident, MOST_RESIDENT), "%s: resident memory grows", kind_names[s->kind]);
}

START_TEST(soaks) {
    set_up((soak_kind)_i);
    if (s->kind != SOAK_MEMORY) make_file();
    uint64_t life = 0;
    do
        live_once(life++);
    while (s->kind != SOAK_MEMORY && (time_left() > 0 || life < 2));
    tell();
    ck_assert_msg(!s->differences, "%s: %s", kind_names[s->kind], s->texts[0]);
    for (int op = 0; op <= SOAK_SYNCS; op++)
        ck_assert_msg(s->counts[op], "%s: nothing of kind %d was done", kind_names[s->kind], op);
    ck_assert_uint_le(s->counts[SOAK_MISSED], (uint64_t)(MOST_MISSED * (double)s->counts[SOAK_WALKS]) + 1);
    check_memory();
    tear_down();
}
END_TEST

int main(int argc, char **argv) {
    char *end = NULL;
    const int kind = argc > 2 ? atoi(argv[2]) : 0;
    if (argc > 1) seconds = 60 * strtod(argv[1], &end);
    if (argc > 3 || kind < 0 || kind >= KINDS || (end && (*end || !(seconds > 0 && seconds < 1e6)))) {
        fprintf(stderr, "test_soak takes a number of minutes, and the number of a kind, from 0 to %d\n", KINDS - 1);
        return 2;
    }
    /* Check's time limits are for tests of some minutes. */
    if (seconds > 300) {
        char times[32];
        snprintf(times, sizeof times, "%.0f", seconds / 100);
        setenv("CK_TIMEOUT_MULTIPLIER", times, 1);
    }
    TCase *kinds = tcase_create("kinds");
    tcase_add_loop_test(kinds, soaks, kind, argc > 2 ? kind + 1 : KINDS);
    return check_main("soak", &kinds, 1);
}
