/* The needs of an index before it is built: info --plan. */
#ifndef CLI_INDEX_PLAN_H
#define CLI_INDEX_PLAN_H

#include <shortlist.h>

typedef struct plan_options {
    size_t dim, n, m;
    int metric, dtype, codes, refine; /* dtype in the order of sl_dtype; codes -1: the input's */
    int tags, keys;
    const char *output; /* where its file would be; NULL: in the current folder */
} plan_options;

/* Tells the bytes of such an index in each place, and whether this machine has them. Returns an exit status. */
int print_plan(const plan_options *options, int as_json);

#endif
