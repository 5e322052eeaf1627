/* Texts numbered in the order of their adding, found by text or, where they are decimal integers, by number. */
#ifndef SL_RANKER_VOCABULARY_H
#define SL_RANKER_VOCABULARY_H

#include "base/memory.h"

typedef struct sl_vocabulary sl_vocabulary;

sl_status sl_vocabulary_create(const sl_allocator *allocator, sl_vocabulary **out);
void sl_vocabulary_free(sl_vocabulary *vocabulary);
size_t sl_vocabulary_count(const sl_vocabulary *vocabulary);
size_t sl_vocabulary_bytes(const sl_vocabulary *vocabulary); /* of memory */
/* Not ended by NUL; valid until the next add. */
const char *sl_vocabulary_text(const sl_vocabulary *vocabulary, size_t i, size_t *size);

/* SIZE_MAX where it is not there. An integer is found as its decimal text is. */
size_t sl_vocabulary_find(const sl_vocabulary *vocabulary, const char *text, size_t size);
size_t sl_vocabulary_find_integer(const sl_vocabulary *vocabulary, int64_t value);

/* Number of the text, which is added where it is not there and there are fewer than `limit`; SIZE_MAX, with SL_OK,
 * where there are as many. Errors: SL_ENOMEM; the vocabulary is then as it was. */
sl_status sl_vocabulary_add(sl_vocabulary *vocabulary, const char *text, size_t size, size_t limit, size_t *number);

/* The hash that ids of unseen and of hashed values come from (docs/FORMAT.md): XXH3, 64 bits, seed 0. */
uint64_t sl_text_hash(const char *text, size_t size);

#endif
