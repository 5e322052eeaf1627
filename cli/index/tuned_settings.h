/* Prints the tuned settings that an index stores. */
#ifndef CLI_INDEX_TUNED_SETTINGS_H
#define CLI_INDEX_TUNED_SETTINGS_H

#include "cli/common/json_out.h"

#include <shortlist.h>

/* Writes the array "tuned": settings first to first + count - 1 of the index. */
void json_tuned(json *json, const sl_index *index, size_t first, size_t count);

/* Prints the same as a table on stdout, then the reasons for targets that tuning did not reach. */
void print_tuned(const sl_index *index, size_t first, size_t count);

#endif
