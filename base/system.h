/* What the machine lets this process have. */
#ifndef SL_BASE_SYSTEM_H
#define SL_BASE_SYSTEM_H

#include <stdint.h>

#define SL_NODE_FOLDER "/sys/devices/system/node"

/* Bytes of memory: the machine's, or fewer where a control group limits this process and says so; 0 where nobody
 * tells. */
uint64_t sl_system_memory(void);

#endif
