/* Faults on demand, through the hooks that every user of the library has. An allocator and file operations count their
 * calls and fail at the call they are told to. */
#ifndef SL_TESTS_FAULTS_H
#define SL_TESTS_FAULTS_H

#include <shortlist.h>

/* Hands out blocks of the exact size, so that a sanitizer sees a byte too many. Without a sanitizer, aborts if
 * something wrote behind a block. Aborts if a block comes back with another size or alignment than it was allocated
 * with. Safe for several threads. */
typedef struct fault_allocator {
    sl_allocator allocator; /* what to pass to the library */
    size_t fail_at;         /* the call, counted from 1, that gets NULL; 0: none */
    size_t calls;
    size_t live_blocks;
    size_t live_bytes;
    size_t most_bytes; /* the peak of live_bytes */
    size_t largest;    /* largest block asked for, given or not */
} fault_allocator;

/* fail_at may be changed, and calls reset, at any time. */
void fault_allocator_init(fault_allocator *faults, size_t fail_at);

typedef enum fault_kind {
    FAULT_OPEN,
    FAULT_WRITE,
    FAULT_FSYNC,
    FAULT_CLOSE,
    FAULT_RENAME,
    FAULT_UNLINK,
    FAULT_PWRITE,
    FAULT_FDATASYNC,
    FAULT_FTRUNCATE,
    FAULT_ALLOCATE,
    FAULT_KINDS
} fault_kind;

typedef struct fault_files {
    sl_file_ops ops; /* what to pass to the library */
    size_t calls[FAULT_KINDS];
    size_t fail_at[FAULT_KINDS]; /* the call of that kind, counted from 1, that fails; 0: none */
    int error;                   /* errno of a failing call */
    size_t write_limit;          /* the most bytes that one write takes; 0: any number */
    size_t interrupt_every;      /* every n-th open, write and fsync fails with EINTR first; 0: none */
    size_t kill_at;              /* the call of any kind, counted from 1, before which the process kills itself */
    size_t all_calls;
} fault_files;

/* Every call goes to the system until a fault is set. A failing close closes nevertheless, as the system's does. */
void fault_files_init(fault_files *faults);

const char *fault_kind_name(fault_kind kind);

#endif
