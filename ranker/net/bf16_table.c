#include "base/cpu.h"
#include "ranker/net/bf16.h"

static const sl_bf16_loops *const tables[SL_ISA_COUNT] = {
    [SL_ISA_SCALAR] = &sl_bf16_scalar,
#if defined(__x86_64__)
    [SL_ISA_AVX2] = &sl_bf16_avx2,         [SL_ISA_AVXVNNI] = &sl_bf16_avx2,
    [SL_ISA_AVX512BW] = &sl_bf16_avx512bw, [SL_ISA_AVX512VNNI] = &sl_bf16_avx512bw,
    [SL_ISA_AMXINT8] = &sl_bf16_avx512bw,
#elif defined(__aarch64__)
    [SL_ISA_NEON] = &sl_bf16_scalar,
#endif
};

static const sl_bf16_loops *table_for(sl_isa isa) {
#if defined(__x86_64__)
    if ((isa == SL_ISA_AVX512VNNI || isa == SL_ISA_AMXINT8) && sl_cpu_has_avx512bf16()) return &sl_bf16_avx512bf16;
#endif
    return tables[isa];
}

const sl_bf16_loops *sl_bf16_of(sl_isa isa) {
    if ((unsigned)isa >= SL_ISA_COUNT || !(sl_cpu_tiers() >> isa & 1)) return NULL;
    return table_for(isa);
}

const sl_bf16_loops *sl_bf16_get(void) {
    return table_for(sl_cpu_tier());
}

sl_status sl_bf16_pack(const uint16_t *numbers, size_t in, size_t out, const sl_allocator *allocator,
                       sl_bf16_weights *to) {
    const sl_panels panels = {.in = in, .out = out, .group = SL_BF16_GROUP, .size = sizeof *numbers};
    void *block;
    *to = (sl_bf16_weights){.in = in, .out = out};
    SL_TRY(sl_panels_pack(&panels, numbers, allocator, &block, &to->bytes));
    to->numbers = block;
    return SL_OK;
}

void sl_bf16_weights_free(sl_bf16_weights *weights, const sl_allocator *allocator) {
    sl_mem_free(allocator, weights->numbers, weights->bytes);
    *weights = (sl_bf16_weights){0};
}
