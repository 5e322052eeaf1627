/* An encoder for one side of a request. It encodes rows of the user's or the item table for a model, and some vectors
 * come from the index instead of a column. Threads: one at a time. */
#ifndef SL_RECOMMEND_SIDE_H
#define SL_RECOMMEND_SIDE_H

#include "ranker/features/encode.h"

/* The most rows encoded at a time. */
#define SL_SIDE_ROWS 512u

typedef struct sl_side_encoder {
    sl_allocator allocator;
    const sl_features *features; /* of a ranker that must outlive the encoder */
    sl_side side;
    size_t vectors; /* number of features whose vectors come from the index */
    sl_encoder *encoder;
    sl_rows_buffer rows;
    sl_column *columns; /* the table's, and one for each vector that the table lacks */
    size_t column_room;
} sl_side_encoder;

/* Makes an encoder of the features of one side. Errors: SL_ENOMEM, and as of sl_encoder_create. */
sl_status sl_side_encoder_init(sl_side_encoder *side, const sl_features *features, sl_side which,
                               const sl_allocator *allocator);
/* Takes a zeroed encoder. */
void sl_side_encoder_free(sl_side_encoder *side);

/* Returns whether a feature of this side is a vector from the index or the request, not from a column. */
int sl_feature_from_index(const sl_feature *feature, sl_side side);
/* Returns whether any feature of the side is encoded from a column. */
int sl_side_has_columns(const sl_features *features, sl_side side);

/* Appends `count` rows of the table from row `first` on, at most SL_SIDE_ROWS, to side->rows. To begin anew, set
 * side->rows.rows to 0. Vectors from the index stay missing. Errors: as of sl_encoder_append. */
sl_status sl_side_encode(sl_side_encoder *side, const sl_table *table, size_t first, size_t count);
/* The place of a feature's vector in encoded row `row`. */
static inline float *sl_side_vector(sl_side_encoder *side, const sl_feature *feature, size_t row) {
    return side->rows.dense + row * side->features->dense_width + feature->at;
}

#endif
