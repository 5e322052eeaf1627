/* Shared by the tests of indexes: asserting statuses, making indexes, asking them, and exact answers to compare with.
 * Failures end the test. */
#ifndef SL_TESTS_INDEXES_H
#define SL_TESTS_INDEXES_H

#include <check.h>
#include <shortlist.h>

/* The call succeeds. */
#define ck_ok(call)                                                                                                    \
    do {                                                                                                               \
        sl_status ck_status_ = (call);                                                                                 \
        ck_assert_msg(ck_status_ == SL_OK, "%s gave %s: %s", #call, sl_status_name(ck_status_), sl_last_error());      \
    } while (0)

/* The call fails with this status, and its message holds the text. */
#define ck_fails(call, status, text) indexes_expect(call, status, text, #call, __FILE__, __LINE__)
void indexes_expect(sl_status got, sl_status wanted, const char *text, const char *call, const char *file, int line);

/* Parameters of an index of f32 vectors with codes i8, m 8 and ef_construction 60: quick to build. */
void indexes_params(sl_index_params *params, size_t dim, sl_metric metric);

/* An index of these parameters with n vectors added on `threads` threads; ids may be NULL. */
sl_index *indexes_make(const sl_index_params *params, const void *vectors, sl_dtype dtype, size_t n,
                       const uint64_t *ids, size_t threads);

/* add on one thread, as most tests want it. */
sl_status indexes_add(sl_index *index, const void *vectors, sl_dtype dtype, size_t n, const uint64_t *ids);

/* As sl_save_params_init, with the layout that the environment variable TEST_LAYOUT names. A test then runs again over
 * files of another layout. */
void indexes_save_params(sl_save_params *params);
sl_layout indexes_layout(void);
/* Saves with these parameters and no others. */
sl_status indexes_save(sl_index *index, const char *path);

/* The index at path, opened at this place with nothing else asked for. */
sl_index *indexes_open(const char *path, sl_place place);

/* Dense rows of one type. */
typedef struct vector_rows {
    const void *rows;
    sl_dtype dtype;
    size_t count;
} vector_rows;

/* Ids of the k nearest of each query with this ef, on one thread; scores may be NULL. */
void indexes_search(const sl_index *index, vector_rows queries, size_t k, size_t ef, uint64_t *ids, float *scores);

/* The exact answer; ids are row numbers. Both have one type. */
void indexes_exact(sl_metric metric, size_t dim, vector_rows base, vector_rows queries, size_t k, uint64_t *ids);

/* Share of the true ids among those found, both (nq, k). */
double indexes_recall(const uint64_t *found, const uint64_t *truth, size_t nq, size_t k);

/* The bytes of a kind of section, in place of its own; 0: it is left out. */
typedef struct section_bytes {
    uint32_t kind;
    uint64_t size;
} section_bytes;

/* Saves the index with `count` sections cut so, as a file that lies may have them. */
void indexes_save_cut(const sl_index *index, const char *path, const section_bytes *cut, size_t count);

/* Opens a file that a copy in memory is refused for and a check of the mapped file finds faulty, in these words.
 * Returns the index mapped. */
sl_index *indexes_broken(const char *path, const char *says);

/* A progress callback that cancels as soon as it is asked. */
int indexes_cancel(void *ctx, uint64_t done, uint64_t total);

/* A check passes, of every record too; returns its report. */
sl_check_report indexes_sound(sl_index *index);

sl_index_stats indexes_stats(const sl_index *index);

sl_index_storage indexes_storage(const sl_index *index);

/* Waits until a DRAM copy that is being filled is whole. */
void indexes_await_tier(const sl_index *index);

/* Every field is the same. */
void indexes_equal(const sl_index_stats *a, const sl_index_stats *b);

/* Returns the settings with this number, which must be there. */
sl_tuned indexes_tuned(const sl_index *index, size_t i);

/* Fails the test where two settings differ. */
void ck_same_tuned(const sl_tuned *a, const sl_tuned *b);

#endif
