/* One side of a request: rows of the user's or the items' table as the model sees them. What an encoder does, and the
 * vectors that come from the index instead of a column. One thread's. */
#ifndef SL_RECOMMEND_SIDE_H
#define SL_RECOMMEND_SIDE_H

#include "ranker/features.h"

/* Rows encoded at a time, at most. */
#define SL_SIDE_ROWS 512u

typedef struct sl_side_encoder {
    sl_allocator allocator;
    const sl_features *features; /* its ranker must outlive it */
    sl_side side;
    size_t vectors; /* features whose vectors come from the index */
    sl_encoder *encoder;
    sl_rows_buffer rows;
    sl_column *columns; /* a table's, and one for each of the vectors it lacks */
    size_t column_room;
} sl_side_encoder;

sl_status sl_side_encoder_init(sl_side_encoder *side, const sl_features *features, sl_side which,
                               const sl_allocator *allocator);
/* Takes a zeroed one. */
void sl_side_encoder_free(sl_side_encoder *side);

/* Whether a feature's vector is read from the index, or is the request's. */
int sl_feature_from_index(const sl_feature *feature, sl_side side);
/* Whether any feature of the side is encoded from a column. */
int sl_side_has_columns(const sl_features *features, sl_side side);

/* Appends rows first to first + count, at most SL_SIDE_ROWS, to side->rows; set side->rows.rows to 0 to begin anew. The
 * vectors from the index are left as missing ones. Errors as of sl_encoder_append. */
sl_status sl_side_encode(sl_side_encoder *side, const sl_table *table, size_t first, size_t count);
/* Where row `row`'s vector of a feature lies in what was encoded. */
static inline float *sl_side_vector(sl_side_encoder *side, const sl_feature *feature, size_t row) {
    return side->rows.dense + row * side->features->dense_width + feature->at;
}

#endif
