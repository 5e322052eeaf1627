/* The tiers of sl_isa that this processor runs, and the cap that SHORTLIST_MAX_ISA sets. Both are read once. */
#ifndef SL_BASE_CPU_H
#define SL_BASE_CPU_H

#include <shortlist.h>

/* Returns bit (1 << tier) for each tier that this build has and this process can run. Scalar is always among them. The
 * first call asks Linux for AMX, unless the cap is below it. */
unsigned sl_cpu_tiers(void);

/* Returns the best available tier up to the cap. An unknown word in SHORTLIST_MAX_ISA caps at scalar. */
sl_isa sl_cpu_tier(void);

/* Returns the tier that SHORTLIST_MAX_ISA names, or SL_ISA_COUNT if it is unset or names no tier. */
sl_isa sl_cpu_cap(void);

int sl_cpu_has_crc32c(void);
/* Ignores the cap of SHORTLIST_MAX_ISA. */
int sl_cpu_has_avx512bf16(void);

#endif
