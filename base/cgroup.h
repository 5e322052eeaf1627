/* Control groups: limits that the system sets for groups of processes. */
#ifndef SL_BASE_CGROUP_H
#define SL_BASE_CGROUP_H

#include <stdint.h>

/* Returns the smallest memory limit, in bytes, of this process's groups and of the groups above them. UINT64_MAX: no
 * limit.
 * Parameters: `root` is put before each path; "" reads the system's own files. */
uint64_t sl_cgroup_memory(const char *root);

#endif
