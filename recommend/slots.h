/* Who uses which pair: hazard pointers (Michael 2004). A request announces the pair it found in a slot of its own; who
 * replaces a pair frees it once no slot names it. Every access that the two sides race by is in one total order. */
#ifndef SL_RECOMMEND_SLOTS_H
#define SL_RECOMMEND_SLOTS_H

#include "base/memory.h"

/* Where a session says what it is using, in a cache line of its own. */
typedef struct sl_slot {
    const void *used; /* atomic; NULL between requests */
    int taken;        /* atomic */
    struct sl_slot *next;
    char rest[SL_CACHE_LINE - 3 * sizeof(void *)];
} sl_slot;

/* A list that only grows. *slots is its first one, atomic. */

/* A slot that no session has. It is made where there is none. Errors: SL_ENOMEM. */
sl_status sl_slots_take(sl_slot **slots, const sl_allocator *allocator, sl_slot **out);
void sl_slots_give_back(sl_slot *slot);
/* From now on whoever looks finds `used` in the slot; NULL: nothing. A pair that is announced may be gone already: look
 * afterwards whether it is still the one in use. */
void sl_slot_announce(sl_slot *slot, const void *used);
/* Whether some slot names it. */
int sl_slots_name(sl_slot *const *slots, const void *used);
/* Frees all slots, which no session may have. */
void sl_slots_free(sl_slot **slots, const sl_allocator *allocator);

#endif
