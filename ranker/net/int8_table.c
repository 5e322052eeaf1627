#include "base/cpu.h"
#include "ranker/net/int8.h"

#include <float.h>

static const sl_int8_loops *const tables[SL_ISA_COUNT] = {
    [SL_ISA_SCALAR] = &sl_int8_scalar,
#if defined(__x86_64__)
    [SL_ISA_AVX2] = &sl_int8_avx2,          [SL_ISA_AVXVNNI] = &sl_int8_avxvnni,
    [SL_ISA_AVX512BW] = &sl_int8_avx512bw,  [SL_ISA_AVX512VNNI] = &sl_int8_avx512vnni,
    [SL_ISA_AMXINT8] = &sl_int8_avx512vnni,
#elif defined(__aarch64__)
    [SL_ISA_NEON] = &sl_int8_scalar,
#endif
};

const sl_int8_loops *sl_int8_of(sl_isa isa) {
    if ((unsigned)isa >= SL_ISA_COUNT || !(sl_cpu_tiers() >> isa & 1)) return NULL;
    return tables[isa];
}

const sl_int8_loops *sl_int8_get(void) {
    return tables[sl_cpu_tier()];
}

sl_int8_range sl_int8_range_of(float low, float high) {
    float from = low < 0 ? low : 0, to = high > 0 ? high : 0;
    /* Halves both ends first, because their difference can overflow. */
    float scale = (to / 2 - from / 2) / 127.5f;
    if (!(scale >= FLT_MIN && scale <= FLT_MAX)) return (sl_int8_range){1, 0};
    float zero = -from / scale;
    return (sl_int8_range){scale, zero > 255 ? 255 : (int32_t)(zero + 0.5f)};
}

static void sum_columns(const int8_t *codes, sl_int8_weights *to) {
    for (size_t i = 0; i < to->in; i++)
        for (size_t o = 0; o < to->out; o++)
            to->column_sums[o] += codes[i * to->out + o];
}

sl_status sl_int8_pack(const int8_t *codes, size_t in, size_t out, const sl_allocator *allocator, sl_int8_weights *to) {
    const sl_panels panels = {.in = in, .out = out, .group = SL_INT8_GROUP, .size = sizeof *codes};
    void *block;
    *to = (sl_int8_weights){.in = in, .out = out};
    SL_TRY(sl_panels_pack(&panels, codes, allocator, &block, &to->bytes));
    to->codes = block;
    sl_status status = sl_mem_alloc(allocator, sl_round_up(out, SL_PANEL_BLOCK) * sizeof *to->column_sums, &block);
    if (status != SL_OK) {
        sl_int8_weights_free(to, allocator);
        return status;
    }
    to->column_sums = block;
    sum_columns(codes, to);
    return SL_OK;
}

void sl_int8_weights_free(sl_int8_weights *weights, const sl_allocator *allocator) {
    sl_mem_free(allocator, weights->codes, weights->bytes);
    SL_FREE_ARRAY(allocator, weights->column_sums, sl_round_up(weights->out, SL_PANEL_BLOCK));
    *weights = (sl_int8_weights){0};
}
