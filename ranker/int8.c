#include "ranker/int8.h"

#include "base/cpu.h"

#include <float.h>

static const sl_int8_loops *const tables[SL_ISA_COUNT] = {
    [SL_ISA_SCALAR] = &sl_int8_scalar,
#if defined(__x86_64__)
    [SL_ISA_AVX2] = &sl_int8_avx2,         [SL_ISA_AVXVNNI] = &sl_int8_avxvnni,
    [SL_ISA_AVX512BW] = &sl_int8_avx512bw, [SL_ISA_AVX512VNNI] = &sl_int8_avx512vnni,
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
    /* Halves, since the difference of two floats may be no float. */
    float scale = (to / 2 - from / 2) / 127.5f;
    if (!(scale >= FLT_MIN && scale <= FLT_MAX)) return (sl_int8_range){1, 0};
    float zero = -from / scale;
    return (sl_int8_range){scale, zero > 255 ? 255 : (int32_t)(zero + 0.5f)};
}

static size_t panel_of(size_t out, size_t from) {
    const size_t panel = SL_INT8_BLOCK * SL_INT8_BLOCKS;
    size_t left = sl_round_up(out - from, SL_INT8_BLOCK);
    return left < panel ? left : panel;
}

static void pack(const int8_t *codes, sl_int8_weights *to) {
    const size_t panel = SL_INT8_BLOCK * SL_INT8_BLOCKS, groups = sl_int8_groups(to->in);
    int8_t *at = to->codes;
    for (size_t from = 0; from < to->out; from += panel) {
        size_t width = panel_of(to->out, from);
        for (size_t i = 0; i < to->in; i++) {
            int8_t *group = at + i / SL_INT8_GROUP * width * SL_INT8_GROUP + i % SL_INT8_GROUP;
            for (size_t o = from; o < to->out && o < from + width; o++) {
                group[(o - from) * SL_INT8_GROUP] = codes[i * to->out + o];
                to->column_sums[o] += codes[i * to->out + o];
            }
        }
        at += groups * width * SL_INT8_GROUP;
    }
}

sl_status sl_int8_pack(const int8_t *codes, size_t in, size_t out, const sl_allocator *allocator, sl_int8_weights *to) {
    size_t padded = sl_round_up(out, SL_INT8_BLOCK), bytes;
    void *block;
    *to = (sl_int8_weights){.in = in, .out = out};
    if (!sl_mul(sl_int8_pitch(in), padded, &bytes))
        return sl_fail(SL_ENOMEM, "a layer of %zu times %zu weights does not fit the address space", in, out);
    SL_TRY(sl_mem_alloc(allocator, bytes, &block));
    to->codes = block;
    to->bytes = bytes;
    sl_status status = sl_mem_alloc(allocator, padded * sizeof *to->column_sums, &block);
    if (status != SL_OK) {
        sl_int8_weights_free(to, allocator);
        return status;
    }
    to->column_sums = block;
    pack(codes, to);
    return SL_OK;
}

void sl_int8_weights_free(sl_int8_weights *weights, const sl_allocator *allocator) {
    sl_mem_free(allocator, weights->codes, weights->bytes);
    sl_mem_free(allocator, weights->column_sums,
                sl_round_up(weights->out, SL_INT8_BLOCK) * sizeof *weights->column_sums);
    *weights = (sl_int8_weights){0};
}
