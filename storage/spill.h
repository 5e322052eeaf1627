/* Memory of a handle that is bounded: large blocks that the bound has no room for lie in files without names. The
 * system keeps these in memory as far as it can, and writes them to the device where it must. */
#ifndef SL_STORAGE_SPILL_H
#define SL_STORAGE_SPILL_H

#include "base/memory.h"

/* Smaller blocks always lie in memory. */
#define SL_SPILL_LEAST ((size_t)1 << 20)

typedef struct sl_spill sl_spill;

/* Makes the memory of a handle.
 * Parameters: `limit`: bytes that blocks take of main memory at most. Large ones take three quarters of them, so that
 * the others find room. `path`: blocks lie in files in the folder of its last part; NULL: all lie in memory. */
sl_status sl_spill_open(const sl_allocator *base, size_t limit, const char *path, sl_spill **out);
/* Frees the allocator itself: all its blocks were freed before. Takes NULL. */
void sl_spill_close(sl_spill *spill);

/* The allocator of the handle, valid until the close. A child of fork() shares blocks that lie in files. */
sl_allocator sl_spill_allocator(sl_spill *spill);

/* Says why an allocation failed since the last call, where the bound or a file was the reason. Returns the status with
 * that message, or `status` as it is. `spill` may be NULL. Errors: SL_ENOMEM (the bound), SL_ENOSPC, SL_EIO. */
sl_status sl_spill_explain(sl_spill *spill, sl_status status);

#endif
