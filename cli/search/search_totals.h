/* The work of searches, added up and printed. */
#ifndef CLI_SEARCH_SEARCH_TOTALS_H
#define CLI_SEARCH_SEARCH_TOTALS_H

#include "cli/common/json_out.h"

#include <shortlist.h>

/* Adds one call's counts. */
void search_totals_add(sl_search_stats *sum, const sl_search_stats *call);

/* Writes how many filtered queries ended with each strategy, as members of the open object. */
void json_strategies(json *json, const sl_search_stats *counts);

/* Prints the same counts if they are above 0, such as "partitions 100, walks 1900". */
void print_strategies(const sl_search_stats *counts);

#endif
