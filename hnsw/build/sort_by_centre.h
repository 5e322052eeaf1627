/* Sorts numbers by the centre that each belongs to. */
#ifndef SL_HNSW_BUILD_SORT_BY_CENTRE_H
#define SL_HNSW_BUILD_SORT_BY_CENTRE_H

#include <stddef.h>
#include <stdint.h>

/* Counting sort of the numbers 0 to n - 1 by of[i], in rising order within a centre. Numbers with of[i] == SL_NONE are
 * left out. ends: `count` entries, which get the end of each centre's numbers in `members`. */
void sl_sort_by_centre(const uint32_t *of, size_t n, size_t count, uint32_t *ends, uint32_t *sorted);

#endif
