/* Versions and who uses them, and a session's scratch. */
#ifndef SL_RECOMMEND_RECOMMENDER_H
#define SL_RECOMMEND_RECOMMENDER_H

#include "base/hazard.h"
#include "hnsw/search/topk.h"
#include "recommend/prepare.h"

/* A model, an item table and what is prepared of the two. Requests use one version from their start to their end. */
typedef struct sl_pair {
    sl_guarded guarded; /* requests announce the pair that they use */
    sl_ranker *ranker;  /* a reference of its own; or NULL */
    sl_items *items;    /* likewise */
    sl_prepared *prepared;
    uint64_t version;
} sl_pair;

struct sl_recommender {
    sl_allocator allocator;
    sl_log_fn log;
    void *log_ctx;
    sl_index *index;
    sl_item_part kind;
    size_t threads;
    int verify;
    float missing_score;
    char *group; /* or NULL */
    size_t group_size;
    sl_hazards pairs; /* the pair in use, the sessions' hazards, the pairs that were replaced */
    uint64_t version; /* atomic: of the current one */
    int changing;     /* atomic: somebody swaps or updates */
};

/* recommender.c */
/* The pair in use, for the thread that changes it. */
static inline sl_pair *sl_recommender_pair(const sl_recommender *recommender) {
    return (sl_pair *)sl_hazards_current(&recommender->pairs);
}
/* The pair in use, for a request: the pair stays until sl_hazard_release. */
static inline const sl_pair *sl_recommender_begin(const sl_recommender *recommender, sl_hazard *hazard) {
    return (const sl_pair *)sl_hazards_protect(&recommender->pairs, hazard);
}

/* Where a candidate's features are; `missing` where the item table has none. */
typedef struct sl_candidate {
    const sl_prepared_part *part;
    uint32_t row;
    int missing;
} sl_candidate;

/* rank.c: what one thread needs to score candidates by one model, which it keeps. */
typedef struct sl_scorer sl_scorer;
sl_status sl_scorer_create(const sl_recommender *recommender, const sl_pair *pair, size_t max_rows, sl_scorer **out);
void sl_scorer_free(sl_scorer *scorer);
/* Whether it is one for this pair. Takes NULL. */
int sl_scorer_fits(const sl_scorer *scorer, const sl_pair *pair);
/* Whether the model has a feature that is the recall's score. */
int sl_scorer_asks_recall(const sl_scorer *scorer);
/* The user's part, once a request. */
sl_status sl_scorer_user(sl_scorer *scorer, const sl_request *request);
/* Scores of up to max_rows candidates. recall_scores is read where the model asks for it. */
sl_status sl_scorer_run(sl_scorer *scorer, const sl_candidate *candidates, const float *recall_scores, size_t count,
                        float *scores);

/* pair_features.c: features of user and item together, of candidates as encoded rows. */
typedef struct sl_pair_rows {
    sl_allocator allocator;
    const sl_features *features;
    sl_item_shape shape;
    size_t max_rows;
    int needed; /* whether candidates are laid out as encoded rows at all */
    float *dense;
    uint32_t *ids, *bag_start, *bag_ids;
    size_t bag_room;
} sl_pair_rows;
sl_status sl_pair_rows_init(sl_pair_rows *rows, const sl_features *features, const sl_item_shape *shape,
                            size_t max_rows, const sl_allocator *allocator);
void sl_pair_rows_free(sl_pair_rows *rows);
/* The candidates' own columns, and the pairs' with the one user row. Allocates only for more bags' ids than before. */
sl_status sl_pair_rows_fill(sl_pair_rows *rows, const sl_encoded *user, const sl_candidate *candidates,
                            const float *recall_scores, size_t count, sl_encoded *out);

/* diversify.c: the first n of `count` entries in order whose group has fewer than `most` before them. groups and
 * counts are scratch of `room` entries, a power of two of at least 2 * n. Returns how many there are; they are moved to
 * the front. */
typedef struct sl_group_count {
    uint64_t group;
    size_t count;
} sl_group_count;
size_t sl_diversify(sl_top_entry *entries, size_t count, size_t n, size_t most, const sl_candidate *candidates,
                    sl_group_count *counts, size_t room);

#endif
