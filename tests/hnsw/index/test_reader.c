/* Readers beside a writer: within a sync, beside a writer that died in it, and while the rest of its log is replayed.
 * Readers find as many of the vectors they count as at rest.
 *   test_reader               2,000 vectors and syncs of 30
 *   test_reader N MORE SYNC   MORE vectors added to N, SYNC a sync, saying what was found
 *
 * A reader's loss within a sync depends on the share of an old node's links that lead to new nodes. That share goes by
 * SYNC to N: 3 in 200 here, three times that of 100 to 20,000. The vectors are of no clusters and of many dimensions
 * for so small an m, so that every link counts. */
#include "base/random.h"
#include "hnsw/construct/reach.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/version.h"
#include "hnsw/search/accessors.h"
#include "storage/locks.h"
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DIM = 24, QUERIES = 200, K = 10, EF = 40, M = 10, LOOKS = 8 };
#define LOSS 0.005 /* of recall, that is no loss */

static size_t start = 2000, more = 300, a_sync = 30;
static int tells;
static scratch place;
static float *x; /* start + more vectors, then the queries */

/* Neither clustered nor of few dimensions. */
static float *noise_make(size_t n) {
    float *out = malloc(n * DIM * sizeof *out);
    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < n * DIM; i++) {
        double sum = 0;
        for (uint64_t j = 0; j < 4; j++)
            sum += sl_random_unit(31, 4 * i + j) - 0.5;
        out[i] = (float)sum;
    }
    return out;
}

static void set_up(void) {
    scratch_open(&place);
    x = noise_make(start + more + QUERIES);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.m = M;
    sl_index *index = indexes_make(&params, x, SL_F32, start, NULL, tells ? 0 : 1);
    sl_save_params save;
    indexes_save_params(&save);
    save.room = start + more;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

static sl_index *opened(int writable, const sl_file_ops *ops) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = writable;
    params.file_ops = ops;
    sl_index *index;
    ck_ok(sl_index_open(place.path, &params, &index));
    return index;
}

/* Vectors [from, from + n) and a sync. */
static sl_status add_and_sync(sl_index *writer, size_t from, size_t n) {
    ck_ok(indexes_add(writer, x + from * DIM, SL_F32, n, NULL));
    return sl_index_sync(writer);
}

/* The reader's recall among the vectors that it counts. */
typedef struct found {
    size_t n;
    double recall;
} found;

static found look(const sl_index *reader) {
    static uint64_t truth[QUERIES * K];
    static size_t of;
    uint64_t ids[QUERIES * K];
    const float *queries = x + (start + more) * DIM;
    found now;
    /* The reader may come to count more vectors at any moment. */
    do {
        now.n = sl_index_size(reader);
        indexes_search(reader, (vector_rows){queries, SL_F32, QUERIES}, K, EF, ids, NULL);
    } while (sl_index_size(reader) != now.n);
    if (of != now.n)
        indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, now.n}, (vector_rows){queries, SL_F32, QUERIES}, K,
                      truth);
    of = now.n;
    now.recall = indexes_recall(ids, truth, QUERIES, K);
    return now;
}

/* As if a second had passed since the handle looked for its writer. */
static void let_it_look(sl_index *reader) {
    __atomic_store_n(&reader->store->watched, UINT64_MAX, __ATOMIC_RELAXED);
}

/* By a writer, who also makes the proof of reachability that is owed after a few adds. */
static void file_is_sound(void) {
    sl_index *writer = opened(1, NULL);
    indexes_sound(writer);
    sl_index_free(writer);
}

/* ---------------------------------------------------------------------------------------------------------------
 * A writer's calls
 * ------------------------------------------------------------------------------------------------------------- */

/* Runs before each of a writer's writes to the index itself. */
typedef struct writes {
    sl_file_ops ops;
    int fd;         /* of the index */
    int armed;      /* a sync is under way */
    uint64_t head;  /* where the head page begins in the file; 0: not known yet */
    size_t count;   /* of the sync */
    size_t behind;  /* writes behind that of the head page */
    uint64_t end;   /* of the write before */
    size_t kill_at; /* the write, counted from 1, or else the head page's, before which the process kills itself; 0 */
    size_t at_most; /* looks at the reader, spread over so many writes */
    sl_index *reader;
    found idle, worst;
} writes;

static int open_noting(void *ctx, const char *path, int flags, unsigned mode) {
    writes *w = ctx;
    int fd = open(path, flags, (mode_t)mode);
    if (strcmp(path, place.path) == 0) w->fd = fd;
    return fd;
}

