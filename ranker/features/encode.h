/* The encoder turns a table's rows into numbers by fitted features. */
#ifndef SL_RANKER_FEATURES_ENCODE_H
#define SL_RANKER_FEATURES_ENCODE_H

#include "ranker/features/features.h"
#include "ranker/features/table.h"

/* A growing buffer of encoded rows, with the arrays of sl_encoded. Initialise it to 0 except the allocator. Labels and
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

/* Returns a view of rows `first` to first + count. */
sl_encoded sl_encoded_part(const sl_features *features, const sl_encoded *rows, size_t first, size_t count);

/* The encoder. It finds columns by name, and first looks where it last found them.
 * Parameters: `sides` is a mask of (1 << side): the features to encode. Other features get zeros (dense 0, id 0, empty
 * bags). A cross is encoded if the mask has the sides of all its parents.
 * Threads: one thread uses an encoder at a time. */
typedef struct sl_encoder sl_encoder;
#define SL_ALL_SIDES 7u
sl_status sl_encoder_create(const sl_features *features, unsigned sides, int with_labels, sl_lookup_fn lookup,
                            void *lookup_ctx, const sl_allocator *allocator, sl_encoder **out);
void sl_encoder_free(sl_encoder *encoder);
/* Appends rows `first` to first + count of the table to the buffer. Set buffer->rows to 0 to begin anew. On failure
 * nothing is appended. Allocates only if the buffer is full.
 * Errors: they name line or row, and column. */
sl_status sl_encoder_append(sl_encoder *encoder, const sl_table *table, size_t first, size_t count,
                            sl_rows_buffer *buffer);
/* Reads the labels and weights of all rows without encoding the rows. A weight is 1 if the spec names no column for
 * it. */
sl_status sl_labels_read(const sl_features *features, const sl_table *table, float *labels, float *weights);
/* Appends `count` encodings of a row in which every value is missing. */
sl_status sl_encoder_append_missing(sl_encoder *encoder, size_t count, sl_rows_buffer *buffer);
/* Returns the id of a cross from its parents' ids in spec order. */
uint32_t sl_cross_id(const sl_feature *cross, const uint32_t *parents, size_t count);
/* Sets the id of a cross of single values among a row's ids. */
void sl_cross_single(const sl_features *features, const sl_feature *cross, uint32_t *ids);
/* Makes the ids of a cross with a multi-valued parent: one for each id of that parent in the row.
 * Parameters: ids and bag_start are the row's. `out` has room for as many ids as the parent has.
 * Returns: the number of ids. */
size_t sl_cross_bag(const sl_features *features, const sl_feature *cross, const uint32_t *ids,
                    const uint32_t *bag_start, const uint32_t *bag_ids, uint32_t *out);
/* Returns the number of the bag of the cross's multi-valued parent. */
size_t sl_cross_bag_parent(const sl_features *features, const sl_feature *cross);

#endif
