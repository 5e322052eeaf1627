/* Post-training quantisation of a model: draws rows for it, and chooses each layer's precision. */
#ifndef SL_RANKER_QUANTISE_QUANTISE_H
#define SL_RANKER_QUANTISE_QUANTISE_H

#include "ranker/quantise/quantise_layers.h"

/* How to draw rows from a source. */
typedef struct sl_draw {
    size_t rows;
    uint64_t seed;
    int with_labels;
    sl_lookup_fn lookup;
    void *lookup_ctx;
} sl_draw;
/* Draws rows without replacement, in the source's order, and encodes them. Draws all rows if there are fewer. Reads the
 * source twice. Errors: those of encoding; SL_EINVAL (no rows). */
sl_status sl_draw_rows(const sl_features *features, const sl_rows *source, const sl_draw *draw, sl_rows_buffer *out);

/* Checks params, and reads each layer's choice from them. Errors: SL_EINVAL, SL_ENOTFOUND. */
sl_status sl_layer_choices(const sl_ranker *ranker, const sl_quantize_params *params, sl_layer_choice *choices);
/* Makes a model with these coded layers and the other weights of the base. Owns `coded`, and frees it on failure
 * too. */
sl_status sl_ranker_with_coded(const sl_ranker *base, sl_coded_layers *coded, const sl_allocator *allocator,
                               sl_ranker **out);
/* Makes a model with all embedding tables of this type. *out is NULL if the base is such a model already: for
 * SL_TABLE_F32, or without tables. Errors: see sl_ranker_with_tables. */
sl_status sl_ranker_with_table_type(const sl_ranker *base, sl_table_type type, sl_ranker **out);

#endif
