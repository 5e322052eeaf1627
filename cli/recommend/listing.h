/* Recommended items as blocks of text, .csv or .json. Blocks are written as they come, to standard output or to a
 * file that appears whole or not at all. */
#ifndef CLI_RECOMMEND_LISTING_H
#define CLI_RECOMMEND_LISTING_H

#include "cli/recommend/funnel.h"

#define LISTING_COLUMNS_MAX 32

typedef enum listing_kind { LISTING_TEXT, LISTING_CSV, LISTING_JSON } listing_kind;

typedef struct listing listing;

/* Opens a listing. `path` NULL: standard output, where the JSON object is left open for more members (listing_json).
 * `columns`: names of the items' columns to show, with commas between them, or NULL. Returns an exit status; *out is
 * NULL on failure. */
int listing_create(listing_kind kind, const char *path, const sl_items *items, const char *columns, listing **out);

/* An answers_fn, with a listing as its context. */
int listing_take(void *ctx, const answers *answers);

/* The open object of a LISTING_JSON on standard output, for its further members and its end. */
json *listing_json(listing *listing);

/* Puts the file in place, or prints what is left, and frees. */
int listing_commit(listing *listing);
/* Forgets the file; takes NULL. */
void listing_discard(listing *listing);

#endif
