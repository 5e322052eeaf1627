/* Lists of ids: their order, and a file's ids as a filter. */
#ifndef CLI_IDS_H
#define CLI_IDS_H

#include <stddef.h>
#include <stdint.h>

/* Compares ids in rising order, for qsort and bsearch. */
int compare_ids(const void *a, const void *b);

/* Reports an id of the file that comes twice or is reserved. Returns an exit status. */
int ids_check_distinct(const char *path, const uint64_t *ids, size_t n);

typedef struct id_filter {
    uint64_t *ids; /* in rising order, to be freed */
    size_t count;
} id_filter;

/* Reads the ids of a file of one column. Returns an exit status. */
int id_filter_read(const char *path, id_filter *out);

/* An sl_accept_fn whose context is an id_filter: accepts the filter's ids. */
int id_filter_accept(void *ctx, uint64_t id);

#endif
