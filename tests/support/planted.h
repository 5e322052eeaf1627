/* Rows whose labels come from a known rule, to learn from. The rule has products of two columns that must be learned by
 * heart, and a curve that no linear model bends to. */
#ifndef SL_TESTS_PLANTED_H
#define SL_TESTS_PLANTED_H

#include <shortlist_rank.h>

enum { PLANTED_COLUMNS = 9, PLANTED_SPEC = 4096 };

/* Columns: x, y (floats), a, b (integers), tags (text, some of "t0" to "t5" with "|"), click (0 or 1), value (float),
 * kind ("low", "mid", "top"), weight (1 or 3). */
typedef struct planted {
    size_t rows;
    float *x, *y, *click, *value, *weight;
    int32_t *a, *b;
    char *tags, *kinds;
    int64_t *tag_offsets, *kind_offsets;
    sl_column columns[PLANTED_COLUMNS];
    sl_table table;
    sl_table_cursor *cursor;
    sl_rows source;
} planted;

/* The rule is always the same, the rows are the seed's. */
void planted_make(planted *p, size_t rows, uint64_t seed);
void planted_free(planted *p);

/* Text that stands in a spec in front of "mean", in quotes: how the tags' embeddings are combined. */
#define PLANTED_COMBINE "\"combine\": "

/* A spec over those columns. `label` is the label's object; `wide`, `deep` and `train` are their fields. NULL for a
 * part leaves it out. `extra` is put at the end of the whole ("\"weight\": ...", or ""). */
void planted_spec(char out[PLANTED_SPEC], const char *label, const char *wide, const char *deep, const char *train,
                  const char *extra);

/* An untrained model of the rows, over the parts that planted_spec takes. */
sl_ranker *planted_ranker(const planted *p, const char *label, const char *wide, const char *deep);
/* A model's scores of the rows. */
void planted_predict(const planted *p, const sl_ranker *ranker, float *scores);
/* A copy of a model with a tensor's values put through a function of their number. */
sl_ranker *planted_changed(const sl_ranker *base, const char *tensor,
                           float (*change)(float value, size_t i, size_t columns));

/* The defaults of a training, on one thread: its numbers are the same in every run. */
sl_train_params planted_one_thread(void);

/* Trains on 120 planted rows with every allocation failing in turn: SL_ENOMEM and nothing lost, until none fails. The
 * training makes more than 30. */
void planted_check_memory(const char *spec, sl_train_params params);

#endif
