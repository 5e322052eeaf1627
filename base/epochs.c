#include "base/epochs.h"

void sl_epochs_init(sl_epochs *epochs, const sl_allocator *allocator) {
    *epochs = (sl_epochs){.now = 1, .allocator = *allocator, .first = epochs->own};
    for (size_t i = 0; i + 1 < SL_EPOCH_READERS; i++)
        epochs->own[i].next = &epochs->own[i + 1];
}

void sl_epochs_free(sl_epochs *epochs) {
    for (sl_epoch_reader *reader = epochs->first, *next; reader != epochs->own; reader = next) {
        next = reader->next;
        SL_FREE(&epochs->allocator, reader);
    }
    epochs->first = NULL;
}

sl_epoch_reader *sl_epochs_join(sl_epochs *epochs) {
    for (sl_epoch_reader *reader = __atomic_load_n(&epochs->first, __ATOMIC_ACQUIRE); reader; reader = reader->next) {
        /* This load leaves the cache line of an announcement in use alone. */
        if (__atomic_load_n(&reader->taken, __ATOMIC_RELAXED)) continue;
        if (!__atomic_exchange_n(&reader->taken, 1, __ATOMIC_ACQUIRE)) return reader;
    }
    void *block;
    if (sl_mem_alloc(&epochs->allocator, sizeof(sl_epoch_reader), &block) != SL_OK) return NULL;
    sl_epoch_reader *reader = block;
    reader->taken = 1;
    reader->next = __atomic_load_n(&epochs->first, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&epochs->first, &reader->next, reader, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
    return reader;
}

void sl_epochs_leave(sl_epoch_reader *reader) {
    if (reader) __atomic_store_n(&reader->taken, 0, __ATOMIC_RELEASE);
}

void sl_epoch_enter(sl_epochs *epochs, sl_epoch_reader *reader) {
    if (!reader)
        __atomic_fetch_add(&epochs->crowd, 1, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n(&reader->since, __atomic_load_n(&epochs->now, __ATOMIC_ACQUIRE), __ATOMIC_SEQ_CST);
}

void sl_epoch_exit(sl_epochs *epochs, sl_epoch_reader *reader) {
    if (!reader)
        __atomic_fetch_sub(&epochs->crowd, 1, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n(&reader->since, 0, __ATOMIC_RELEASE);
}

uint64_t sl_epochs_now(const sl_epochs *epochs) {
    return __atomic_load_n(&epochs->now, __ATOMIC_ACQUIRE);
}

uint64_t sl_epochs_advance(sl_epochs *epochs) {
    return __atomic_add_fetch(&epochs->now, 1, __ATOMIC_SEQ_CST);
}

uint64_t sl_epochs_oldest(const sl_epochs *epochs) {
    uint64_t oldest = __atomic_load_n(&epochs->now, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&epochs->crowd, __ATOMIC_SEQ_CST)) return 0;
    for (const sl_epoch_reader *reader = __atomic_load_n(&epochs->first, __ATOMIC_SEQ_CST); reader;
         reader = reader->next) {
        const uint64_t since = __atomic_load_n(&reader->since, __ATOMIC_SEQ_CST);
        if (since && since < oldest) oldest = since;
    }
    return oldest;
}
