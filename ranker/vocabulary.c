#include "ranker/vocabulary.h"

#include "ranker/number.h"

#include <string.h>
#include <xxhash.h>

/* An open-addressed table, at most half full; entry 0 is free, else it is a text's number + 1. What a slot holds of the
 * text tells a short one apart without going to its bytes, which would be two more misses of the cache. */
typedef struct text_slot {
    uint32_t entry;
    uint16_t tag;  /* of the hash */
    uint16_t size; /* or LONG */
    char head[8];  /* zeros behind a shorter text */
} text_slot;
#define LONG UINT16_MAX

typedef struct integer_slot {
    int64_t value;
    uint64_t entry;
} integer_slot;

#define FIRST_SLOTS 64u
#define MOST        0x7ffffffeu /* texts: their numbers + 1 fit into an entry, and twice as many slots into a size_t */

struct sl_vocabulary {
    sl_allocator allocator;
    size_t count;
    char *bytes; /* text i is bytes starts[i] to starts[i + 1] */
    size_t byte_room;
    uint64_t *starts;
    size_t start_room;
    text_slot *texts;
    integer_slot *integers;
    size_t text_slots, integer_slots, integer_count; /* slots: powers of two */
};

uint64_t sl_text_hash(const char *text, size_t size) {
    return XXH3_64bits(text, size);
}

static size_t integer_place(int64_t value, size_t slots) {
    return (size_t)(((uint64_t)value * 0x9e3779b97f4a7c15u) >> 32) & (slots - 1);
}

sl_status sl_vocabulary_create(const sl_allocator *allocator, sl_vocabulary **out) {
    sl_status status;
    void *block;
    *out = NULL;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_vocabulary), &block));
    sl_vocabulary *v = block;
    v->allocator = *allocator;
    v->text_slots = v->integer_slots = FIRST_SLOTS;
    SL_TRY_GOTO(sl_mem_alloc(allocator, FIRST_SLOTS * sizeof *v->texts, (void **)&v->texts), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, FIRST_SLOTS * sizeof *v->integers, (void **)&v->integers), fail);
    SL_TRY_GOTO(sl_mem_grow(allocator, (void **)&v->starts, &v->start_room, FIRST_SLOTS, sizeof *v->starts), fail);
    *out = v;
    return SL_OK;
fail:
    sl_vocabulary_free(v);
    return status;
}

void sl_vocabulary_free(sl_vocabulary *v) {
    if (!v) return;
    sl_allocator allocator = v->allocator;
    sl_mem_free(&allocator, v->bytes, v->byte_room);
    sl_mem_free(&allocator, v->starts, v->start_room * sizeof *v->starts);
    sl_mem_free(&allocator, v->texts, v->text_slots * sizeof *v->texts);
    sl_mem_free(&allocator, v->integers, v->integer_slots * sizeof *v->integers);
    sl_mem_free(&allocator, v, sizeof *v);
}

size_t sl_vocabulary_count(const sl_vocabulary *v) {
    return v->count;
}

size_t sl_vocabulary_bytes(const sl_vocabulary *v) {
    return sizeof *v + v->byte_room + v->start_room * sizeof *v->starts + v->text_slots * sizeof *v->texts +
           v->integer_slots * sizeof *v->integers;
}

const char *sl_vocabulary_text(const sl_vocabulary *v, size_t i, size_t *size) {
    *size = (size_t)(v->starts[i + 1] - v->starts[i]);
    return v->bytes + v->starts[i];
}

static text_slot slot_for(const char *text, size_t size, uint64_t hash, size_t entry) {
    text_slot slot = {(uint32_t)entry, (uint16_t)(hash >> 48), (uint16_t)(size < LONG ? size : LONG), {0}};
    if (size >= sizeof slot.head)
        memcpy(slot.head, text, sizeof slot.head);
    else if (size)
        memcpy(slot.head, text, size);
    return slot;
}

static int same_text(const sl_vocabulary *v, const text_slot *slot, const char *text, size_t size) {
    if (size <= sizeof slot->head) return 1;
    size_t own_size;
    const char *own = sl_vocabulary_text(v, slot->entry - 1, &own_size);
    return own_size == size && memcmp(own, text, size) == 0;
}

