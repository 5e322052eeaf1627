/* Reading cells, for fitting and encoding: columns found by name, the categories of a cell, its number. */
#ifndef SL_RANKER_FEATURES_ENCODE_CELLS_H
#define SL_RANKER_FEATURES_ENCODE_CELLS_H

#include "ranker/features/features.h"
#include "ranker/features/table.h"

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
/* Returns the encoded value of a number. */
float sl_encode_number(const sl_feature *feature, double value);

#endif
