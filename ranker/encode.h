/* What fitting and encoding share: columns found by name, and the categories of a cell. */
#ifndef SL_RANKER_ENCODE_H
#define SL_RANKER_ENCODE_H

#include "ranker/features.h"
#include "ranker/table.h"

/* A column by name, and where it was found last. */
typedef struct sl_source {
    const char *name;
    size_t at;
} sl_source;

/* The column, looked up where it was found last time and else by searching. Errors: SL_ENOTFOUND. */
sl_status sl_source_find(sl_source *source, const sl_table *table, const sl_column **out);
/* The feature can be made from such a column. Errors: SL_ETYPE, SL_EDIM, naming both. */
sl_status sl_source_check(const sl_feature_spec *spec, const sl_column *column, const sl_table *table);

/* The categories of a cell one after the other: the single one, or a multi-valued feature's. */
typedef struct sl_key_walk {
    const sl_column *column;
    size_t row;
    int single;           /* one key, not read yet */
    const char *at, *end; /* of a text that is split */
    char separator;
    int64_t next, last; /* of a list of texts */
} sl_key_walk;
sl_status sl_key_walk_start(sl_key_walk *walk, const sl_feature_spec *spec, const sl_column *column, size_t row);
/* The next one that is not empty; SL_KEY_MISSING at the end. */
sl_status sl_key_walk_next(sl_key_walk *walk, sl_key *key);

/* The number of a numeric feature as the statistics see it: its logarithm where asked. */
double sl_feature_transform(const sl_feature_spec *spec, double value);

/* features.c. A model's features with what the spec alone says of them; takes the spec over, on failure too. */
sl_status sl_features_make(sl_spec *spec, sl_features **out);
/* Sizes and places, once everything fitted is there. Errors: SL_ELIMIT. */
sl_status sl_features_lay_out(sl_features *features);
/* The classes of a multi-class label, in order. Errors: SL_EINVAL (one twice), SL_EVALUE. */
sl_status sl_features_add_class(sl_features *features, const char *text, size_t size);
/* Classes of the spec, or of a loss with one output. */
sl_status sl_features_name_outputs(sl_features *features);
/* Whether the feature has a vocabulary that training rows give. */
static inline int sl_feature_is_fitted(const sl_feature_spec *spec) {
    int coded = spec->type == SL_FEATURE_CATEGORICAL || spec->type == SL_FEATURE_MULTI;
    return coded && spec->coding == SL_CODING_FITTED && spec->shared == SIZE_MAX;
}

#endif