/* The text's slot, or the free one where it would go. */
static text_slot *text_slot_of(const sl_vocabulary *v, const char *text, size_t size, uint64_t hash) {
    const text_slot wanted = slot_for(text, size, hash, 0);
    size_t mask = v->text_slots - 1;
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        text_slot *slot = &v->texts[at];
        if (!slot->entry) return slot;
        if (slot->tag != wanted.tag || slot->size != wanted.size) continue;
        if (memcmp(slot->head, wanted.head, sizeof wanted.head) == 0 && same_text(v, slot, text, size)) return slot;
    }
}

static integer_slot *integer_slot_of(const sl_vocabulary *v, int64_t value) {
    size_t mask = v->integer_slots - 1;
    for (size_t at = integer_place(value, v->integer_slots);; at = (at + 1) & mask) {
        integer_slot *slot = &v->integers[at];
        if (!slot->entry || slot->value == value) return slot;
    }
}

size_t sl_vocabulary_find(const sl_vocabulary *v, const char *text, size_t size) {
    return (size_t)text_slot_of(v, text, size, sl_text_hash(text, size))->entry - 1;
}

size_t sl_vocabulary_find_integer(const sl_vocabulary *v, int64_t value) {
    return (size_t)integer_slot_of(v, value)->entry - 1;
}

static sl_status grow_texts(sl_vocabulary *v) {
    if (2 * (v->count + 1) <= v->text_slots) return SL_OK;
    size_t old_slots = v->text_slots;
    text_slot *old = v->texts;
    void *block;
    SL_TRY(sl_mem_alloc(&v->allocator, 2 * old_slots * sizeof *old, &block));
    v->texts = block;
    v->text_slots = 2 * old_slots;
    for (size_t i = 0; i < v->count; i++) {
        size_t size;
        const char *text = sl_vocabulary_text(v, i, &size);
        uint64_t hash = sl_text_hash(text, size);
        *text_slot_of(v, text, size, hash) = slot_for(text, size, hash, i + 1);
    }
    sl_mem_free(&v->allocator, old, old_slots * sizeof *old);
    return SL_OK;
}

static sl_status grow_integers(sl_vocabulary *v) {
    if (2 * (v->integer_count + 1) <= v->integer_slots) return SL_OK;
    size_t old_slots = v->integer_slots;
    integer_slot *old = v->integers;
    void *block;
    SL_TRY(sl_mem_alloc(&v->allocator, 2 * old_slots * sizeof *old, &block));
    v->integers = block;
    v->integer_slots = 2 * old_slots;
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].entry) *integer_slot_of(v, old[i].value) = old[i];
    sl_mem_free(&v->allocator, old, old_slots * sizeof *old);
    return SL_OK;
}

sl_status sl_vocabulary_add(sl_vocabulary *v, const char *text, size_t size, size_t limit, size_t *number) {
    uint64_t hash = sl_text_hash(text, size);
    *number = (size_t)text_slot_of(v, text, size, hash)->entry - 1;
    if (*number != SIZE_MAX || v->count >= limit || v->count >= MOST) return SL_OK;
    size_t used = (size_t)v->starts[v->count], need;
    int64_t value;
    int is_integer = sl_integer_read(text, size, &value);
    if (!sl_add(used, size, &need)) return sl_fail(SL_ENOMEM, "the texts of a vocabulary do not fit");
    SL_TRY(sl_mem_grow(&v->allocator, (void **)&v->bytes, &v->byte_room, need, 1));
    SL_TRY(sl_mem_grow(&v->allocator, (void **)&v->starts, &v->start_room, v->count + 2, sizeof *v->starts));
    SL_TRY(grow_texts(v));
    if (is_integer) SL_TRY(grow_integers(v));
    if (size) memcpy(v->bytes + used, text, size);
    v->starts[v->count + 1] = need;
    *text_slot_of(v, text, size, hash) = slot_for(text, size, hash, v->count + 1);
    if (is_integer) {
        *integer_slot_of(v, value) = (integer_slot){value, v->count + 1};
        v->integer_count++;
    }
    *number = v->count++;
    return SL_OK;
}