static void look_within(writes *w) {
    let_it_look(w->reader);
    found now = look(w->reader);
    ck_assert_msg(now.n == w->idle.n, "write %zu: the reader counts %zu, and not %zu", w->count, now.n, w->idle.n);
    if (now.recall < w->worst.recall) w->worst = now;
    ck_assert_msg(now.recall >= w->idle.recall - LOSS, "write %zu: recall of %zu is %.4f, and %.4f at rest", w->count,
                  now.n, now.recall, w->idle.recall);
}

static int64_t pwrite_watched(void *ctx, int fd, const void *data, size_t size, uint64_t offset) {
    writes *w = ctx;
    int is_head = w->head && offset >= w->head;
    if (w->armed && fd == w->fd) {
        w->count++;
        w->behind += w->behind || is_head;
        if (!w->behind) ck_assert_uint_ge(offset, w->end);
        w->end = offset + size;
        if (w->kill_at && (w->count == w->kill_at || is_head)) raise(SIGKILL);
        if (w->reader && (is_head || (!w->behind && w->count % LOOKS == 1))) look_within(w);
    }
    return pwrite(fd, data, size, (off_t)offset);
}

static void watch(writes *w) {
    *w = (writes){.fd = -1, .worst = {0, 2}};
    w->ops = (sl_file_ops){.ctx = w, .open = open_noting, .pwrite = pwrite_watched};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Beside one that lives
 * ------------------------------------------------------------------------------------------------------------- */

/* The reader is asked before writes of each sync, and before the last, with which it comes to count what was added. */
START_TEST(recall_within_a_sync) {
    writes w;
    watch(&w);
    sl_index *writer = opened(1, &w.ops);
    w.reader = opened(0, NULL);
    w.head = writer->writer->section + SL_LIVE_HEAD;
    double worst = 0;
    for (size_t done = 0; done < more; done += a_sync) {
        w.idle = look(w.reader);
        w.count = w.behind = 0;
        w.end = 0;
        w.worst.recall = 2;
        w.armed = 1;
        ck_ok(add_and_sync(writer, start + done, a_sync));
        w.armed = 0;
        ck_assert_msg(w.behind == 1, "%zu writes followed the head page's", w.behind - 1);
        ck_assert_uint_gt(w.count, 1);
        ck_assert_uint_eq(sl_index_size(w.reader), start + done + a_sync);
        if (w.idle.recall - w.worst.recall > worst) worst = w.idle.recall - w.worst.recall;
    }
    if (tells) printf("within %zu syncs of %zu: recall fell by %.4f at most\n", more / a_sync, a_sync, worst);
    sl_index_free(writer);
    sl_index_free(w.reader);
    file_is_sound();
}
END_TEST

/* Nodes and slots that a reading of the index counts. */
static sl_extent counts_read(const sl_index *index) {
    sl_reading reading;
    const sl_graph *graph = sl_reading_begin(index, &reading);
    const sl_extent counts = {.n = graph->n, .slots = graph->upper.count};
    sl_reading_end(&reading);
    return counts;
}

/* Words of the head page may be of different syncs: then what was seen before holds. */
START_TEST(counts_of_two_syncs_are_not_taken) {
    sl_index *writer = opened(1, NULL), *reader = opened(0, NULL);
    ck_ok(add_and_sync(writer, start, more));
    ck_assert_uint_gt(writer->graph.upper.count, reader->graph.upper.count);
    uint64_t fewer = start, all = start + more, head = writer->writer->section + SL_LIVE_HEAD;
    file_patch(place.path, head + offsetof(sl_published, n), &fewer, sizeof fewer);
    ck_assert_uint_eq(counts_read(reader).slots, reader->graph.upper.count);
    ck_assert_uint_eq(counts_read(reader).n, start);
    file_patch(place.path, head + offsetof(sl_published, n), &all, sizeof all);
    ck_assert_uint_eq(counts_read(reader).slots, writer->graph.upper.count);
    ck_assert_uint_eq(counts_read(reader).n, start + more);
    sl_index_free(writer);
    sl_index_free(reader);
}
END_TEST

/* A list of ids has what the writer published, as a size has. */
START_TEST(ids_of_a_followed_file_are_listed) {
    sl_index *writer = opened(1, NULL), *reader = opened(0, NULL);
    const uint64_t gone = 7;
    uint64_t *ids = calloc(start + more, sizeof *ids);
    ck_assert_ptr_nonnull(ids);
    ck_ok(sl_index_delete(writer, &gone, 1));
    ck_ok(add_and_sync(writer, start, more));
    size_t count;
    ck_ok(sl_index_ids(reader, ids, start + more, &count));
    ck_assert_uint_eq(count, sl_index_size(reader));
    ck_assert_uint_eq(count, start + more - 1);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_ne(ids[i], gone);
    free(ids);
    sl_index_free(writer);
    sl_index_free(reader);
}
END_TEST

/* Takes every link to a node away. */
static void orphan(sl_index *writer, uint32_t node) {
    for (size_t from = 0; from < writer->graph.n; from++) {
        uint32_t *links = sl_links(&writer->graph, from);
        size_t kept = 0;
        for (size_t i = 0; i < writer->graph.m0; i++)
            if (links[i] != node) links[kept++] = links[i];
        while (kept < writer->graph.m0)
            links[kept++] = SL_NONE;
        sl_index_touch(writer, links, writer->graph.m0 * sizeof *links);
    }
}

/* The proof of reachability writes links too, and nothing else is written near them. */
START_TEST(a_repaired_link_is_synced) {
    sl_index *writer = opened(1, NULL), *reader = opened(0, NULL);
    uint32_t node = sl_entry_get(&writer->graph).node == 7 ? 8 : 7;
    sl_check_report report = {.struct_size = sizeof report};
    orphan(writer, node);
    ck_ok(sl_index_sync(writer));
    sl_status before = sl_index_check(reader, NULL, &report);
    ck_assert(before == SL_OK || before == SL_ECORRUPT); /* no fault while the proof is owed, but counted */
    ck_assert_uint_ge(report.unreachable, 1);
    writer->unverified = 1;
    ck_ok(sl_reach_settle(writer));
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_eq(indexes_sound(reader).unreachable, 0);
    sl_index_free(writer);
    sl_index_free(reader);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Beside one that died
 * ------------------------------------------------------------------------------------------------------------- */

/* A process that adds `syncs` times, and is killed before that write of its last sync to the index; 0: the head page's.
 */
static void write_and_be_killed(size_t from, size_t syncs, size_t kill_at) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        writes w;
        watch(&w);
        sl_index *writer = opened(1, &w.ops);
        w.head = writer->writer->section + SL_LIVE_HEAD;
        for (size_t i = 0; i < syncs; i++) {
            w.count = 0;
            w.armed = i + 1 == syncs;
            w.kill_at = kill_at ? kill_at : SIZE_MAX;
            if (add_and_sync(writer, from + i * a_sync, a_sync) != SL_OK) _exit(1);
        }
        _exit(2);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_msg(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL, "the writer ended with %d", how);
}

/* Keeps the reader from healing, until it is closed. */
static int keep_off(void) {
    int held = open(place.path, O_RDONLY);
    ck_assert_int_eq(flock(held, LOCK_SH | LOCK_NB), 0);
    return held;
}

static uint64_t recoveries(const sl_index *index) {
    return indexes_storage(index).recoveries;
}

/* Until it is healed the reader finds what it found, and from then on what the log had too. */
START_TEST(recall_beside_the_dead) {
    sl_index *reader = opened(0, NULL);
    double worst = 0, lost;
    for (size_t done = 0, life = 0; done < more; done += a_sync, life++) {
        found idle = look(reader), now;
        write_and_be_killed(start + done, 1, life % 3 ? life * 7 : 0);
        int held = keep_off();
        let_it_look(reader);
        now = look(reader);
        lost = idle.recall - now.recall;
        if (lost > worst) worst = lost;
        ck_assert_uint_eq(now.n, idle.n);
        ck_assert_msg(lost <= LOSS, "killed: recall of %zu is %.4f, and %.4f at rest", now.n, now.recall, idle.recall);
        close(held);
        let_it_look(reader);
        ck_assert_uint_eq(sl_index_size(reader), start + done + a_sync);
        ck_assert_uint_eq(recoveries(reader), life + 1);
        now = look(reader);
        ck_assert_double_ge(now.recall, idle.recall - 3 * LOSS);
    }
    if (tells) printf("beside %zu dead writers: recall fell by %.4f at most\n", more / a_sync, worst);
    sl_index_free(reader);
    file_is_sound();
}
END_TEST

/* Nothing but searches, and time. */
START_TEST(heals_by_itself) {
    sl_index *reader = opened(0, NULL);
    sl_searcher *searcher;
    uint64_t id;
    ck_ok(sl_searcher_create(reader, 64, &searcher));
    write_and_be_killed(start, 1, 0);
    for (size_t i = 0; i < 1000 && recoveries(reader) == 0; i++) {
        ck_ok(sl_searcher_search(searcher, x, SL_F32, 1, NULL, &id, NULL, NULL));
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    ck_assert_uint_eq(recoveries(reader), 1);
    ck_ok(sl_searcher_search(searcher, x + start * DIM, SL_F32, 1, NULL, &id, NULL, NULL));
    ck_assert_uint_eq(id, start);
    sl_searcher_free(searcher);
    sl_index_free(reader);
}
END_TEST

typedef struct asker {
    pthread_t thread;
    sl_index *reader;
    int failed;
} asker;

static void *ask_on(void *ctx) {
    asker *a = ctx;
    sl_searcher *searcher;
    uint64_t id;
    a->failed = sl_searcher_create(a->reader, 64, &searcher) != SL_OK;
    for (size_t i = 0; i < 2000 && !a->failed; i++) {
        if (i % 10 == 0) let_it_look(a->reader);
        a->failed = sl_searcher_search(searcher, x, SL_F32, 1, NULL, &id, NULL, NULL) != SL_OK || id != 0;
    }
    sl_searcher_free(searcher);
    return NULL;
}

/* One of many threads replays the log, once. */
START_TEST(one_of_many_heals) {
    asker askers[4];
    sl_index *reader = opened(0, NULL);
    write_and_be_killed(start, 2, 0);
    for (size_t i = 0; i < 4; i++) {
        askers[i] = (asker){.reader = reader};
        ck_assert_int_eq(pthread_create(&askers[i].thread, NULL, ask_on, &askers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(askers[i].thread, NULL), 0);
        ck_assert(!askers[i].failed);
    }
    ck_assert_uint_eq(sl_index_size(reader), start + 2 * a_sync);
    ck_assert_uint_eq(recoveries(reader), 1);
    sl_index_free(reader);
    file_is_sound();
}
END_TEST

/* Who may not write to the file goes on with what it has. Runs in a process of its own, which becomes a user without
 * permission. */
START_TEST(who_may_not_write_goes_on) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        sl_index *reader = opened(0, NULL);
        found idle = look(reader);
        write_and_be_killed(start, 1, 0);
        ck_assert_int_eq(chmod(place.path, 0444), 0);
        if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
        for (size_t i = 0; i < 3; i++) {
            let_it_look(reader);
            found now = look(reader);
            if (now.n != start || now.recall < idle.recall - LOSS) _exit(3);
        }
        _exit(0);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
}
END_TEST

/* A writer that replays what the last one left, in many groups, takes nothing away from readers meanwhile. */
START_TEST(a_replay_goes_forward) {
    writes w;
    watch(&w);
    const size_t syncs = 5;
    w.reader = opened(0, NULL);
    write_and_be_killed(start, syncs, 0);
    int held = keep_off();
    w.idle = look(w.reader);
    close(held);
    w.head = sl_store_section(w.reader->store, SL_SECTION_LIVE)->offset + SL_LIVE_HEAD;
    ck_assert_uint_eq(w.idle.n, start + (syncs - 1) * a_sync);
    w.armed = 1;
    sl_index *writer = opened(1, &w.ops);
    w.armed = 0;
    ck_assert_uint_gt(w.count, 1);
    ck_assert_uint_eq(sl_index_size(w.reader), start + syncs * a_sync);
    sl_index_free(writer);
    sl_index_free(w.reader);
    file_is_sound();
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Beside one that begins
 * ------------------------------------------------------------------------------------------------------------- */

/* Another process that does what a reader does that replays a log, and takes its time. */
static pid_t heal_slowly(int pipe_end) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child) return child;
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SL_LIVE_HEALER, .l_len = 1};
    int fd = open(place.path, O_RDWR);
    if (fd < 0 || fcntl(fd, F_SETLK, &byte) != 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) _exit(1);
    if (write(pipe_end, "", 1) != 1) _exit(1);
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    _exit(0);
}

