#include "base/ranks.h"

#include <string.h>

sl_status sl_parts_create(const sl_allocator *allocator, size_t ranks, const size_t *sizes, sl_parts *out) {
    sl_status status = SL_OK;
    *out = (sl_parts){.allocator = *allocator, .ranks = ranks};
    out->at = sl_mem_array(allocator, ranks + 1, sizeof *out->at, &status);
    SL_TRY(status);
    for (size_t r = 0; r < ranks; r++)
        if (!sl_add(out->at[r], sizes[r], &out->at[r + 1])) return sl_fail(SL_ENOMEM, "the ranks' parts do not fit");
    void *block;
    SL_TRY(sl_mem_alloc_raw(allocator, out->at[ranks], &block));
    out->data = block;
    return SL_OK;
}

void sl_parts_free(sl_parts *parts) {
    if (parts->data) sl_mem_free(&parts->allocator, parts->data, parts->at[parts->ranks]);
    SL_FREE_ARRAY(&parts->allocator, parts->at, parts->ranks + 1);
    *parts = (sl_parts){.data = NULL};
}

sl_status sl_ranks_sum_exact(const sl_ranks *ranks, sl_exact_sum *sums, size_t count) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_status status = SL_OK;
    if (!ranks) return SL_OK;
    sl_exact_sum *all = sl_mem_array(&allocator, ranks->ranks * count, sizeof *all, &status);
    SL_TRY(ranks->agree(ranks->ctx, status));
    status = ranks->gather_same(ranks->ctx, sums, count * sizeof *sums, all);
    memset(sums, 0, count * sizeof *sums);
    for (size_t i = 0; i < ranks->ranks * count && status == SL_OK; i++)
        sl_exact_merge(&sums[i % count], &all[i]);
    SL_FREE_ARRAY(&allocator, all, ranks->ranks * count);
    return status;
}

sl_status sl_ranks_sum_doubles(const sl_ranks *ranks, double *numbers, size_t count) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_status status = SL_OK;
    if (!ranks) return SL_OK;
    double *all = sl_mem_array(&allocator, ranks->ranks * count, sizeof *all, &status);
    SL_TRY(ranks->agree(ranks->ctx, status));
    status = ranks->gather_same(ranks->ctx, numbers, count * sizeof *numbers, all);
    memset(numbers, 0, count * sizeof *numbers);
    for (size_t i = 0; i < ranks->ranks * count && status == SL_OK; i++)
        numbers[i % count] += all[i];
    SL_FREE_ARRAY(&allocator, all, ranks->ranks * count);
    return status;
}
