#include "hnsw/sums.h"

#include "base/crc32c.h"

#include <string.h>

/* In a record the row has no padding, which in an array is zeros. */
static uint32_t sum_of_row(const sl_index *index, uint32_t node) {
    static const uint8_t padding[SL_CACHE_LINE];
    size_t size = index->codec.rows.size;
    return sl_crc32c(sl_crc32c(0, sl_row(index, node), size), padding, index->row_pitch - size);
}

uint32_t sl_sum_of(const sl_index *index, uint32_t node) {
    uint64_t id = sl_id_of(index, node);
    uint32_t crc = sum_of_row(index, node);
    if (index->rest_pitch) crc = sl_crc32c(crc, sl_rest_row(index, node), index->rest_pitch);
    if (index->refine_pitch) crc = sl_crc32c(crc, sl_refine_row(index, node), index->refine_pitch);
    return sl_crc32c(crc, &id, sizeof id);
}

size_t sl_sums_bytes(const sl_index *index) {
    return index->n * sizeof(uint32_t);
}

void sl_sums_make(const sl_index *index, uint32_t *sums) {
    for (size_t node = 0; node < index->n; node++)
        sums[node] = sl_sum_of(index, (uint32_t)node);
}

int sl_sum_holds(const sl_index *index, uint32_t node) {
    return *sl_sum_at(index, node) == sl_sum_of(index, node);
}

/* Again from the first on, for there are few if any. */
static void list_bad(const sl_index *index, size_t first, sl_sums_found *found, uint64_t *ids, size_t room) {
    found->node = first;
    found->first = sl_id_of(index, (uint32_t)first);
    for (size_t node = first, count = 0; count < room && count < found->bad && node < index->n; node++)
        if (!sl_sum_holds(index, (uint32_t)node)) ids[count++] = sl_id_of(index, (uint32_t)node);
}

sl_sums_found sl_sums_check(const sl_index *index, size_t threads, uint64_t *ids, size_t room, sl_progress *progress) {
    sl_sums_found found = {0};
    size_t checked = 0, bad = 0, first = SIZE_MAX;
    if (!index->sums) return found;
    threads = sl_thread_count(threads);
#pragma omp parallel for schedule(static) num_threads((int)threads) if (threads > 1) reduction(+ : checked, bad) \
    reduction(min : first)
    for (size_t node = 0; node < index->n; node++) {
        if (sl_progress_cancelled(progress)) continue;
        int wrong = !sl_sum_holds(index, (uint32_t)node);
        bad += (size_t)wrong;
        if (wrong && node < first) first = node;
        checked++;
        sl_progress_step(progress, 1);
    }
    found.checked = checked;
    found.bad = bad;
    if (bad) list_bad(index, first, &found, ids, room);
    return found;
}
