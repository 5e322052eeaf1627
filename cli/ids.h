/* Lists of ids: their order, and a file's ids as a filter of an index. */
#ifndef CLI_IDS_H
#define CLI_IDS_H

#include <shortlist.h>

/* Compares ids in rising order, for qsort and bsearch. */
int compare_ids(const void *a, const void *b);

/* Reports an id of the file that comes twice or is reserved. Returns an exit status. */
int ids_check_distinct(const char *path, const uint64_t *ids, size_t n);

/* Makes a filter of the index that allows the ids of a file of one column. Returns an exit status. */
int id_filter_read(const char *path, sl_index *index, sl_filter **out);

#endif
