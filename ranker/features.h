/* Fitted features: statistics, vocabularies, and their places in the model. The encoder turns a table's rows into
 * numbers by them. Fitted features do not change. */
#ifndef SL_RANKER_FEATURES_H
#define SL_RANKER_FEATURES_H

#include "ranker/spec.h"

typedef struct sl_vocabulary sl_vocabulary; /* vocabulary.h: text -> id */

typedef struct sl_feature {
    const sl_feature_spec *spec;
    sl_feature_form form;
    sl_side side;
    size_t at;           /* DENSE: first column; ID: column; BAG: number of the bag */
    size_t width;        /* DENSE: columns */
    size_t size;         /* ID, BAG: number of ids; every id is below it */
    size_t dim;          /* floats of its embedding; 0: not in the deep part, or DENSE */
    size_t tensor;       /* number of its embedding table; SIZE_MAX: none */
    size_t wide_at;      /* SIZE_MAX: not in the wide part */
    size_t deep_at;      /* SIZE_MAX: not in the deep part */
    double mean, factor; /* dense = (x - mean) * factor, after the log where asked */
    float missing;       /* the encoded value of a missing number */
    uint64_t name_hash;  /* CROSS: what its ids begin with */
    double *boundaries;  /* BUCKET: fitted quantiles, or the spec's */
    size_t boundary_count;
    sl_vocabulary *vocabulary; /* fitted or listed; a shared vocabulary belongs to its owner */
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

/* Deep inputs lie in the order of sides: user, item, pair. Side s has inputs deep_side[s] to deep_side[s + 1]. Dense,
 * id and bag columns lie in the same order, so that the columns of a side are contiguous. */
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
    char **classes; /* `outputs` texts. Multi-class: the values. Logistic: what 1 stands for. Squared: "" */
    size_t class_count, class_room, table_room;
    sl_vocabulary *class_numbers; /* multi-class: value -> number */
    /* By mask of sides: the features that the deep part has, and those that the wide part has. */
    sl_feature_list deep_of[SL_SIDE_MASKS], wide_of[SL_SIDE_MASKS];
    const sl_feature **listed; /* the lists point into it */
    size_t listed_count;
} sl_features;

/* Fits the spec's features in one pass over the rows. Takes the spec over, on failure too. */
sl_status sl_features_fit(sl_spec *spec, const sl_rows *rows, sl_lookup_fn lookup, void *lookup_ctx, sl_features **out);
/* The same for rows without labels: neither label nor weight is looked for. Classes that rows would give are those of
 * `classes_of`, which has the spec's loss. */
sl_status sl_features_fit_unlabelled(sl_spec *spec, const sl_rows *rows, sl_lookup_fn lookup,
                                     const sl_features *classes_of, sl_features **out);
void sl_features_free(sl_features *features);
/* Makes the lists once every feature has its place; frees the lists only. */
sl_status sl_features_list(sl_features *features);
void sl_features_unlist(sl_features *features);

/* Writes the features as bytes for the model file (section FEATURES), and reads them back. Reading checks the bytes
 * against the spec, and takes the spec over, on failure too. *data is made by the allocator. */
sl_status sl_features_write(const sl_features *features, const sl_allocator *allocator, void **data, size_t *size);
sl_status sl_features_read(sl_spec *spec, const void *data, size_t size, sl_features **out);

/* A growing buffer of encoded rows. At first all is 0 but the allocator. The arrays are those of sl_encoded. Labels and
 * weights are filled if the encoder was made with labels. */
typedef struct sl_rows_buffer {
    sl_allocator allocator;
    size_t rows;
    float *dense;
    uint32_t *ids, *bag_start, *bag_ids;
    float *labels, *weights;
    size_t dense_room, id_room, start_room, bag_room, label_room, weight_room;
} sl_rows_buffer;
void sl_rows_buffer_free(sl_rows_buffer *buffer);
/* Views the buffer's rows. */
void sl_rows_buffer_view(const sl_rows_buffer *buffer, sl_encoded *out);

/* Views rows first to first + count of encoded rows. */
sl_encoded sl_encoded_part(const sl_features *features, const sl_encoded *rows, size_t first, size_t count);

/* The encoder. It finds a table's columns by their names and looks first where they were last time.
 * Parameters: `sides` is a mask of (1 << side): the features to encode. Places of the other features hold zeros (dense:
 * 0, id 0, empty bags). A cross is encoded if all its parents' sides are in the mask.
 * Threads: an encoder is one thread's. */
typedef struct sl_encoder sl_encoder;
#define SL_ALL_SIDES 7u
sl_status sl_encoder_create(const sl_features *features, unsigned sides, int with_labels, sl_lookup_fn lookup,
                            void *lookup_ctx, const sl_allocator *allocator, sl_encoder **out);
void sl_encoder_free(sl_encoder *encoder);
/* Appends rows first to first + count of the table to the buffer. Set buffer->rows to 0 to begin anew. Nothing is
 * appended on failure. It allocates only if the buffer has no room.
 * Errors: they name line or row, and column. */
sl_status sl_encoder_append(sl_encoder *encoder, const sl_table *table, size_t first, size_t count,
                            sl_rows_buffer *buffer);
/* Reads the labels and weights of all rows of the table without encoding the rows. A weight is 1 if the spec names
 * none. */
sl_status sl_labels_read(const sl_features *features, const sl_table *table, float *labels, float *weights);
/* Appends `count` copies of the missing row: the encoding of a row without any value. */
sl_status sl_encoder_append_missing(sl_encoder *encoder, size_t count, sl_rows_buffer *buffer);
/* Returns the id of a cross from its parents' ids in spec order. The encoder uses it too. */
uint32_t sl_cross_id(const sl_feature *cross, const uint32_t *parents, size_t count);
/* Sets the id of a cross among a row's ids. */
void sl_cross_single(const sl_features *features, const sl_feature *cross, uint32_t *ids);
/* Makes the ids of a cross that has a multi-valued parent: one for each id of that parent in the row.
 * Parameters: ids and bag_start are the row's. `out` has room for as many ids as the parent has.
 * Returns: the number of ids. */
size_t sl_cross_bag(const sl_features *features, const sl_feature *cross, const uint32_t *ids,
                    const uint32_t *bag_start, const uint32_t *bag_ids, uint32_t *out);
/* Returns the number of the bag that is the cross's multi-valued parent. */
size_t sl_cross_bag_parent(const sl_features *features, const sl_feature *cross);
/* Returns the encoded value of a number. */
float sl_encode_number(const sl_feature *feature, double value);

#endif
