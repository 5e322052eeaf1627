/* Data for the tests of recommendation: items, users, an index, and models with random weights over all kinds of
 * features. A predictor scores the same pairs of user and item as rows of one table. Failures end the test. */
#ifndef SL_TESTS_FUNNEL_H
#define SL_TESTS_FUNNEL_H

#include <shortlist_rank.h>

enum { FUNNEL_ITEMS = 600, FUNNEL_USERS = 30, FUNNEL_DIM = 12, FUNNEL_COLUMNS = 24 };

/* A table that owns its columns. */
typedef struct grid {
    sl_table table;
    sl_column columns[FUNNEL_COLUMNS];
    void *blocks[4 * FUNNEL_COLUMNS];
    size_t block_count;
} grid;
void grid_free(grid *g);
/* Appends to `to`, of n rows, the columns of `from`: row i is row rows[i], and SIZE_MAX means that all values are
 * missing. */
void grid_gather(grid *to, const sl_table *from, const size_t *rows, size_t n);
void grid_vectors(grid *to, const char *name, size_t dim, const float *values, size_t n);
void grid_floats(grid *to, const char *name, const float *values, size_t n);

typedef struct funnel {
    grid items, users;
    uint64_t ids[FUNNEL_ITEMS];
    float *vectors;      /* of the items */
    float *user_vectors; /* of the users */
    sl_index *index;
} funnel;

/* Makes items, users and an index. sparse: ids are far apart; else ids are row numbers. The index has f32 codes, so
 * that it gives back exact vectors. */
void funnel_make(funnel *f, int sparse, sl_metric metric);
void funnel_free(funnel *f);
/* Returns the row of an item, or SIZE_MAX. */
size_t funnel_row(const funnel *f, uint64_t id);
sl_items *funnel_items(const funnel *f, const sl_allocator *allocator);

/* Models: specs of features, wide and deep parts, in funnel.c. */
enum {
    MODEL_ALL,
    MODEL_WIDE,
    MODEL_DEEP,
    MODEL_PLAIN,
    MODEL_USER,
    MODEL_ITEM,
    MODEL_VECTORS,
    MODEL_SCORE,
    MODEL_SHALLOW,
    MODEL_SQUARED,
    MODELS
};
/* Makes a ranker of a model, with random weights that depend on the seed. */
sl_ranker *funnel_ranker(const funnel *f, int model, uint64_t seed, const sl_allocator *allocator);
/* Makes a ranker of a spec. Features are fitted to pairs; weights are those before the first step. */
sl_status funnel_fit(const funnel *f, const char *spec, const sl_allocator *allocator, sl_ranker **out);
/* Returns whether the model needs the item table. */
int funnel_needs_items(int model);

/* Returns a recommendation's sizes, and makes a session of such sizes. */
sl_recommend_params funnel_sizes(size_t n, size_t candidates, size_t ef);
sl_session *funnel_session(sl_recommender *recommender, sl_recommend_params sizes);

/* Returns a request of a user, with a vector of f32. */
sl_request funnel_request(const funnel *f, size_t user);

typedef struct funnel_candidates {
    const uint64_t *ids;
    const size_t *rows;  /* rows of the item table; SIZE_MAX: an item without features */
    const float *recall; /* recall scores */
    size_t n;
} funnel_candidates;
/* Scores candidates for a user by a predictor. */
void funnel_predict(const funnel *f, const sl_ranker *ranker, size_t user, const funnel_candidates *candidates,
                    float *scores);

#endif
