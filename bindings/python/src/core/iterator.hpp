// An iterator of the library as Python's objects hold it: the results of one query, page by page.
#pragma once

#include "index.hpp"

void define_iterator(nb::module_ &m);
