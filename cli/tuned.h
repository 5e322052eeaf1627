/* Settings that tuning stored in an index, as they are told. */
#ifndef CLI_TUNED_H
#define CLI_TUNED_H

#include "cli/json_out.h"

#include <shortlist.h>

/* The array "tuned" of settings first to first + count - 1 of the index. */
void json_tuned(json *json, const sl_index *index, size_t first, size_t count);

/* The same as a table on stdout, and below it why targets were not reached. */
void print_tuned(const sl_index *index, size_t first, size_t count);

#endif
