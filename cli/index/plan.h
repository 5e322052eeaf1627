/* info --plan: the bytes of an index before it is built. */
#ifndef CLI_INDEX_PLAN_H
#define CLI_INDEX_PLAN_H

#include <shortlist.h>

typedef struct plan_options {
    size_t dim, n, m;
    int metric, dtype, codes, refine; /* dtype in the order of sl_dtype; codes -1: the input's */
    int tags, keys;
    const char *output; /* the planned file; NULL: in the current folder */
} plan_options;

/* Prints the bytes of such an index in each place, and whether they fit this machine. Returns an exit status. */
int print_plan(const plan_options *options, int as_json);

#endif
