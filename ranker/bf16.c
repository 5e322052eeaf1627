#include "ranker/bf16.h"

#include "base/cpu.h"

static const sl_bf16_loops *const tables[SL_ISA_COUNT] = {
    [SL_ISA_SCALAR] = &sl_bf16_scalar,
#if defined(__x86_64__)
    [SL_ISA_AVX2] = &sl_bf16_avx2,         [SL_ISA_AVXVNNI] = &sl_bf16_avx2,
    [SL_ISA_AVX512BW] = &sl_bf16_avx512bw, [SL_ISA_AVX512VNNI] = &sl_bf16_avx512bw,
#elif defined(__aarch64__)
    [SL_ISA_NEON] = &sl_bf16_scalar,
#endif
};

static const sl_bf16_loops *table_of(sl_isa isa) {
#if defined(__x86_64__)
    if (isa == SL_ISA_AVX512VNNI && sl_cpu_has_avx512bf16()) return &sl_bf16_avx512bf16;
#endif
    return tables[isa];
}

const sl_bf16_loops *sl_bf16_of(sl_isa isa) {
    if ((unsigned)isa >= SL_ISA_COUNT || !(sl_cpu_tiers() >> isa & 1)) return NULL;
    return table_of(isa);
}

const sl_bf16_loops *sl_bf16_get(void) {
    return table_of(sl_cpu_tier());
}

static size_t panel_of(size_t out, size_t from) {
    const size_t panel = SL_BF16_BLOCK * SL_BF16_BLOCKS;
    size_t left = sl_round_up(out - from, SL_BF16_BLOCK);
    return left < panel ? left : panel;
}

static void pack(const uint16_t *numbers, sl_bf16_weights *to) {
    const size_t panel = SL_BF16_BLOCK * SL_BF16_BLOCKS, groups = sl_bf16_groups(to->in);
    uint16_t *at = to->numbers;
    for (size_t from = 0; from < to->out; from += panel) {
        size_t width = panel_of(to->out, from);
        for (size_t i = 0; i < to->in; i++) {
            uint16_t *group = at + i / SL_BF16_GROUP * width * SL_BF16_GROUP + i % SL_BF16_GROUP;
            for (size_t o = from; o < to->out && o < from + width; o++)
                group[(o - from) * SL_BF16_GROUP] = numbers[i * to->out + o];
        }
        at += groups * width * SL_BF16_GROUP;
    }
}

sl_status sl_bf16_pack(const uint16_t *numbers, size_t in, size_t out, const sl_allocator *allocator,
                       sl_bf16_weights *to) {
    size_t bytes;
    void *block;
    *to = (sl_bf16_weights){.in = in, .out = out};
    if (!sl_mul(sl_bf16_groups(in) * SL_BF16_GROUP * sizeof *numbers, sl_round_up(out, SL_BF16_BLOCK), &bytes))
        return sl_fail(SL_ENOMEM, "a layer of %zu times %zu weights does not fit the address space", in, out);
    SL_TRY(sl_mem_alloc(allocator, bytes, &block));
    to->numbers = block;
    to->bytes = bytes;
    pack(numbers, to);
    return SL_OK;
}

void sl_bf16_weights_free(sl_bf16_weights *weights, const sl_allocator *allocator) {
    sl_mem_free(allocator, weights->numbers, weights->bytes);
    *weights = (sl_bf16_weights){0};
}
