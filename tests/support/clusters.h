/* Vectors like embeddings: clustered, of low intrinsic dimension, of log-normal lengths. Synthetic and seeded. */
#ifndef SL_TESTS_CLUSTERS_H
#define SL_TESTS_CLUSTERS_H

#include <shortlist.h>

/* Returns n vectors of dim floats in a new block to free(). Vectors of one seed come from the same clusters whatever n
 * is, and begin with those of a smaller n. So the last of a set are queries like the others but not among them.
 * `spread` is the standard deviation of the logarithm of the lengths. */
float *clusters_make(size_t n, size_t dim, double spread, uint64_t seed);

/* Returns `count` elements as another type in a new block to free(). Integers are scaled so that the largest magnitude
 * fills their range; u8 has its zero at 128. */
void *clusters_as(sl_dtype dtype, const float *from, size_t count);

#endif
