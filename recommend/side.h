/* One side of a request: rows of the user's table or of the item table, encoded for a model. An encoder's work, except
 * for the vectors that come from the index instead of a column.
 * Threads: one at a time. */
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
    sl_column *columns; /* those of a table, and one for each vector that the table lacks */
    size_t column_room;
} sl_side_encoder;

/* Makes an encoder of the features of one side. Errors: SL_ENOMEM, and as of sl_encoder_create. */
sl_status sl_side_encoder_init(sl_side_encoder *side, const sl_features *features, sl_side which,
                               const sl_allocator *allocator);
/* Takes a zeroed encoder. */
void sl_side_encoder_free(sl_side_encoder *side);

/* Tells whether a feature of this side is a vector of the index or of the request, not of a column. */
int sl_feature_from_index(const sl_feature *feature, sl_side side);
/* Tells whether any feature of the side is encoded from a column. */
int sl_side_has_columns(const sl_features *features, sl_side side);

/* Appends `count` rows of the table, at most SL_SIDE_ROWS, from row `first` on, to side->rows. Set side->rows.rows to 0
 * to begin anew. Vectors from the index are left missing. Errors: as of sl_encoder_append. */
sl_status sl_side_encode(sl_side_encoder *side, const sl_table *table, size_t first, size_t count);
/* Returns the place of a feature's vector in encoded row `row`. */
static inline float *sl_side_vector(sl_side_encoder *side, const sl_feature *feature, size_t row) {
    return side->rows.dense + row * side->features->dense_width + feature->at;
}

#endif
