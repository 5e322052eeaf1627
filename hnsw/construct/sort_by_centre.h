/* Sorts numbers by the centre that each belongs to. */
#ifndef SL_HNSW_CONSTRUCT_SORT_BY_CENTRE_H
#define SL_HNSW_CONSTRUCT_SORT_BY_CENTRE_H

#include <stddef.h>
#include <stdint.h>

/* Sorts the numbers i from 0 to n - 1 by their centre of[i], rising within a centre. Numbers of centre SL_NONE are left
 * out. ends: `count` entries; each gets the end of its centre's numbers in `sorted`. */
void sl_sort_by_centre(const uint32_t *of, size_t n, size_t count, uint32_t *ends, uint32_t *sorted);

#endif
