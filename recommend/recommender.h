/* The recommender from inside: its versions, and how a session scores candidates. */
#ifndef SL_RECOMMEND_RECOMMENDER_H
#define SL_RECOMMEND_RECOMMENDER_H

#include "base/hazard.h"
#include "hnsw/search/topk.h"
#include "recommend/prepare.h"

/* A version: a model, an item table, and the items prepared for the model. A request uses one pair from start to end.
 */
typedef struct sl_pair {
    sl_guarded guarded; /* requests announce the pair they use */
    sl_ranker *ranker;  /* a reference of its own; NULL: recall alone */
    sl_items *items;    /* a reference of its own; NULL: no table */
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
    char *group; /* the name of the column of groups, or NULL */
    size_t group_size;
    sl_hazards pairs;  /* the pair in use, the sessions' hazards, the replaced pairs */
    uint64_t version;  /* atomic: of the pair in use */
    size_t item_bytes; /* atomic: of that pair's prepared rows */
    sl_gate changes;   /* passed by the thread that swaps or updates; before the table's */
};

/* The pair in use, for the thread that swaps or updates. */
static inline sl_pair *sl_recommender_pair(const sl_recommender *recommender) {
    return (sl_pair *)sl_hazards_current(&recommender->pairs);
}
/* The pair in use, for a request. It stays until sl_hazard_release. */
static inline const sl_pair *sl_recommender_begin(const sl_recommender *recommender, sl_hazard *hazard) {
    return (const sl_pair *)sl_hazards_protect(&recommender->pairs, hazard);
}

/* The prepared row of a candidate. */
typedef struct sl_candidate {
    const sl_prepared_part *part;
    uint32_t row;
    uint8_t missing; /* 1: the item table lacks the item */
    uint8_t deleted; /* 1: the item was deleted, and no answer has it; its row is that of missing items */
} sl_candidate;

/* rank.c: one thread's state for scoring candidates by one model, which it keeps alive. */
typedef struct sl_model_scorer sl_model_scorer;
/* Makes a scorer of the pair's model, for up to max_rows candidates at a time. Errors: as of sl_predictor_create. */
sl_status sl_model_scorer_create(const sl_recommender *recommender, const sl_pair *pair, size_t max_rows,
                                 sl_model_scorer **out);
void sl_model_scorer_free(sl_model_scorer *scorer);
/* Returns whether the scorer is of the pair's model. Takes NULL. */
int sl_model_scorer_fits(const sl_model_scorer *scorer, const sl_pair *pair);
/* Returns whether the recall score is a feature of the model. */
int sl_model_scorer_asks_recall(const sl_model_scorer *scorer);
/* Computes the user's part, once per request. Errors: as of a prediction; SL_EINVAL (user_row, no vector). */
sl_status sl_model_scorer_user(sl_model_scorer *scorer, const sl_request *request);
/* Scores up to max_rows candidates. recall_scores may be NULL unless sl_model_scorer_asks_recall. */
sl_status sl_model_scorer_run(sl_model_scorer *scorer, const sl_candidate *candidates, const float *recall_scores,
                              size_t count, float *scores);

/* pair_features.c: candidates as encoded rows, for features of user and item together. */
typedef struct sl_pair_rows {
    sl_allocator allocator;
    const sl_features *features;
    sl_item_shape shape;
    size_t max_rows;
    int needed; /* 1: the model needs candidates as encoded rows */
    float *dense;
    uint32_t *ids, *bag_start, *bag_ids;
    size_t bag_room;
} sl_pair_rows;
sl_status sl_pair_rows_init(sl_pair_rows *rows, const sl_features *features, const sl_item_shape *shape,
                            size_t max_rows, const sl_allocator *allocator);
void sl_pair_rows_free(sl_pair_rows *rows);
/* Fills in the candidates' own columns, and those of user and candidate together. Allocates only if bags have more ids
 * than ever before. Errors: SL_ENOMEM, SL_ELIMIT. */
sl_status sl_pair_rows_fill(sl_pair_rows *rows, const sl_encoded *user, const sl_candidate *candidates,
                            const float *recall_scores, size_t count, sl_encoded *out);

/* diversify.c: moves the first n of `count` entries to the front, in order, with at most `most` of each group.
 * Parameters: an entry's id is a candidate's number. `scratch` has sl_key_counts_bytes of sl_key_counts_places(n).
 * Returns the number of entries kept. */
size_t sl_diversify(sl_top_entry *entries, size_t count, size_t n, size_t most, const sl_candidate *candidates,
                    void *scratch);

#endif
