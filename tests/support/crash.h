/* Power failures, by replay. Records a workload's calls to the system, and makes from the record the files that a crash
 * could have left. These hold all writes before a file's last sync. They hold no later write, all, the first few, or
 * any; each may be torn at sectors of 512 bytes, in any order. Names belong to the folder: once the folder is
 * synced, files are surely made, renamed or removed. Any later change of names may be there. */
#ifndef SL_TESTS_CRASH_H
#define SL_TESTS_CRASH_H

#include <shortlist.h>

enum { CRASH_QUERIES = 12, CRASH_K = 5, CRASH_DIM = 8 };

/* How the index is written. */
typedef enum crash_way {
    CRASH_LOGGED, /* in place, by way of the log */
    CRASH_DIRECT, /* in place, word by word as in persistent memory, where a crash keeps any of the aligned words of 8
                     bytes that were flushed since the last drain */
    CRASH_RECOVERED, /* in place, from the files of a power failure: only the log has the acknowledged changes */
    CRASH_SAVED,     /* whole, by saves over it */
    CRASH_WAYS
} crash_way;

/* Calls recorded as if they had not happened, to check that the checks notice. */
typedef enum crash_lie {
    CRASH_HONEST,
    CRASH_LOG_NOT_SYNCED,
    CRASH_DATA_NOT_SYNCED,
    CRASH_FOLDER_NOT_SYNCED,
    CRASH_NOT_DRAINED
} crash_lie;

enum { CRASH_FILES = 64, CRASH_NAME = 64 };

typedef struct crash_op crash_op;

/* The index as a sync left it. */
typedef struct crash_mark {
    size_t begun, ended;                   /* ops before the sync was called, and when it returned */
    size_t nodes, deleted;                 /* ids that were added, and how many of them were deleted since: the first */
    uint32_t *rows;                        /* by id: its vector */
    uint64_t ids[CRASH_QUERIES * CRASH_K]; /* results of searches */
    uint64_t *tags;                        /* by id, of vectors that are not deleted */
    int compacted;                         /* deleted vectors left the graph afterwards, before the next change */
} crash_mark;

typedef struct crash_file {
    unsigned char *bytes; /* NULL: no such file */
    size_t size;
} crash_file;

typedef struct crash_record {
    crash_op *ops;
    size_t count, room;
    crash_file initial[2];               /* the files before the workload, under the first names */
    char names[CRASH_FILES][CRASH_NAME]; /* that files of the folder had: the index's, its log's, others' */
    int named[CRASH_FILES];              /* by name: the file that it means, or -1 */
    int name_count, file_count;
    char is_log[CRASH_FILES]; /* by file */
    crash_mark *marks;        /* the first is the file as it was */
    size_t mark_count;
    float *vectors; /* vectors of the index, and the queries behind them */
    uint32_t *rows; /* by id: its vector now */
    size_t vector_count;
    int reused;    /* places of deleted vectors were used again */
    int compacted; /* deleted vectors left the graph in compactions */
    crash_way way;
    crash_lie lie;
    sl_codes codes;
    double recall,
        wanted; /* sums over the images tried: of what they find, and of what the syncs they are of had found */
    int open[CRASH_FILES]; /* by descriptor: the file it is open on */
} crash_record;

/* Runs the workload in this folder, which is empty again afterwards, on an index of these codes. The workload adds
 * vectors in different sizes and, in place, sometimes deletes some. With a log it replaces some too, and deletes so
 * many that places are used again; time and again it compacts. Beside each change it sets some tags. Each change is
 * synced or saved. The log is emptied time and again. Failures end the test. */
void crash_run(crash_record *record, const char *folder, size_t steps, crash_way way, crash_lie lie, sl_codes codes);
void crash_free(crash_record *record);

/* Makes the crash image of this number, opens it, and checks it. The image must open and pass `check`. It must hold the
 * vectors and tags that one sync left, no earlier one than was acknowledged, and find what that sync found. Recovering
 * again must change nothing. Written directly, an add that a crash cut short is linked anew, and may then find others,
 * as near. The same holds from the
 * beginning of a compaction on. Returns 1, or 0 with what is wrong in `why` (256 bytes). */
int crash_try(crash_record *record, uint64_t number, const char *folder, char *why);

#endif
