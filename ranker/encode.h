/* For fitting and encoding: columns found by name, and the categories of a cell. */
#ifndef SL_RANKER_ENCODE_H
#define SL_RANKER_ENCODE_H

#include "ranker/features.h"
#include "ranker/table.h"

/* A column's name, and where the column was found last. */
typedef struct sl_source {
    const char *name;
    size_t at;
} sl_source;

/* Finds the column: at its last place, else by searching. Errors: SL_ENOTFOUND. */
sl_status sl_source_find(sl_source *source, const sl_table *table, const sl_column **out);
/* Checks that the feature can be made from the column. Errors: SL_ETYPE, SL_EDIM, which name both. */
sl_status sl_source_check(const sl_feature_spec *spec, const sl_column *column, const sl_table *table);

/* A walk over the categories of a cell: one, or those of a multi-valued feature. */
typedef struct sl_key_walk {
    const sl_column *column;
    size_t row;
    int single;           /* one key, not read yet */
    const char *at, *end; /* of a text that is split */
    char separator;
    int64_t next, last; /* of a list of texts */
} sl_key_walk;
sl_status sl_key_walk_start(sl_key_walk *walk, const sl_feature_spec *spec, const sl_column *column, size_t row);
/* Gets the next category that is not empty. SL_KEY_MISSING: there is none. */
sl_status sl_key_walk_next(sl_key_walk *walk, sl_key *key);

/* Returns the number that a numeric feature's statistics use: its logarithm where the spec asks for that. */
double sl_feature_transform(const sl_feature_spec *spec, double value);

/* features.c. Makes a model's features as far as the spec alone says. Takes the spec over, on failure too. */
sl_status sl_features_make(sl_spec *spec, sl_features **out);
/* Sets sizes and places once everything is fitted. Errors: SL_ELIMIT. */
sl_status sl_features_lay_out(sl_features *features);
/* Adds the next class of a multi-class label. Errors: SL_EINVAL (a class twice), SL_EVALUE. */
sl_status sl_features_add_class(sl_features *features, const char *text, size_t size);
/* Names the outputs: by the spec's classes, or for a loss with one output. */
sl_status sl_features_name_outputs(sl_features *features);
/* Tells whether the feature has a vocabulary that training rows give. */
static inline int sl_feature_is_fitted(const sl_feature_spec *spec) {
    int coded = spec->type == SL_FEATURE_CATEGORICAL || spec->type == SL_FEATURE_MULTI;
    return coded && spec->coding == SL_CODING_FITTED && spec->shared == SIZE_MAX;
}

#endif
