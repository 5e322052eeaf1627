#include "ranker/features/vocabulary.h"

#include "base/probe.h"
#include "ranker/features/number.h"

#include <string.h>
#include <xxhash.h>

/* An entry of an open-addressed table, which is at most half full. The first bytes of the text are in the entry. They
 * tell short texts apart without two more cache misses. */
typedef struct text_entry {
    uint32_t number; /* the text's number + 1; 0: the entry is free */
    uint16_t tag;    /* upper bits of the hash */
    uint16_t size;   /* LONG_TEXT for a longer text */
    char head[8];    /* zeros after a shorter text */
} text_entry;
#define LONG_TEXT UINT16_MAX

typedef struct integer_entry {
    int64_t value;
    uint64_t number; /* number of its text + 1; 0: the entry is free */
} integer_entry;

#define FIRST_ENTRIES 64u
#define MAX_TEXTS     0x7ffffffeu /* limit on texts: number + 1 fits into an entry, 2 * MAX_TEXTS entries into a size_t */

struct sl_vocabulary {
    sl_allocator allocator;
    size_t count;
    char *bytes; /* text i is bytes[starts[i]] to bytes[starts[i + 1]] */
    size_t byte_room;
    uint64_t *starts;
    size_t start_room;
    text_entry *texts;
    integer_entry *integers;
    size_t text_entries, integer_entries, integer_count; /* numbers of entries: powers of two */
};

uint64_t sl_text_hash(const char *text, size_t size) {
    return XXH3_64bits(text, size);
}

static uint64_t integer_hash(int64_t value) {
    return ((uint64_t)value * 0x9e3779b97f4a7c15u) >> 32;
}

sl_status sl_vocabulary_create(const sl_allocator *allocator, sl_vocabulary **out) {
    sl_status status;
    void *block;
    *out = NULL;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_vocabulary), &block));
    sl_vocabulary *v = block;
    v->allocator = *allocator;
    v->text_entries = v->integer_entries = FIRST_ENTRIES;
    status = SL_OK;
    v->texts = sl_mem_array(allocator, FIRST_ENTRIES, sizeof *v->texts, &status);
    v->integers = sl_mem_array(allocator, FIRST_ENTRIES, sizeof *v->integers, &status);
    v->starts = sl_mem_grow(allocator, v->starts, &v->start_room, FIRST_ENTRIES, sizeof *v->starts, &status);
    if (status != SL_OK) goto fail;
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
    SL_FREE_ARRAY(&allocator, v->starts, v->start_room);
    SL_FREE_ARRAY(&allocator, v->texts, v->text_entries);
    SL_FREE_ARRAY(&allocator, v->integers, v->integer_entries);
    SL_FREE(&allocator, v);
}

size_t sl_vocabulary_count(const sl_vocabulary *v) {
    return v->count;
}

size_t sl_vocabulary_bytes(const sl_vocabulary *v) {
    return sizeof *v + v->byte_room + v->start_room * sizeof *v->starts + v->text_entries * sizeof *v->texts +
           v->integer_entries * sizeof *v->integers;
}

const char *sl_vocabulary_text(const sl_vocabulary *v, size_t i, size_t *size) {
    *size = (size_t)(v->starts[i + 1] - v->starts[i]);
    return v->bytes + v->starts[i];
}

static text_entry make_text_entry(const char *text, size_t size, uint64_t hash, size_t number) {
    text_entry entry = {(uint32_t)number, (uint16_t)(hash >> 48), (uint16_t)(size < LONG_TEXT ? size : LONG_TEXT), {0}};
    if (size >= sizeof entry.head)
        memcpy(entry.head, text, sizeof entry.head);
    else if (size)
        memcpy(entry.head, text, size);
    return entry;
}

static int same_text(const sl_vocabulary *v, const text_entry *entry, const char *text, size_t size) {
    if (size <= sizeof entry->head) return 1;
    size_t own_size;
    const char *own = sl_vocabulary_text(v, entry->number - 1, &own_size);
    return own_size == size && memcmp(own, text, size) == 0;
}

