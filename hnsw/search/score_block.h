/* Scores rows one block at a time and prefetches the first rows of the next block. All walks, scans and comparisons
 * score rows here. */
#ifndef SL_HNSW_SEARCH_SCORE_BLOCK_H
#define SL_HNSW_SEARCH_SCORE_BLOCK_H

#include "base/prefetch.h"
#include "distance/codec/codec.h"

#include <math.h>

/* Rows of a block. Kernels read and write whole registers: ids and scores need SL_SCORE_PAD more places. */
enum { SL_SCORE_BLOCK = 256, SL_SCORE_PAD = 32 };

/* Rows and a query over them. */
typedef struct sl_row_scorer {
    sl_score_fn *score;
    const sl_code_rows *rows;
    const sl_query_code *query;
    size_t ahead;      /* a row is prefetched this many rows before its turn; 0: no prefetch */
    size_t prefetched; /* first bytes of each row of the next block that the caller has prefetched already */
} sl_row_scorer;

static inline sl_row_scorer sl_row_scorer_of(const sl_kernels *kernels, const sl_codec *codec,
                                             const sl_query_code *query, size_t ahead) {
    return (sl_row_scorer){.score = kernels->score[codec->codes], .rows = &codec->rows, .query = query, .ahead = ahead};
}

/* Scores the first `count` rows of `ids` into `out`. The rows from there to `all` belong to the next block. Prefetches
 * the first `ahead` of them, since the next kernel call would do it too late. Within the block the kernel prefetches.
 */
static inline void sl_score_block(const sl_row_scorer *scorer, const uint32_t *ids, size_t count, size_t all,
                                  float *out) {
    const sl_code_rows *rows = scorer->rows;
    for (size_t i = count; i < all && i < count + scorer->ahead; i++)
        sl_prefetch(rows->base + (size_t)ids[i] * rows->pitch + scorer->prefetched, rows->size - scorer->prefetched);
    scorer->score(rows, scorer->query, ids, count, scorer->ahead, out);
}

/* Scores `count` consecutive rows from `first` on, at most one block. `ids` gets their numbers. `ids` and `out` have
 * SL_SCORE_PAD places more. */
static inline void sl_score_range(const sl_row_scorer *scorer, size_t first, size_t count, uint32_t *ids, float *out) {
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)(first + i);
    sl_score_block(scorer, ids, count, count, out);
}

/* A row and its score. */
typedef struct sl_scored {
    float score;
    uint32_t id;
} sl_scored;

/* Replaces `best` by the block's best row if that row is better; the first of equals wins. NaN, which a damaged file
 * may give, is never better. */
static inline void sl_score_keep_best(const uint32_t *ids, const float *scores, size_t count, sl_scored *best) {
    for (size_t i = 0; i < count; i++)
        if (scores[i] > best->score) *best = (sl_scored){scores[i], ids[i]};
}

/* Replaces `best` by the best of the consecutive rows [first, end), as sl_score_keep_best does. */
static inline void sl_score_best_in(const sl_row_scorer *scorer, size_t first, size_t end, sl_scored *best) {
    uint32_t ids[SL_SCORE_BLOCK + SL_SCORE_PAD] = {0};
    float scores[SL_SCORE_BLOCK + SL_SCORE_PAD];
    for (size_t some; first < end; first += some) {
        some = end - first < SL_SCORE_BLOCK ? end - first : SL_SCORE_BLOCK;
        sl_score_range(scorer, first, some, ids, scores);
        sl_score_keep_best(ids, scores, some, best);
    }
}

#endif