START_TEST(a_writer_waits_for_a_healer) {
    int ends[2], how;
    char ready;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = heal_slowly(ends[1]);
    ck_assert_int_eq(read(ends[0], &ready, 1), 1);
    sl_index_free(opened(1, NULL));
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

int main(int argc, char **argv) {
    tells = argc == 4;
    if (tells) {
        start = strtoul(argv[1], NULL, 10);
        more = strtoul(argv[2], NULL, 10);
        a_sync = strtoul(argv[3], NULL, 10);
    }
    TCase *cases[] = {tcase_create("beside one that lives"), tcase_create("that died"), tcase_create("that begins")};
    for (size_t i = 0; i < 3; i++) {
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
        tcase_set_timeout(cases[i], tells ? 0 : 300);
    }
    tcase_add_test(cases[0], recall_within_a_sync);
    tcase_add_test(cases[0], counts_of_two_syncs_are_not_taken);
    tcase_add_test(cases[0], ids_of_a_followed_file_are_listed);
    tcase_add_test(cases[0], a_repaired_link_is_synced);
    tcase_add_test(cases[1], recall_beside_the_dead);
    tcase_add_test(cases[1], heals_by_itself);
    tcase_add_test(cases[1], one_of_many_heals);
    tcase_add_test(cases[1], who_may_not_write_goes_on);
    tcase_add_test(cases[1], a_replay_goes_forward);
    tcase_add_test(cases[2], a_writer_waits_for_a_healer);
    return check_main("reader", cases, 3);
}
