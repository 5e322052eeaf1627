/* Reads cells, for fitting and encoding: finds columns by name, splits a cell into categories, encodes numbers. */
#ifndef SL_RANKER_FEATURES_ENCODE_CELLS_H
#define SL_RANKER_FEATURES_ENCODE_CELLS_H

#include "ranker/features/features.h"
#include "ranker/features/table.h"

/* A column's name, and its number in the last table. */
typedef struct sl_column_source {
    const char *name;
    size_t at;
} sl_column_source;

/* Finds the column: first at its last number, then by name. Errors: SL_ENOTFOUND. */
sl_status sl_column_source_find(sl_column_source *source, const sl_table *table, const sl_column **out);
/* Checks that the column's type suits the feature. Errors: SL_ETYPE, SL_EDIM, which name both. */
sl_status sl_column_source_check(const sl_feature_spec *spec, const sl_column *column, const sl_table *table);

/* Iterates over the categories of a cell: one, or several of a multi-valued feature. */
typedef struct sl_key_iterator {
    const sl_column *column;
    size_t row;
    int single;           /* one key, which is not read yet */
    const char *at, *end; /* the rest of a text to split */
    char separator;
    int64_t next, last; /* of a list of texts */
} sl_key_iterator;
sl_status sl_key_iterator_start(sl_key_iterator *iterator, const sl_feature_spec *spec, const sl_column *column,
                                size_t row);
/* Gets the next category that is not empty. SL_KEY_MISSING: the end. */
sl_status sl_key_iterator_next(sl_key_iterator *iterator, sl_key *key);

/* Returns the number that statistics use: its logarithm if the spec asks for it. */
double sl_feature_transform(const sl_feature_spec *spec, double value);
/* Returns the encoded value of a number. NaN is missing. */
float sl_encode_number(const sl_feature *feature, double value);

#endif
