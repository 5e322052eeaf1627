/* Shared by the tests of indexes: asserts statuses, makes and searches indexes, and computes exact answers. Failures
 * end the test. */
#ifndef SL_TESTS_INDEXES_H
#define SL_TESTS_INDEXES_H

#include <check.h>
#include <shortlist.h>

/* Asserts that the call succeeds. */
#define ck_ok(call)                                                                                                    \
    do {                                                                                                               \
        sl_status ck_status_ = (call);                                                                                 \
        ck_assert_msg(ck_status_ == SL_OK, "%s gave %s: %s", #call, sl_status_name(ck_status_), sl_last_error());      \
    } while (0)

/* Asserts that the call fails with this status and a message that holds the text. */
#define ck_fails(call, status, text) indexes_expect(call, status, text, #call, __FILE__, __LINE__)
void indexes_expect(sl_status got, sl_status wanted, const char *text, const char *call, const char *file, int line);

/* Parameters of an index of f32 vectors with codes i8, m 8 and ef_construction 60: quick to build. */
void indexes_params(sl_index_params *params, size_t dim, sl_metric metric);

/* Returns an index of these parameters with n vectors added on `threads` threads; ids may be NULL. */
sl_index *indexes_make(const sl_index_params *params, const void *vectors, sl_dtype dtype, size_t n,
                       const uint64_t *ids, size_t threads);

/* Adds on one thread, as most tests want it. */
sl_status indexes_add(sl_index *index, const void *vectors, sl_dtype dtype, size_t n, const uint64_t *ids);

/* As sl_save_params_init, with the layout that the environment variable TEST_LAYOUT names. A test then runs again over
 * files of another layout. */
void indexes_save_params(sl_save_params *params);
sl_layout indexes_layout(void);
/* Saves with indexes_save_params. */
sl_status indexes_save(sl_index *index, const char *path);

/* Opens the index at path in this place, with default parameters otherwise. */
sl_index *indexes_open(const char *path, sl_place place);

/* Dense rows of one type. */
typedef struct vector_rows {
    const void *rows;
    sl_dtype dtype;
    size_t count;
} vector_rows;

/* Finds the k nearest of each query with this ef, on one thread; scores may be NULL. */
void indexes_search(const sl_index *index, vector_rows queries, size_t k, size_t ef, uint64_t *ids, float *scores);

/* Finds the exact k nearest; ids are row numbers. Both sides have one type. */
void indexes_exact(sl_metric metric, size_t dim, vector_rows base, vector_rows queries, size_t k, uint64_t *ids);

/* Returns the share of the true ids that were found; both are (nq, k). */
double indexes_recall(const uint64_t *found, const uint64_t *truth, size_t nq, size_t k);

/* A size for sections of a kind, in place of their own; 0: leave them out. */
typedef struct section_bytes {
    uint32_t kind;
    uint64_t size;
} section_bytes;

/* Saves the index with `count` sections cut to these sizes, as a lying file may have them. */
void indexes_save_cut(const sl_index *index, const char *path, const section_bytes *cut, size_t count);

/* Opens a file that must be refused for a copy in memory and found faulty by a check when mapped, in these words.
 * Returns the mapped index. */
sl_index *indexes_broken(const char *path, const char *says);

/* A progress callback that cancels at its first call. */
int indexes_cancel(void *ctx, uint64_t done, uint64_t total);

/* Asserts that a check passes, of every record too; returns its report. */
sl_check_report indexes_sound(sl_index *index);

/* Makes searches see what a test changed in the index's own graph. */
void indexes_publish(sl_index *index);

sl_index_stats indexes_stats(const sl_index *index);

sl_index_storage indexes_storage(const sl_index *index);

/* Waits until the DRAM copy is filled. */
void indexes_await_tier(const sl_index *index);

/* Asserts that every field is the same. */
void indexes_equal(const sl_index_stats *a, const sl_index_stats *b);

/* Returns the settings with this number, which must be there. */
sl_tuned indexes_tuned(const sl_index *index, size_t i);

/* Asserts that two settings are the same. */
void ck_same_tuned(const sl_tuned *a, const sl_tuned *b);

#endif
