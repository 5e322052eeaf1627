/* The net in plain double arithmetic, for tests to compare the ranker's nets with. */
#ifndef SL_TESTS_NET_REFERENCE_H
#define SL_TESTS_NET_REFERENCE_H

#include "ranker/net/net.h"

/* Returns `count` numbers in (-scale, scale], of a seed, in a new block to free(). */
float *reference_numbers(size_t count, double scale, uint64_t seed);

/* Returns weights of a net that keeps values of about 1 about 1. */
float *reference_weights(const sl_net_shape *shape, uint64_t seed);

double reference_act(double z, sl_activation activation);

/* Computes the outputs of one row; `inputs` has width[0] numbers, `out` width[layers]. */
void reference_forward(const sl_net_shape *shape, const double *weights, const double *inputs, double *out);

double *reference_doubles(const float *from, size_t count);

#endif
