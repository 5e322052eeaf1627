/* Texts, numbered in the order of their addition. Lookups take a text, or the number that a decimal text stands for. */
#ifndef SL_RANKER_FEATURES_VOCABULARY_H
#define SL_RANKER_FEATURES_VOCABULARY_H

#include "base/memory.h"

typedef struct sl_vocabulary sl_vocabulary;

sl_status sl_vocabulary_create(const sl_allocator *allocator, sl_vocabulary **out);
void sl_vocabulary_free(sl_vocabulary *vocabulary);
size_t sl_vocabulary_count(const sl_vocabulary *vocabulary);
size_t sl_vocabulary_bytes(const sl_vocabulary *vocabulary); /* of memory */
/* The text does not end in NUL. It is valid until the next add. */
const char *sl_vocabulary_text(const sl_vocabulary *vocabulary, size_t i, size_t *size);

/* Return the text's number, or SIZE_MAX if the vocabulary lacks it. An integer is found as its decimal text is. */
size_t sl_vocabulary_find(const sl_vocabulary *vocabulary, const char *text, size_t size);
size_t sl_vocabulary_find_integer(const sl_vocabulary *vocabulary, int64_t value);

/* Gets the number of the text. Adds a new text if the vocabulary has fewer than `limit` texts. If it is full, *number
 * is SIZE_MAX with SL_OK.
 * Errors: SL_ENOMEM; the vocabulary is then unchanged. */
sl_status sl_vocabulary_add(sl_vocabulary *vocabulary, const char *text, size_t size, size_t limit, size_t *number);

/* The hash behind the ids of unseen and hashed values (docs/FORMAT.md): XXH3, 64 bits, seed 0. */
uint64_t sl_text_hash(const char *text, size_t size);

#endif
