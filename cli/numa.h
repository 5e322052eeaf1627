/* Memory nodes as the command tells of them: those of the machine, and those an index lies on. */
#ifndef CLI_NUMA_H
#define CLI_NUMA_H

#include "cli/json_out.h"

#include <shortlist.h>

/* What --numa asks for. */
typedef struct numa_choice {
    sl_numa_policy policy;
    size_t node;
} numa_choice;

/* Each node's CPUs and memory; nothing where this build or the system does not tell. */
void json_nodes(json *json);
void print_nodes(void);

/* Where the pages of an index's layer 0 lie; `path` is its file. Returns an exit status. */
int numa_of_index(const sl_index *index, const char *path, sl_index_numa *out);
void json_numa(json *json, const sl_index_numa *numa);
void print_numa(const sl_index_numa *numa);

#endif
