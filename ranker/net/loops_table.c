#include "base/cpu.h"
#include "ranker/net/loops.h"

/* The vnni tiers share the tables of lower tiers, because integer instructions do nothing for these loops. On NEON, the
 * scalar table's four lanes are NEON registers. */
static const sl_loops *const tables[SL_ISA_COUNT] = {
    [SL_ISA_SCALAR] = &sl_loops_scalar,
#if defined(__x86_64__)
    [SL_ISA_AVX2] = &sl_loops_avx2,         [SL_ISA_AVXVNNI] = &sl_loops_avx2,   [SL_ISA_AVX512BW] = &sl_loops_avx512,
    [SL_ISA_AVX512VNNI] = &sl_loops_avx512, [SL_ISA_AMXINT8] = &sl_loops_avx512,
#elif defined(__aarch64__)
    [SL_ISA_NEON] = &sl_loops_scalar,
#endif
};

const sl_loops *sl_loops_of(sl_isa isa) {
    if ((unsigned)isa >= SL_ISA_COUNT || !(sl_cpu_tiers() >> isa & 1)) return NULL;
    return tables[isa];
}

const sl_loops *sl_loops_get(void) {
    return tables[sl_cpu_tier()];
}
