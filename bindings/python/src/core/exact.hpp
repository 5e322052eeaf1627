// Exact search, for ground truth and small sets.
#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

// The k nearest rows of x for each row of q; fills ids_out and scores_out, (nq, k) each. dtype is of both.
void exact_search(nb::handle x, nb::handle q, int dtype, int metric, size_t dim, size_t k, size_t threads,
                  nb::handle ids_out, nb::handle scores_out);
