/* build --dry-run: estimates a build's time, memory and disk from builds of samples. */
#ifndef CLI_INDEX_DRY_RUN_H
#define CLI_INDEX_DRY_RUN_H

#include "cli/index/add_vectors.h"

typedef struct dry_run {
    const sl_index_params *params; /* of the index */
    const addition *addition;      /* prepared, but not added */
    const char *base_path, *output;
    size_t room, max_memory; /* 0: none, no limit */
    sl_layout layout;
    int json;
} dry_run;

/* Prints what the build will take. Returns an exit status. */
int dry_run_print(const dry_run *dry);

#endif
