#include "base/epochs.h"

#include "base/thread.h"

#include <unistd.h>

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
    else {
        __atomic_store_n(&reader->thread, sl_thread_self(), __ATOMIC_RELAXED);
        __atomic_store_n(&reader->since, __atomic_load_n(&epochs->now, __ATOMIC_ACQUIRE), __ATOMIC_SEQ_CST);
    }
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

/* Puts a holder into its place among the first `room`, oldest first. `count` is their number without it. */
static void insert(sl_epoch_holder *out, size_t room, size_t count, sl_epoch_holder holder) {
    size_t at = count < room ? count : room;
    if (at == room && (!room || out[room - 1].epoch <= holder.epoch)) return;
    if (at == room) at--;
    for (; at && out[at - 1].epoch > holder.epoch; at--)
        out[at] = out[at - 1];
    out[at] = holder;
}

/* Reads an announcement whose thread and epoch belong together. Returns 0 if it announces nothing. */
static int read_holder(const sl_epoch_reader *reader, sl_epoch_holder *out) {
    uint64_t since = __atomic_load_n(&reader->since, __ATOMIC_ACQUIRE), thread, again;
    while (since) {
        thread = __atomic_load_n(&reader->thread, __ATOMIC_ACQUIRE);
        again = __atomic_load_n(&reader->since, __ATOMIC_ACQUIRE);
        if (again == since) {
            *out = (sl_epoch_holder){.epoch = since, .pid = (int)(thread >> 32), .tid = (int)(uint32_t)thread};
            return 1;
        }
        since = again;
    }
    return 0;
}

size_t sl_epochs_holders(const sl_epochs *epochs, sl_epoch_holder *out, size_t room) {
    size_t count = 0;
    sl_epoch_holder holder;
    for (const sl_epoch_reader *reader = __atomic_load_n(&epochs->first, __ATOMIC_SEQ_CST); reader;
         reader = reader->next)
        if (read_holder(reader, &holder)) insert(out, room, count++, holder);
    for (uint64_t left = __atomic_load_n(&epochs->crowd, __ATOMIC_SEQ_CST); left; left--)
        insert(out, room, count++, (sl_epoch_holder){.pid = (int)getpid()});
    return count;
}
