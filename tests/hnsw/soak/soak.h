/* A soak: writers, searches, another process that reads, saves, snapshots, reopens and kills on one index for minutes,
 * and an oracle that knows every acknowledged change (tests/support/oracle.h).
 *
 *   parent:  begins the lives of the worker, ends or kills them, looks at what the file holds then, takes snapshots
 *   worker:  a process that has the index: 2 threads write, 2 search, 1 saves and measures memory
 *   reader:  a process that reads the worker's file, and is killed now and then
 *
 * What they share lies in memory that all three map. */
#ifndef SL_TESTS_SOAK_H
#define SL_TESTS_SOAK_H

#include "tests/support/oracle.h"
#include "tests/support/scratch.h"

#include <shortlist.h>

enum { IDS = 1500, DIM = ORACLE_DIM, ROOM = 40000, TAG_BITS = 8, WRITERS = 2, SEARCHERS = 2 };

typedef enum soak_kind {
    SOAK_MEMORY, /* in memory, in one life */
    SOAK_DRAM,   /* opened into DRAM, saved over its file */
    SOAK_FILE    /* written in place */
} soak_kind;

#define SOAK_OPS_MAP(X)                                                                                                \
    X(ADDS, "adds")                                                                                                    \
    X(REPLACES, "replacements")                                                                                        \
    X(DELETES, "deletes")                                                                                              \
    X(UNDELETES, "undeletes")                                                                                          \
    X(TAGS, "tags set")                                                                                                \
    X(REFUSED, "calls refused as they must be")                                                                        \
    X(WALKS, "searches")                                                                                               \
    X(EXACT, "searches that compare with all")                                                                         \
    X(FILTERED, "filtered searches")                                                                                   \
    X(PAGES, "pages of iterators")                                                                                     \
    X(LOOKUPS, "get and contains")                                                                                     \
    X(LISTS, "lists of ids")                                                                                           \
    X(ELSEWHERE, "of these in the reader process")                                                                     \
    X(SYNCS, "syncs and saves")                                                                                        \
    X(COMPACTIONS, "compactions")                                                                                      \
    X(CHECKS, "checks of the whole index")                                                                             \
    X(SNAPSHOTS, "snapshots")                                                                                          \
    X(OPENED, "opened anew")                                                                                           \
    X(KILLS, "writers killed")                                                                                         \
    X(READERS_KILLED, "readers killed")                                                                                \
    X(REBUILDS, "rebuilds")                                                                                            \
    X(MISSED, "vectors that a walk missed")

typedef enum soak_op {
#define SOAK_X(name, text) SOAK_##name,
    SOAK_OPS_MAP(SOAK_X)
#undef SOAK_X
        SOAK_OPS
} soak_op;

enum { TEXTS = 8, TEXT = 200 };

/* Bytes measured again and again, by tenths of the kind's time. */
enum { TENTHS = 10 };
typedef struct soak_memory {
    uint64_t sums[TENTHS], counts[TENTHS];
} soak_memory;

typedef struct soak {
    soak_kind kind;
    oracle *oracle;
    scratch place;
    char copy[SCRATCH_PATH];
    int64_t begun, ends;                     /* of the kind's turn, by sl_now_ns */
    uint64_t counts[SOAK_OPS];               /* atomic */
    uint64_t differences;                    /* atomic */
    char texts[TEXTS][TEXT];                 /* of the first differences */
    int over;                                /* atomic: the worker's life is to end by itself */
    uint32_t files;                          /* atomic: how many files the path has meant */
    soak_memory allocated, resident, stored; /* by malloc, the system, and the index's own statistics */
} soak;

void soak_count(soak *s, soak_op op, uint64_t more);
/* Counts a difference between the index and what it has to be. */
void soak_differ(soak *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts a status that is not OK as a difference. Returns whether it is. */
int soak_fails(soak *s, sl_status status, const char *call);
/* Returns whether the worker's life goes on. */
int soak_goes_on(const soak *s);
void soak_sleep(double seconds);

/* Somebody who asks an index and compares the answers with the oracle. */
typedef struct soak_looker {
    soak *soak;
    sl_index *index;
    uint64_t seed, turn;
    const char *who;
    int elsewhere;           /* in another process than the worker: what is durable is visible */
    const uint32_t *durable; /* in a file that stays as it is: the durable changes of each id when it was opened */
    int pages;               /* the call is one of an iterator's */
    sl_searcher *searcher;
    uint32_t from[IDS]; /* changes that were visible when the call began */
    uint32_t seen[IDS];
    size_t wrongs; /* in the answers of the call */
    char wrong[TEXT];
} soak_looker;

/* A looker makes its searcher at its first search. */
void soak_looker_free(soak_looker *looker);
/* Asks in one of all ways, in turns. */
void soak_look(soak_looker *looker);
/* Compares all vectors with the oracle. */
void soak_look_at_all(soak_looker *looker);

/* A worker's life: opens or makes the index, and changes it until it is told to end, or is killed. */
_Noreturn void soak_work(soak *s, uint64_t life);
/* The threads' part: changes ids of its own until the life is over. */
void soak_write(soak *s, sl_index *index, uint64_t life, size_t writer);
/* Reads the worker's file until it is killed. */
_Noreturn void soak_read(soak *s, uint64_t life);

/* Opens the file. DRAM: a copy that can be changed. */
sl_status soak_open(const char *path, sl_place place, int writable, sl_index **out);
/* Saves or syncs, and tells the oracle. */
sl_status soak_keep(soak *s, sl_index *index);
/* Checks an index whole. */
void soak_check(soak *s, sl_index *index, const char *which);

#endif
