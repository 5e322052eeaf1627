/* Bounded memory of a handle: large blocks beyond the bound lie in files without names. The system keeps these in
 * memory as far as it can, and else writes them to the device. */
#ifndef SL_STORAGE_SPILL_H
#define SL_STORAGE_SPILL_H

#include "base/memory.h"

/* Smaller blocks always lie in memory. */
#define SL_SPILL_LEAST ((size_t)1 << 20)

typedef struct sl_spill sl_spill;

/* Makes a handle's memory.
 * Parameters: `limit`: the most bytes that blocks take of main memory. Large ones get three quarters of it, so that the
 * others find room. `path`: blocks lie in files in the folder of its last part; NULL: all lie in memory. */
sl_status sl_spill_open(const sl_allocator *base, size_t limit, const char *path, sl_spill **out);
/* Frees the allocator. All its blocks must be freed. Takes NULL. */
void sl_spill_close(sl_spill *spill);

/* The handle's allocator, valid until sl_spill_close. A child of fork() shares blocks that lie in files. */
sl_allocator sl_spill_allocator(sl_spill *spill);

/* If the bound or a file made an allocation fail since the last call, returns the status with a message that says so;
 * else returns `status`. `spill` may be NULL. Errors: SL_ENOMEM (the bound), SL_ENOSPC, SL_EIO. */
sl_status sl_spill_explain(sl_spill *spill, sl_status status);

#endif
