/* What an index lies on, and what one would take, as info tells of them. */
#ifndef CLI_STORED_H
#define CLI_STORED_H

#include "cli/json_out.h"

#include <shortlist.h>

/* The medium of an index that is open, its pages, and of a file with room its log; print_storage ends in a newline. */
void json_storage(json *json, const sl_index_storage *storage);
void print_storage(const sl_index_storage *storage);

/* Waits until a tier in memory that is being filled is whole. Returns an exit status. */
int await_tier(const sl_index *index, const char *path);

/* An index that is not there yet. */
typedef struct plan_options {
    size_t dim, n, m;
    int metric, dtype, codes, refine; /* dtype in the order of sl_dtype; codes -1: the input's */
    const char *output;               /* where its file would be; NULL: in the current folder */
} plan_options;

/* What it would take and where, and whether this machine has that. Returns an exit status. */
int print_plan(const plan_options *options, int as_json);

#endif