/* Returns the text's entry, or the free entry that a new text gets. */
static text_entry *find_text_entry(const sl_vocabulary *v, const char *text, size_t size, uint64_t hash) {
    const text_entry wanted = make_text_entry(text, size, hash, 0);
    SL_PROBE(at, hash, v->text_entries) {
        text_entry *entry = &v->texts[at];
        if (!entry->number) return entry;
        if (entry->tag != wanted.tag || entry->size != wanted.size) continue;
        if (memcmp(entry->head, wanted.head, sizeof wanted.head) == 0 && same_text(v, entry, text, size)) return entry;
    }
}

static integer_entry *find_integer_entry(const sl_vocabulary *v, int64_t value) {
    SL_PROBE(at, integer_hash(value), v->integer_entries) {
        integer_entry *entry = &v->integers[at];
        if (!entry->number || entry->value == value) return entry;
    }
}

size_t sl_vocabulary_find(const sl_vocabulary *v, const char *text, size_t size) {
    return (size_t)find_text_entry(v, text, size, sl_text_hash(text, size))->number - 1;
}

size_t sl_vocabulary_find_integer(const sl_vocabulary *v, int64_t value) {
    return (size_t)find_integer_entry(v, value)->number - 1;
}

static sl_status grow_texts(sl_vocabulary *v) {
    if (2 * (v->count + 1) <= v->text_entries) return SL_OK;
    size_t old_entries = v->text_entries;
    text_entry *old = v->texts;
    void *block;
    SL_TRY(sl_mem_alloc(&v->allocator, 2 * old_entries * sizeof *old, &block));
    v->texts = block;
    v->text_entries = 2 * old_entries;
    for (size_t i = 0; i < v->count; i++) {
        size_t size;
        const char *text = sl_vocabulary_text(v, i, &size);
        uint64_t hash = sl_text_hash(text, size);
        *find_text_entry(v, text, size, hash) = make_text_entry(text, size, hash, i + 1);
    }
    SL_FREE_ARRAY(&v->allocator, old, old_entries);
    return SL_OK;
}

static sl_status grow_integers(sl_vocabulary *v) {
    if (2 * (v->integer_count + 1) <= v->integer_entries) return SL_OK;
    size_t old_entries = v->integer_entries;
    integer_entry *old = v->integers;
    void *block;
    SL_TRY(sl_mem_alloc(&v->allocator, 2 * old_entries * sizeof *old, &block));
    v->integers = block;
    v->integer_entries = 2 * old_entries;
    for (size_t i = 0; i < old_entries; i++)
        if (old[i].number) *find_integer_entry(v, old[i].value) = old[i];
    SL_FREE_ARRAY(&v->allocator, old, old_entries);
    return SL_OK;
}

sl_status sl_vocabulary_add(sl_vocabulary *v, const char *text, size_t size, size_t limit, size_t *number) {
    uint64_t hash = sl_text_hash(text, size);
    *number = (size_t)find_text_entry(v, text, size, hash)->number - 1;
    if (*number != SIZE_MAX || v->count >= limit || v->count >= MAX_TEXTS) return SL_OK;
    size_t used = (size_t)v->starts[v->count], need;
    int64_t value;
    int is_integer = sl_integer_read(text, size, &value);
    if (!sl_add(used, size, &need)) return sl_fail(SL_ENOMEM, "the texts of a vocabulary do not fit");
    sl_status status = SL_OK;
    v->bytes = sl_mem_grow(&v->allocator, v->bytes, &v->byte_room, need, 1, &status);
    v->starts = sl_mem_grow(&v->allocator, v->starts, &v->start_room, v->count + 2, sizeof *v->starts, &status);
    SL_TRY(status);
    SL_TRY(grow_texts(v));
    if (is_integer) SL_TRY(grow_integers(v));
    if (size) memcpy(v->bytes + used, text, size);
    v->starts[v->count + 1] = need;
    *find_text_entry(v, text, size, hash) = make_text_entry(text, size, hash, v->count + 1);
    if (is_integer) {
        *find_integer_entry(v, value) = (integer_entry){value, v->count + 1};
        v->integer_count++;
    }
    *number = v->count++;
    return SL_OK;
}
