/* The system's answers about memory nodes, by libnuma where the build has it. */
#ifndef SL_BASE_NUMA_SYSTEM_H
#define SL_BASE_NUMA_SYSTEM_H

#include "base/memory.h"

/* Returns *given with the system's entries in the places that it leaves empty, or the system's table if `given` is
 * NULL. */
sl_numa_ops sl_numa_ops_of(const sl_numa_ops *given);

#endif
