#include "hnsw/select.h"

#include <string.h>

enum { MOST_COPIES = 2 };

sl_status sl_select_init(sl_select *select, const sl_index *index, size_t most) {
    *select = (sl_select){.index = index, .most = most};
    const sl_allocator *allocator = &index->allocator;
    sl_status status;
    void *block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, 3 * most * sizeof(uint32_t), &block), fail);
    select->nodes = block;
    select->chosen = select->nodes + most;
    select->chosen_nodes = select->chosen + most;
    SL_TRY_GOTO(sl_mem_alloc(allocator, 3 * most * sizeof(float), &block), fail);
    select->scores = block;
    select->chosen_norms = select->scores + most;
    select->pair_scores = select->chosen_norms + most;
    SL_TRY_GOTO(sl_mem_alloc(allocator, sl_query_size(&index->codec), &select->query_buffer), fail);
    return SL_OK;
fail:
    sl_select_free(select);
    return status;
}

void sl_select_free(sl_select *select) {
    const sl_index *index = select->index;
    if (!index) return;
    sl_mem_free(&index->allocator, select->nodes, 3 * select->most * sizeof(uint32_t));
    sl_mem_free(&index->allocator, select->scores, 3 * select->most * sizeof(float));
    sl_mem_free(&index->allocator, select->query_buffer, sl_query_size(&index->codec));
    select->index = NULL;
}

static int is_copy(const sl_index *index, uint32_t a, uint32_t b) {
    return memcmp(sl_row(index, a), sl_row(index, b), index->codec.rows.factor + sizeof(float)) == 0;
}

/* Whether candidate c, at position i, is nearer to one already chosen than to the base. Nearness is that of the
 * metric's geometry, the Euclidean one for inner products (pruning by inner product itself would link everything to the
 * longest vectors): what is compared is half the squared distance from c, negated and without |c|^2 / 2. */
static int is_covered(sl_select *select, size_t i, float base_norm2, float *norm2) {
    const sl_index *index = select->index;
    sl_query_code query;
    sl_row_as_query(&index->codec, sl_row(index, select->nodes[i]), select->query_buffer, &query, norm2);
    float to_base = select->scores[i], norm_weight = 0;
    if (index->codec.metric == SL_METRIC_L2) to_base += (*norm2 - base_norm2) / 2;
    if (index->codec.metric == SL_METRIC_IP) {
        to_base -= base_norm2 / 2;
        norm_weight = 0.5f;
    }
    index->kernels->score[index->codec.codes](&index->codec.rows, &query, select->chosen_nodes, select->chosen_count, 0,
                                              select->pair_scores);
    for (size_t j = 0; j < select->chosen_count; j++)
        if (select->pair_scores[j] - norm_weight * select->chosen_norms[j] > to_base) return 1;
    return 0;
}

void sl_select_run(sl_select *select, uint32_t base, float base_norm2, size_t limit) {
    size_t copies = 0, kept_copies[MOST_COPIES];
    select->chosen_count = 0;
    for (size_t i = 0; i < select->count && select->chosen_count + copies < limit; i++) {
        if (is_copy(select->index, base, select->nodes[i])) {
            if (copies < MOST_COPIES) kept_copies[copies++] = i;
            continue;
        }
        float norm2;
        if (is_covered(select, i, base_norm2, &norm2)) continue;
        select->chosen_nodes[select->chosen_count] = select->nodes[i];
        select->chosen_norms[select->chosen_count] = norm2;
        select->chosen[select->chosen_count++] = (uint32_t)i;
    }
    for (size_t i = 0; i < copies; i++)
        select->chosen[select->chosen_count++] = (uint32_t)kept_copies[i];
}
