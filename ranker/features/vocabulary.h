/* Texts, numbered in the order in which they were added. They are found by text; decimal integers also by number. */
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

/* Return SIZE_MAX if the vocabulary lacks it. An integer is found as its decimal text is. */
size_t sl_vocabulary_find(const sl_vocabulary *vocabulary, const char *text, size_t size);
size_t sl_vocabulary_find_integer(const sl_vocabulary *vocabulary, int64_t value);

/* Gets the number of the text. Adds the text if it is new and there are fewer than `limit`. *number is SIZE_MAX, with
 * SL_OK, if there are as many. Errors: SL_ENOMEM; the vocabulary is then unchanged. */
sl_status sl_vocabulary_add(sl_vocabulary *vocabulary, const char *text, size_t size, size_t limit, size_t *number);

/* The hash that gives the ids of unseen and of hashed values (docs/FORMAT.md): XXH3, 64 bits, seed 0. */
uint64_t sl_text_hash(const char *text, size_t size);

#endif
