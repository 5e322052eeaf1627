/* build --dry-run: time, memory and disk that a build will take, from building samples of its base. */
#ifndef CLI_INDEX_DRY_RUN_H
#define CLI_INDEX_DRY_RUN_H

#include "cli/index/add_vectors.h"

typedef struct dry_run {
    const sl_index_params *params; /* of the index */
    const adding *adding;          /* prepared, and not run */
    const char *base_path, *output;
    size_t room, max_memory; /* 0: none, no limit */
    sl_layout layout;
    int json;
} dry_run;

/* Tells what the build will take. Returns an exit status. */
int dry_run_tell(const dry_run *dry);

#endif
