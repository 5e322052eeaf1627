/* The real system's sl_numa_ops, through libnuma if this build has it. */
#ifndef SL_BASE_NUMA_SYSTEM_H
#define SL_BASE_NUMA_SYSTEM_H

#include "base/memory.h"

/* Returns *given with empty entries filled from the system's table, or that table if `given` is NULL. */
sl_numa_ops sl_numa_ops_of(const sl_numa_ops *given);

#endif
