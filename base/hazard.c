#include "base/hazard.h"

void sl_hazards_init(sl_hazards *hazards, const sl_allocator *allocator, sl_guarded_free_fn free_object,
                     const void *ctx) {
    *hazards = (sl_hazards){.allocator = *allocator, .free_object = free_object, .ctx = ctx};
}

void sl_hazards_free(sl_hazards *hazards) {
    for (sl_guarded *object = hazards->retired, *next; object; object = next) {
        next = object->next;
        hazards->free_object(hazards->ctx, object);
    }
    if (hazards->current) hazards->free_object(hazards->ctx, hazards->current);
    for (sl_hazard *hazard = hazards->first, *next; hazard; hazard = next) {
        next = hazard->next;
        SL_FREE(&hazards->allocator, hazard);
    }
    hazards->current = hazards->retired = NULL;
    hazards->first = NULL;
}

sl_status sl_hazards_take(sl_hazards *hazards, sl_hazard **out) {
    for (sl_hazard *hazard = __atomic_load_n(&hazards->first, __ATOMIC_ACQUIRE); hazard; hazard = hazard->next) {
        /* This load leaves the cache line of a hazard in use alone. */
        if (__atomic_load_n(&hazard->taken, __ATOMIC_RELAXED)) continue;
        if (__atomic_exchange_n(&hazard->taken, 1, __ATOMIC_ACQUIRE)) continue;
        *out = hazard;
        return SL_OK;
    }
    void *block;
    SL_TRY(sl_mem_alloc(&hazards->allocator, sizeof(sl_hazard), &block));
    sl_hazard *hazard = block;
    hazard->taken = 1;
    hazard->next = __atomic_load_n(&hazards->first, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&hazards->first, &hazard->next, hazard, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
    *out = hazard;
    return SL_OK;
}

void sl_hazard_give_back(sl_hazard *hazard) {
    if (hazard) __atomic_store_n(&hazard->taken, 0, __ATOMIC_RELEASE);
}

void sl_hazard_announce(sl_hazard *hazard, const sl_guarded *object) {
    __atomic_store_n(&hazard->used, object, __ATOMIC_SEQ_CST);
}

void sl_hazards_replace(sl_hazards *hazards, sl_guarded *object) {
    sl_guarded *old = __atomic_exchange_n(&hazards->current, object, __ATOMIC_SEQ_CST);
    if (!old) return;
    old->next = hazards->retired;
    hazards->retired = old;
}

/* Returns whether a reader announces the object. */
static int is_used(const sl_hazards *hazards, const sl_guarded *object) {
    for (const sl_hazard *hazard = __atomic_load_n(&hazards->first, __ATOMIC_SEQ_CST); hazard; hazard = hazard->next)
        if (__atomic_load_n(&hazard->used, __ATOMIC_SEQ_CST) == object) return 1;
    return 0;
}

size_t sl_hazards_collect(sl_hazards *hazards) {
    size_t left = 0;
    for (sl_guarded **at = &hazards->retired; *at;) {
        sl_guarded *object = *at;
        if (is_used(hazards, object)) {
            at = &object->next;
            left++;
            continue;
        }
        *at = object->next;
        hazards->free_object(hazards->ctx, object);
    }
    return left;
}
