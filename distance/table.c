#include "base/cpu.h"
#include "distance/lanes.h"

/* sl_cpu_tiers() reports the same tiers for the same architectures. */
static const sl_kernels *const tables[SL_ISA_COUNT] = {
    [SL_ISA_SCALAR] = &sl_kernels_scalar,
#if defined(__x86_64__)
    [SL_ISA_AVX2] = &sl_kernels_avx2,         [SL_ISA_AVXVNNI] = &sl_kernels_avxvnni,
    [SL_ISA_AVX512BW] = &sl_kernels_avx512bw, [SL_ISA_AVX512VNNI] = &sl_kernels_avx512vnni,
    [SL_ISA_AMXINT8] = &sl_kernels_amxint8,
#elif defined(__aarch64__)
    [SL_ISA_NEON] = &sl_kernels_neon,
#endif
};

const sl_kernels *sl_kernels_of(sl_isa isa) {
    if ((unsigned)isa >= SL_ISA_COUNT || !(sl_cpu_tiers() >> isa & 1)) return NULL;
    return tables[isa];
}

const sl_kernels *sl_kernels_best(void) {
    return tables[sl_cpu_tier()];
}
