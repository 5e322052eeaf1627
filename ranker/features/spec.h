/* The spec of a model, parsed from JSON and checked. docs/SPEC.md describes each key. */
#ifndef SL_RANKER_FEATURES_SPEC_H
#define SL_RANKER_FEATURES_SPEC_H

#include "base/memory.h"

#include <shortlist_rank.h>

#define SL_MAX_HIDDEN      8u
#define SL_MAX_FEATURES    4096u
#define SL_MAX_CLASSES     4096u
#define SL_MAX_CARDINALITY 0x7fffffffu
#define SL_MAX_PARENTS     16u /* of one cross */

typedef enum sl_feature_type {
    SL_FEATURE_NUMERIC,
    SL_FEATURE_BUCKET,
    SL_FEATURE_CATEGORICAL,
    SL_FEATURE_MULTI,
    SL_FEATURE_CROSS,
    SL_FEATURE_VECTOR,
    SL_FEATURE_SCORE
} sl_feature_type;

typedef enum sl_scale { SL_SCALE_STANDARD, SL_SCALE_MINMAX, SL_SCALE_NONE } sl_scale;
typedef enum sl_coding { SL_CODING_FITTED, SL_CODING_LISTED, SL_CODING_HASH, SL_CODING_IDENTITY } sl_coding;
typedef enum sl_combine { SL_COMBINE_SUM, SL_COMBINE_MEAN, SL_COMBINE_MAX } sl_combine;
typedef enum sl_activation { SL_RELU, SL_GELU, SL_TANH, SL_LINEAR } sl_activation;
typedef enum sl_optimizer { SL_ADAGRAD, SL_ADAM } sl_optimizer;
typedef enum sl_schedule { SL_SCHEDULE_CONSTANT, SL_SCHEDULE_LINEAR, SL_SCHEDULE_COSINE } sl_schedule;

/* One entry of "features". The spec owns its texts and arrays. */
typedef struct sl_feature_spec {
    const char *name, *column;
    sl_feature_type type;
    sl_side side;   /* a cross has the side of its parents; PAIR if they differ */
    unsigned sides; /* mask of the sides its values come from; a cross has those of all its parents */
    int is_bag;     /* whether a row can have any number of its ids: multi, and crosses of one */
    sl_scale scale;
    int log, indicator, missing_is_mean;
    double missing;
    const double *boundaries; /* bucket */
    size_t boundary_count, quantiles;
    sl_coding coding; /* categorical, multi */
    const char *const *values;
    size_t value_count;
    size_t size;                        /* hash buckets or identity N */
    size_t min_count, keep, limit, oov; /* keep 0 keeps all */
    char separator;
    sl_combine combine;
    const size_t *of; /* cross: numbers of its parents, which are earlier features */
    size_t of_count;
    int from_index; /* vector: "source": "index" */
    size_t dim;     /* of the embedding or the vector; 0: the default of docs/SPEC.md */
    size_t shared;  /* number of the feature whose vocabulary and embedding it shares; SIZE_MAX: it has its own */
    int in_wide, in_deep;
} sl_feature_spec;

typedef struct sl_spec {
    sl_allocator allocator;
    char *text; /* as the caller gave it */
    size_t text_size;
    char delimiter;
    int header;
    const char *const *columns; /* "csv": {"columns"}; NULL: the header names them */
    size_t column_count;
    const char *label, *weight; /* weight NULL: every weight is 1 */
    sl_loss loss;
    const char *positive; /* NULL: none */
    int has_at_least;
    double at_least;
    const char *const *classes;
    size_t class_count;
    sl_feature_spec *features;
    size_t feature_count;
    int has_wide, has_deep;
    double wide_rate, wide_beta, wide_l1, wide_l2;
    size_t hidden[SL_MAX_HIDDEN], hidden_count;
    sl_activation activation;
    double dropout;
    sl_optimizer optimizer;
    double deep_rate, deep_l2, beta1, beta2, epsilon, embedding_init;
    size_t epochs, minibatch_rows, patience;
    double validation, forget;
    sl_schedule schedule;
    uint64_t seed;
    void *arena; /* holds what the pointers above point at */
    size_t arena_size;
} sl_spec;

/* Parses and checks a spec. The caller frees *out.
 * Errors: SL_EINVAL naming the key ("features[3].dim: ..."), SL_ENOMEM. */
sl_status sl_spec_read(const char *json, const sl_allocator *allocator, sl_spec **out);
void sl_spec_free(sl_spec *spec);

/* Finds whether two specs have the same "label" and "features". Errors: SL_ENOMEM. */
sl_status sl_spec_same_features(const char *json, const char *other, int *same);
/* Writes a spec with other widths in "deep.hidden". The caller frees *out by free(). Errors: SL_ENOMEM. */
sl_status sl_spec_with_hidden(const char *json, const size_t *hidden, size_t count, char **out);

#endif
