/* The counts of an index file as metrics for Prometheus. */
#ifndef CLI_INSPECT_INDEX_METRICS_H
#define CLI_INSPECT_INDEX_METRICS_H

#include <shortlist.h>

/* The facts of an index that `info` prints. */
typedef struct index_facts {
    const char *path;
    sl_index_stats stats;
    sl_index_storage storage;
    sl_index_numa numa;
    int has_numa;
    sl_epoch_holder *holders; /* searches of the file that run in other processes; freed by the caller */
    size_t holder_count;
    size_t sample; /* vectors that the check searched for; 0: there was none */
    sl_check_report report;
} index_facts;

/* The number of the holder that began first. There must be one. */
size_t oldest_holder(const index_facts *facts);

/* Prints them on stdout. Returns an exit status. */
int print_index_metrics(const index_facts *facts);

#endif
