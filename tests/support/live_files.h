/* An index in a file that is written in place, for tests of its writers and of writers that died. */
#ifndef SL_TESTS_LIVE_FILES_H
#define SL_TESTS_LIVE_FILES_H

#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

enum { N = 600, MORE = 200, ALL = N + MORE, ROOM = 1000, DIM = 20, QUERIES = 20, K = 10, EF = 60 };

/* The file's folder, and ALL rows of DIM elements with QUERIES more behind them: from set_up to tear_down. */
extern scratch place;
extern float *x;

typedef struct live_kind {
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
} live_kind;

#define LIVE_KINDS 7u
extern const live_kind kinds[LIVE_KINDS];

typedef struct answers {
    uint64_t ids[QUERIES * K];
    float scores[QUERIES * K];
} answers;

void set_up(void);
void tear_down(void);

void params_of(const live_kind *kind, sl_index_params *params);
void save_with_room(sl_index *index, size_t room);
void make_live(size_t n, size_t room);
sl_status open_as(sl_place where, int writable, const sl_file_ops *ops, sl_index **out);
sl_index *opened(sl_place where, int writable);
/* Forks a process that adds 100 vectors, syncs, adds 100 more, and dies before it syncs. */
void write_and_die(void);
/* Returns the results of QUERIES queries, which follow rows of this type. */
answers ask(const sl_index *index, const void *rows, sl_dtype dtype);

#endif
