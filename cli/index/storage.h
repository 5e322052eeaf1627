/* The place of an open index, in memory and on storage. */
#ifndef CLI_INDEX_STORAGE_H
#define CLI_INDEX_STORAGE_H

#include "cli/common/json_out.h"

#include <shortlist.h>

/* Print the index's medium and pages, and the log of a file with room. print_storage ends in a newline. */
void json_storage(json *json, const sl_index_storage *storage);
void print_storage(const sl_index_storage *storage);

/* Waits until the copy in DRAM (--tier) is complete. Returns an exit status. */
int await_tier(const sl_index *index, const char *path);

#endif
