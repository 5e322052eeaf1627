/* What the processor can run, read once: the tiers of sl_isa, and the cap of SHORTLIST_MAX_ISA. */
#ifndef SL_BASE_CPU_H
#define SL_BASE_CPU_H

#include <shortlist.h>

/* Bit (1 << tier) for each tier this processor and system can run and this build holds. Scalar always. */
unsigned sl_cpu_tiers(void);

/* The best available tier not above the cap; an unknown word in SHORTLIST_MAX_ISA caps at scalar. Read once. */
sl_isa sl_cpu_tier(void);

/* The tier SHORTLIST_MAX_ISA names, or SL_ISA_COUNT where it is not set or names none. */
sl_isa sl_cpu_cap(void);

int sl_cpu_has_crc32c(void);

#endif
