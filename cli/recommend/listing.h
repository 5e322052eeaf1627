/* Recommended items as text, .csv or .json, written block by block: to standard output, or to a file that appears whole
 * or not at all. */
#ifndef CLI_RECOMMEND_LISTING_H
#define CLI_RECOMMEND_LISTING_H

#include "cli/recommend/funnel.h"

#define LISTING_COLUMNS_MAX 32

typedef enum listing_kind { LISTING_TEXT, LISTING_CSV, LISTING_JSON } listing_kind;

typedef struct listing listing;

/* Opens a listing. `path` NULL: standard output; the JSON object then stays open for more members (listing_json).
 * `columns`: names of item columns to show, separated by commas, or NULL. Returns an exit status. *out is NULL on
 * failure. */
int listing_create(listing_kind kind, const char *path, const sl_items *items, const char *columns, listing **out);

/* An answers_fn, with a listing as its context. */
int listing_take(void *ctx, const answers *answers);

/* The open object of a LISTING_JSON on standard output. The caller adds members and ends it. */
json *listing_json(listing *listing);

/* Puts the file in place, or prints the rest, and frees. */
int listing_commit(listing *listing);
/* Removes the file and frees. NULL is allowed. */
void listing_discard(listing *listing);

#endif
