/* Control groups: limits that the system sets for groups of processes. */
#ifndef SL_BASE_CGROUP_H
#define SL_BASE_CGROUP_H

#include <stdint.h>

/* The smallest limit of memory, in bytes, of the groups of this process and of the groups that hold them. UINT64_MAX:
 * none.
 * Parameters: `root` goes before each path, "" for the system's own files. */
uint64_t sl_cgroup_memory(const char *root);

#endif
