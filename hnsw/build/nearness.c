#include "hnsw/build/nearness.h"

#include "hnsw/search/score_block.h"

/* A row is asked for so many rows before it is scored. */
enum { AHEAD = 4 };

sl_status sl_nearness_init(sl_nearness *rate, const sl_index *index) {
    *rate = (sl_nearness){0};
    SL_TRY(sl_mem_alloc(&index->allocator, sl_query_size(&index->codec), &rate->buffer));
    rate->index = index;
    return SL_OK;
}

void sl_nearness_free(sl_nearness *rate) {
    if (!rate->index) return;
    sl_mem_free(&rate->index->allocator, rate->buffer, sl_query_size(&rate->index->codec));
    rate->index = NULL;
}

void sl_nearness_set(sl_nearness *rate, uint32_t node) {
    const sl_index *index = rate->index;
    sl_row_as_query(&index->codec, sl_row(index, node), rate->buffer, &rate->query);
}

void sl_nearness_many(sl_nearness *rate, const uint32_t *nodes, size_t n, float *out) {
    const sl_index *index = rate->index;
    const sl_codec *codec = &index->codec;
    const sl_scorer scorer = sl_scorer_of(index->kernels, codec, &rate->query, AHEAD);
    sl_score_block(&scorer, nodes, n, n, out);
    /* Rows carry their length under L2, and those of I4 under IP too; it is 1 under COSINE. */
    if (codec->codes == SL_CODES_I4) return;
    for (size_t i = 0; i < n && codec->metric == SL_METRIC_IP; i++)
        out[i] -= 0.5f * sl_row_norm2(codec, sl_row(index, nodes[i]));
}
