#include "recommend/slots.h"

sl_status sl_slots_take(sl_slot **slots, const sl_allocator *allocator, sl_slot **out) {
    for (sl_slot *slot = __atomic_load_n(slots, __ATOMIC_ACQUIRE); slot; slot = slot->next) {
        if (__atomic_exchange_n(&slot->taken, 1, __ATOMIC_ACQUIRE)) continue;
        *out = slot;
        return SL_OK;
    }
    void *block;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_slot), &block));
    sl_slot *slot = block;
    slot->taken = 1;
    slot->next = __atomic_load_n(slots, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(slots, &slot->next, slot, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
    *out = slot;
    return SL_OK;
}

void sl_slots_give_back(sl_slot *slot) {
    if (slot) __atomic_store_n(&slot->taken, 0, __ATOMIC_RELEASE);
}

void sl_slot_announce(sl_slot *slot, const void *used) {
    __atomic_store_n(&slot->used, used, __ATOMIC_SEQ_CST);
}

int sl_slots_name(sl_slot *const *slots, const void *used) {
    for (const sl_slot *slot = __atomic_load_n(slots, __ATOMIC_SEQ_CST); slot; slot = slot->next)
        if (__atomic_load_n(&slot->used, __ATOMIC_SEQ_CST) == used) return 1;
    return 0;
}

void sl_slots_free(sl_slot **slots, const sl_allocator *allocator) {
    for (sl_slot *slot = *slots, *next; slot; slot = next) {
        next = slot->next;
        sl_mem_free(allocator, slot, sizeof *slot);
    }
    *slots = NULL;
}
