/* Features as they were fitted: statistics, vocabularies, and where each one enters the model; and the encoder that
 * turns a table's rows into numbers by them. Immutable once fitted. */
#ifndef SL_RANKER_FEATURES_H
#define SL_RANKER_FEATURES_H

#include "ranker/spec.h"

typedef struct sl_vocabulary sl_vocabulary; /* vocabulary.h: text -> id */

typedef struct sl_feature {
    const sl_feature_spec *spec;
    sl_feature_form form;
    sl_side side;
    size_t at;           /* DENSE: first column; ID: column; BAG: number */
    size_t width;        /* DENSE: columns */
    size_t size;         /* ID, BAG: ids are below it */
    size_t dim;          /* of its embedding; 0 where it is not in the deep part, or DENSE */
    size_t tensor;       /* number of its embedding table; SIZE_MAX: none */
    size_t wide_at;      /* SIZE_MAX: not in the wide part */
    size_t deep_at;      /* SIZE_MAX: not in the deep part */
    double mean, factor; /* dense = (x - mean) * factor, after the log where asked */
    float missing;       /* the encoded value of a missing number */
    uint64_t name_hash;  /* of a cross: what its ids begin with */
    double *boundaries;  /* fitted quantiles or the spec's */
    size_t boundary_count;
    sl_vocabulary *vocabulary; /* fitted or listed; a shared one is its owner's */
} sl_feature;

typedef struct sl_table_shape { /* an embedding table */
    size_t feature;             /* that owns it */
    size_t size, dim;
} sl_table_shape;

/* Features in the spec's order. */
typedef struct sl_feature_list {
    const sl_feature **features;
    size_t count;
} sl_feature_list;
#define SL_SIDE_MASKS 8u

/* Deep inputs lie in the order of sides: the user's, the item's, the pair's; side s is deep_side[s] to deep_side[s +
 * 1]. The dense, id and bag columns are in the order of sides too, so that a side's are contiguous. */
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
    char **classes; /* `outputs` texts: multi-class: the values; logistic: what 1 stands for; squared: "" */
    size_t class_count, class_room, table_room;
    sl_vocabulary *class_numbers; /* multi-class: value -> number */
    /* By mask of sides: the features that the deep part has of them, and those that the wide part has. */
    sl_feature_list deep_of[SL_SIDE_MASKS], wide_of[SL_SIDE_MASKS];
    const sl_feature **listed; /* what the lists point into */
    size_t listed_count;
} sl_features;

/* Takes over the spec, on failure too. Reads all of rows once. */
sl_status sl_features_fit(sl_spec *spec, const sl_rows *rows, sl_lookup_fn lookup, void *lookup_ctx, sl_features **out);
void sl_features_free(sl_features *features);
/* Makes the lists, once every feature has its place; and frees them alone. */
sl_status sl_features_list(sl_features *features);
void sl_features_unlist(sl_features *features);

/* As bytes, for the model file (section FEATURES), and back; what comes back is checked against the spec, which is
 * taken over. *data is made by the allocator. */
sl_status sl_features_write(const sl_features *features, const sl_allocator *allocator, void **data, size_t *size);
sl_status sl_features_read(sl_spec *spec, const void *data, size_t size, sl_features **out);

/* Encoded rows that grow; to begin with, all is zero but the allocator. The arrays' meaning is sl_encoded's; labels and
 * weights are filled where asked for. */
typedef struct sl_rows_buffer {
    sl_allocator allocator;
    size_t rows;
    float *dense;
    uint32_t *ids, *bag_start, *bag_ids;
    float *labels, *weights;
    size_t dense_room, id_room, start_room, bag_room, label_room, weight_room;
} sl_rows_buffer;
void sl_rows_buffer_free(sl_rows_buffer *buffer);
/* Its rows as a view. */
void sl_rows_buffer_view(const sl_rows_buffer *buffer, sl_encoded *out);

/* Rows first to first + count of encoded rows, as a view. */
sl_encoded sl_encoded_part(const sl_features *features, const sl_encoded *rows, size_t first, size_t count);

/* Finds a table's columns by their names, where it found them last if they are still there. One thread's. `sides` is a
 * mask of (1 << side): the features to encode; the others' places are left as zeros (dense: 0, id 0, empty bags).
 * Crosses are encoded where all of their parents' sides are in the mask. */
typedef struct sl_encoder sl_encoder;
#define SL_ALL_SIDES 7u
sl_status sl_encoder_create(const sl_features *features, unsigned sides, int with_labels, sl_lookup_fn lookup,
                            void *lookup_ctx, const sl_allocator *allocator, sl_encoder **out);
void sl_encoder_free(sl_encoder *encoder);
/* Appends rows first to first + count of the table to the buffer (set buffer->rows to 0 to begin anew); nothing is
 * appended on failure. Allocates only where the buffer has no room. Errors name line or row, and column. */
sl_status sl_encoder_append(sl_encoder *encoder, const sl_table *table, size_t first, size_t count,
                            sl_rows_buffer *buffer);
/* The labels and weights (1 where the spec names none) of all of the table's rows, without encoding the rows. */
sl_status sl_labels_read(const sl_features *features, const sl_table *table, float *labels, float *weights);
/* The one missing row: what a row without any value is encoded to. */
sl_status sl_encoder_append_missing(sl_encoder *encoder, size_t count, sl_rows_buffer *buffer);
/* The id of a cross from the ids of its parents, in spec order: what the encoder uses, for pairs put together later. */
uint32_t sl_cross_id(const sl_feature *cross, const uint32_t *parents, size_t count);
/* The same of a row's ids, into its place among them. */
void sl_cross_single(const sl_features *features, const sl_feature *cross, uint32_t *ids);
/* The ids of a cross with a multi-valued parent: of the parents' ids in a row, one for each of that parent's. ids and
 * bag_start are the row's. Writes the bag's ids to `out`, which has room for as many; returns their number. */
size_t sl_cross_bag(const sl_features *features, const sl_feature *cross, const uint32_t *ids,
                    const uint32_t *bag_start, const uint32_t *bag_ids, uint32_t *out);
/* Where the multi-valued parent of such a cross is among the bags. */
size_t sl_cross_bag_parent(const sl_features *features, const sl_feature *cross);
/* The encoded value of a score. */
float sl_encode_number(const sl_feature *feature, double value);

#endif
