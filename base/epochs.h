/* Epochs: readers use memory that writers replace, and a writer frees the old memory once no reader can hold it. From
 * K. Fraser, "Practical lock-freedom", 2004 (epoch-based reclamation). The epoch here is a count of changes.
 *
 * A reader:  sl_epochs_join once; then, for each use, sl_epoch_enter ... sl_epoch_exit; sl_epochs_leave.
 * A writer:  replaces a pointer, sl_epochs_advance, and keeps the old memory with the epoch that this returns. It frees
 *            the memory once sl_epochs_oldest is no smaller.
 *
 * Memory order. Four accesses are sequentially consistent: the reader announces an epoch (1) and loads the pointer (2);
 * the writer stores the pointer (3) and loads the announcements (4). If (4) misses the announcement (1), (4) comes
 * before (1) in the one total order, and (3) before (2). The reader then finds the new pointer.
 */
#ifndef SL_BASE_EPOCHS_H
#define SL_BASE_EPOCHS_H

#include "base/memory.h"

/* The announcement of one reader, in a cache line of its own. */
typedef struct sl_epoch_reader {
    uint64_t since;               /* atomic: the epoch in which the reader began; 0: it reads nothing */
    uint64_t thread;              /* atomic: the thread that announced it last, as of sl_thread_self */
    size_t taken;                 /* atomic: 1 while somebody has this announcement */
    struct sl_epoch_reader *next; /* fixed once the announcement is in the list */
    void *outside;                /* of whoever has it: an announcement to other processes; NULL at first */
    char rest[SL_CACHE_LINE - 3 * sizeof(uint64_t) - 2 * sizeof(void *)];
} sl_epoch_reader;

/* Announcements that need no memory of their own. */
enum { SL_EPOCH_READERS = 4 };

typedef struct sl_epochs {
    uint64_t now;           /* atomic: the epoch; from 1 on */
    sl_epoch_reader *first; /* atomic: a list of announcements, which only grows */
    uint64_t crowd;         /* atomic: readers that found no memory for an announcement. They hold everything */
    sl_allocator allocator;
    sl_epoch_reader own[SL_EPOCH_READERS];
} sl_epochs;

void sl_epochs_init(sl_epochs *epochs, const sl_allocator *allocator);
/* Threads: no reader may be left. */
void sl_epochs_free(sl_epochs *epochs);

/* Returns an announcement for a reader: one that was given back, or a new one. NULL if there's no memory: the reader
 * can enter and exit all the same. Threads: any, at any time. */
sl_epoch_reader *sl_epochs_join(sl_epochs *epochs);
/* Gives back an announcement that announces nothing. NULL is allowed. */
void sl_epochs_leave(sl_epoch_reader *reader);

/* Announces the current epoch. The reader loads a pointer after this call. Its target then stays until sl_epoch_exit.
 * Load the pointer in sequentially consistent order. Threads: lock-free, without allocation. */
void sl_epoch_enter(sl_epochs *epochs, sl_epoch_reader *reader);
void sl_epoch_exit(sl_epochs *epochs, sl_epoch_reader *reader);

/* Returns the current epoch. */
uint64_t sl_epochs_now(const sl_epochs *epochs);
/* Begins the next epoch and returns it. Threads: one writer at a time. */
uint64_t sl_epochs_advance(sl_epochs *epochs);
/* Returns the oldest epoch that a reader has announced; the current one if nobody reads. No reader can hold what was
 * replaced before the epoch began that this returns. */
uint64_t sl_epochs_oldest(const sl_epochs *epochs);

/* Lists the readers that announce an epoch at this moment, oldest first. A reader without memory for an announcement
 * has epoch 0 and thread 0. Returns their number; `out` gets the first `room`. Threads: any, at any time. */
size_t sl_epochs_holders(const sl_epochs *epochs, sl_epoch_holder *out, size_t room);

#endif
