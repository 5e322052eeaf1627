/*
 * Power failures, by replay: a workload's calls to the system are recorded, and from the record the files are made as a
 * crash could have left them. What was written to a file before its last sync is there; of what came after, any part:
 * none, all, the first so many, or any of the writes, each torn at sectors of 512 bytes and in any order. A file that
 * was made is there once its folder was synced.
 */
#ifndef SL_TESTS_CRASH_H
#define SL_TESTS_CRASH_H

#include <shortlist.h>

enum { CRASH_QUERIES = 12, CRASH_K = 5, CRASH_DIM = 8 };

/* How the index is written: by way of the log, or word by word as in persistent memory, where a crash keeps any of the
 * aligned words of 8 bytes that were flushed since the last drain. */
typedef enum crash_way { CRASH_LOGGED, CRASH_DIRECT } crash_way;

/* What is recorded as if it had not been done, for a check that the checks would notice. */
typedef enum crash_lie { CRASH_HONEST, CRASH_LOG_NOT_SYNCED, CRASH_DATA_NOT_SYNCED, CRASH_NOT_DRAINED } crash_lie;

typedef struct crash_op crash_op;

/* The index as a sync left it. */
typedef struct crash_mark {
    size_t begun, ended;   /* ops before the sync was called, and when it returned */
    size_t nodes, deleted; /* vectors that were added, and how many of them were deleted since: the first, by id */
    uint64_t ids[CRASH_QUERIES * CRASH_K]; /* what searches find */
} crash_mark;

typedef struct crash_record {
    crash_op *ops;
    size_t count, room;
    unsigned char *initial; /* the file before the workload */
    size_t initial_size;
    crash_mark *marks; /* the first is the file as it was */
    size_t mark_count;
    float *vectors; /* those of the index and of the queries behind them */
    size_t vector_count;
    crash_way way;
    crash_lie lie;
    sl_codes codes;
    double recall,
        wanted;    /* sums over the images tried: of what they find, and of what the syncs they are of had found */
    int files[64]; /* by descriptor: what it is open on */
} crash_record;

/* Runs the workload in this folder, which is empty again afterwards, on an index of these codes: adds of different
 * sizes and now and then a delete, each synced, with a log that is emptied time and again. Failures end the test. */
void crash_run(crash_record *record, const char *folder, size_t steps, crash_way way, crash_lie lie, sl_codes codes);
void crash_free(crash_record *record);

/* Makes the crash image of this number, opens it, and checks it: it opens, `check` passes, it holds the vectors that
 * one sync left, no earlier one than was acknowledged, and finds what it found then, and recovering again changes
 * nothing. Written directly, an add that a crash cut short is linked anew: it may then find others, as near. 1, or 0
 * with what is wrong in `why` (256 bytes). */
int crash_try(crash_record *record, uint64_t number, const char *folder, char *why);

#endif
