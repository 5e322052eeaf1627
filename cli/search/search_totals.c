#include "cli/search/search_totals.h"

#include <stddef.h>
#include <stdio.h>

/* Counts of queries by strategy, with their names in --json. */
static const struct {
    const char *name;
    size_t at;
} strategies[] = {{"exact", offsetof(sl_search_stats, exact)},
                  {"partitions", offsetof(sl_search_stats, partitions)},
                  {"walks", offsetof(sl_search_stats, walks)},
                  {"hops", offsetof(sl_search_stats, hops)}};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

static size_t count_of(const sl_search_stats *counts, size_t strategy) {
    return *(const size_t *)(const void *)((const char *)counts + strategies[strategy].at);
}

void search_totals_add(sl_search_stats *sum, const sl_search_stats *call) {
    sum->results += call->results;
    sum->evaluations += call->evaluations;
    sum->expansions += call->expansions;
    sum->cut += call->cut;
    for (size_t i = 0; i < STRATEGIES; i++)
        *(size_t *)(void *)((char *)sum + strategies[i].at) += count_of(call, i);
}

void json_strategies(json *json, const sl_search_stats *counts) {
    for (size_t i = 0; i < STRATEGIES; i++)
        json_count(json, strategies[i].name, count_of(counts, i));
}

void print_strategies(const sl_search_stats *counts) {
    const char *before = "";
    for (size_t i = 0; i < STRATEGIES; i++) {
        if (!count_of(counts, i)) continue;
        printf("%s%s %zu", before, strategies[i].name, count_of(counts, i));
        before = ", ";
    }
}
