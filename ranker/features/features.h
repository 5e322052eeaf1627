/* Fitted features: statistics, vocabularies, and offsets in the model. The encoder uses them to turn a table's rows
 * into numbers. They do not change after fitting. */
#ifndef SL_RANKER_FEATURES_FEATURES_H
#define SL_RANKER_FEATURES_FEATURES_H

#include "base/ranks.h"
#include "ranker/features/spec.h"

typedef struct sl_vocabulary sl_vocabulary; /* vocabulary.h: text -> id */

typedef struct sl_feature {
    const sl_feature_spec *spec;
    sl_feature_form form;
    sl_side side;
    size_t at;           /* DENSE: first column; ID: column; BAG: number of the bag */
    size_t width;        /* DENSE: columns */
    size_t size;         /* ID, BAG: number of ids; every id is below it */
    size_t dim;          /* floats of its embedding; 0 for DENSE, or outside the deep part */
    size_t tensor;       /* number of its embedding table; SIZE_MAX if it has none */
    size_t wide_at;      /* first weight in the wide part; SIZE_MAX: not in it */
    size_t deep_at;      /* first input of the deep part; SIZE_MAX: not in it */
    double mean, factor; /* dense = (x - mean) * factor; x is the logarithm if the spec asks for it */
    float missing;       /* the encoded value of a missing number */
    uint64_t name_hash;  /* CROSS: the hash of its ids begins with it */
    double *boundaries;  /* BUCKET: fitted quantiles, or the spec's */
    size_t boundary_count;
    sl_vocabulary *vocabulary; /* fitted or listed; the owner of a shared vocabulary frees it */
} sl_feature;

typedef struct sl_table_shape { /* an embedding table */
    size_t feature;             /* the feature that owns it */
    size_t size, dim;
} sl_table_shape;

/* Features in the spec's order. */
typedef struct sl_feature_list {
    const sl_feature **features;
    size_t count;
} sl_feature_list;
#define SL_SIDE_MASKS 8u

/* The features of a model. Deep inputs lie in the order of sides: user, item, pair. Side s has inputs deep_side[s] to
 * deep_side[s + 1]. Dense, id and bag columns have the same order, so a side's columns are contiguous. */
typedef struct sl_features {
    sl_allocator allocator;
    sl_spec *spec; /* owned */
    sl_feature *features;
    size_t count;
    size_t dense_width, id_count, bag_count;
    size_t dense_side[4], id_side[4], bag_side[4], deep_side[4];
    size_t wide_size, deep_inputs;
    sl_table_shape *tables;
    size_t table_count;
    size_t outputs;
    char **classes; /* `outputs` texts. Multi-class: the values. Logistic: the value that 1 stands for. Squared: "" */
    size_t class_count, class_room, table_room;
    sl_vocabulary *class_numbers; /* multi-class: value -> number */
    /* By mask of sides: the features in the deep part, and those in the wide part. */
    sl_feature_list deep_of[SL_SIDE_MASKS], wide_of[SL_SIDE_MASKS];
    const sl_feature **listed; /* the memory of the lists */
    size_t listed_count;
} sl_features;

/* Makes a model's features from the spec alone. Takes over the spec, also on failure. */
sl_status sl_features_make(sl_spec *spec, sl_features **out);
/* Sets sizes and offsets. Call it after everything is fitted. Errors: SL_ELIMIT. */
sl_status sl_features_lay_out(sl_features *features);
/* Adds the next class of a multi-class label. Errors: SL_EINVAL (a class twice), SL_EVALUE. */
sl_status sl_features_add_class(sl_features *features, const char *text, size_t size);
/* Names the outputs: by the spec's classes, or by the loss if it has one output. */
sl_status sl_features_name_outputs(sl_features *features);
/* Returns whether the feature's vocabulary is fitted to training rows. */
static inline int sl_feature_is_fitted(const sl_feature_spec *spec) {
    int coded = spec->type == SL_FEATURE_CATEGORICAL || spec->type == SL_FEATURE_MULTI;
    return coded && spec->coding == SL_CODING_FITTED && spec->shared == SIZE_MAX;
}

/* How to fit features to rows. */
typedef struct sl_fit_source {
    sl_lookup_fn lookup;
    /* Not NULL: the rows have no labels, and neither label nor weight is read. Classes that rows would give come from
     * these features, which have the spec's loss. */
    const sl_features *classes_of;
    const sl_ranks *ranks;    /* each has a part of the rows; NULL: this process has all */
    const uint64_t *position; /* added to the lines of the present block, so that several files have other positions;
                                 NULL: nothing */
} sl_fit_source;

/* fit.c: fits the spec's features in one pass over the rows. Takes over the spec, also on failure. Ranks get the
 * features that one process with all rows would get. */
sl_status sl_features_fit(sl_spec *spec, const sl_rows *rows, const sl_fit_source *source, sl_features **out);
void sl_features_free(sl_features *features);
/* Make and free the lists of features. Every feature must have its offsets. */
sl_status sl_features_list(sl_features *features);
void sl_features_unlist(sl_features *features);

/* Write the features as bytes for the model file (section FEATURES), and read them. Reading checks the bytes against
 * the spec. It takes over the spec, also on failure. The allocator owns *data. */
sl_status sl_features_write(const sl_features *features, const sl_allocator *allocator, void **data, size_t *size);
sl_status sl_features_read(sl_spec *spec, const void *data, size_t size, sl_features **out);

#endif
