/* The resources of the machine that this process may use. */
#ifndef SL_BASE_SYSTEM_H
#define SL_BASE_SYSTEM_H

#include <stdint.h>

#define SL_NODE_FOLDER "/sys/devices/system/node"

/* Returns the bytes of memory: the machine's, or fewer if a control group limits this process. Returns 0 if neither is
 * known. */
uint64_t sl_system_memory(void);

#endif
