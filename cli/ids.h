/* Lists of ids: their order, and the ids of a file as a filter. */
#ifndef CLI_IDS_H
#define CLI_IDS_H

#include <stddef.h>
#include <stdint.h>

/* The rising order of ids, for qsort and bsearch. */
int compare_ids(const void *a, const void *b);

/* Reports where an id of the file comes twice, or is the one that is reserved. Returns an exit status. */
int ids_check_distinct(const char *path, const uint64_t *ids, size_t n);

typedef struct id_filter {
    uint64_t *ids; /* rising, to be freed */
    size_t count;
} id_filter;

/* The ids of a file of one column. Returns an exit status. */
int id_filter_read(const char *path, id_filter *out);

/* An sl_accept_fn whose context is an id_filter: accepts the ids that it holds. */
int id_filter_accept(void *ctx, uint64_t id);

#endif
