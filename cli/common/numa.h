/* Memory nodes: the machine's, and the nodes that hold an index. */
#ifndef CLI_COMMON_NUMA_H
#define CLI_COMMON_NUMA_H

#include "cli/common/json_out.h"

#include <shortlist.h>

/* Prints each node's CPUs and memory. Prints nothing if the build or the system does not know them. */
void json_nodes(json *json);
void print_nodes(void);

/* Finds the nodes of an index's layer 0; `path` is its file. Returns an exit status. */
int numa_of_index(const sl_index *index, const char *path, sl_index_numa *out);
void json_numa(json *json, const sl_index_numa *numa);
void print_numa(const sl_index_numa *numa);

#endif
