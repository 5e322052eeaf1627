/* Hazard pointers: readers use an object that a writer replaces, and the writer frees the old object once no reader
 * uses it. From M. M. Michael, "Hazard Pointers: Safe Memory Reclamation for Lock-Free Objects", IEEE Transactions on
 * Parallel and Distributed Systems 15(6), 2004. Here each reader has one hazard pointer, and one object is current.
 *
 * A reader:  sl_hazards_take once; then, for each use, sl_hazards_protect ... sl_hazard_release; sl_hazard_give_back.
 * A writer:  sl_hazards_replace, then sl_hazards_collect.
 *
 * A slow reader keeps one object from being freed, however often the writer replaces it. Under epochs (Fraser 2004) a
 * slow reader would keep every object that was retired since. Objects here are models and tables of many megabytes.
 *
 * Memory order. Four accesses are sequentially consistent: the reader announces an object (1) and loads `current` again
 * (2); the writer exchanges `current` (3) and loads the announcements (4). If (2) still finds the old object, (2) comes
 * before (3) in the one total order, so that (4) finds the announcement (1). Weaker orders would let the reader's load
 * (2) overtake its store (1). A hazard enters the list before its first announcement, so that (4) sees them all.
 */
#ifndef SL_BASE_HAZARD_H
#define SL_BASE_HAZARD_H

#include "base/memory.h"

/* The first member of every protected object. */
typedef struct sl_guarded {
    struct sl_guarded *next; /* the next retired object; only the writer reads it */
} sl_guarded;

/* The announcement of one reader, in a cache line of its own. */
typedef struct sl_hazard {
    const sl_guarded *used; /* atomic: the object that the reader uses; NULL: none */
    int taken;              /* atomic: 1 while a reader has this hazard */
    struct sl_hazard *next; /* fixed once the hazard is in the list */
    char rest[SL_CACHE_LINE - 3 * sizeof(void *)];
} sl_hazard;

/* Frees an object. */
typedef void (*sl_guarded_free_fn)(const void *ctx, sl_guarded *object);

typedef struct sl_hazards {
    sl_guarded *current; /* atomic: the object in use; NULL: none yet */
    sl_hazard *first;    /* atomic: a list of hazards, which only grows */
    sl_guarded *retired; /* the writer's: a list of replaced objects that are not freed yet */
    sl_allocator allocator;
    sl_guarded_free_fn free_object;
    const void *ctx;
} sl_hazards;

/* Starts without an object and without hazards. free_object gets `ctx`. */
void sl_hazards_init(sl_hazards *hazards, const sl_allocator *allocator, sl_guarded_free_fn free_object,
                     const void *ctx);
/* Frees the current object, the retired objects and all hazards.
 * Threads: no reader may have a hazard. */
void sl_hazards_free(sl_hazards *hazards);

/* Gives a reader a hazard: one that was given back, or a new one.
 * Errors: SL_ENOMEM, only for a new one.
 * Threads: any, at any time. */
sl_status sl_hazards_take(sl_hazards *hazards, sl_hazard **out);
/* Gives back a hazard that announces nothing. NULL is allowed. */
void sl_hazard_give_back(sl_hazard *hazard);

/* Announces that the reader uses an object, which may be gone already: sl_hazards_protect checks that. */
void sl_hazard_announce(sl_hazard *hazard, const sl_guarded *object);

/* Returns the current object, which stays until sl_hazard_release. A reader protects one object at a time.
 * Threads: lock-free, without allocation. A reader tries again only if the writer has replaced the object meanwhile. */
static inline sl_guarded *sl_hazards_protect(const sl_hazards *hazards, sl_hazard *hazard) {
    sl_guarded *object = __atomic_load_n(&hazards->current, __ATOMIC_SEQ_CST), *announced;
    do {
        announced = object;
        sl_hazard_announce(hazard, announced);
        object = __atomic_load_n(&hazards->current, __ATOMIC_SEQ_CST);
    } while (object != announced);
    return object;
}

/* Ends the use. The order "release" makes the reader's accesses come before the writer's free. */
static inline void sl_hazard_release(sl_hazard *hazard) {
    __atomic_store_n(&hazard->used, NULL, __ATOMIC_RELEASE);
}

/* Makes an object the current one and retires the one before.
 * Threads: one writer at a time, for the functions below too. */
void sl_hazards_replace(sl_hazards *hazards, sl_guarded *object);
/* Frees the retired objects that no reader uses. Returns how many are left. */
size_t sl_hazards_collect(sl_hazards *hazards);
/* Returns the current object, for its writer. */
static inline sl_guarded *sl_hazards_current(const sl_hazards *hazards) {
    return __atomic_load_n(&hazards->current, __ATOMIC_RELAXED);
}

#endif
