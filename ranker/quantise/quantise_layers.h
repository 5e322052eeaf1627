/* Post-training quantisation of dense layers: inputs of sample rows, ranges, codes, corrected biases. */
#ifndef SL_RANKER_QUANTISE_QUANTISE_LAYERS_H
#define SL_RANKER_QUANTISE_QUANTISE_LAYERS_H

#include "ranker/features/encode.h"
#include "ranker/model/model.h"
#include "ranker/net/calibrate.h"

/* Observations that calibration made of a layer of floats. */
typedef struct sl_layer_seen {
    sl_observer *observer;
    float *inputs; /* (rows, in) */
} sl_layer_seen;

typedef struct sl_calibrated {
    sl_allocator allocator;
    sl_net_shape shape;
    size_t rows;
    sl_layer_seen layers[SL_MAX_LAYERS];
} sl_calibrated;

/* Runs the layers of floats on the rows and keeps every layer's inputs. Errors: SL_EVALUE (inputs that are not
 * finite). */
sl_status sl_calibrate(const sl_ranker *ranker, const sl_encoded *rows, const sl_allocator *allocator,
                       sl_calibrated *out);
void sl_calibrated_free(sl_calibrated *calibrated);

/* The precision of a layer, and how to code it. */
typedef struct sl_layer_choice {
    sl_layer_type type;
    sl_range_rule rule; /* for the inputs; method MSE also for the weights */
    int bias_correction;
} sl_layer_choice;

/* Quantises the layers of a model of floats.
 * Parameters: calibrated may be NULL if no layer is static INT8 and no bias is corrected. bf16 layers need neither.
 * Errors: SL_EINVAL (a layer whose inputs are all 0), SL_EVALUE, SL_ENOMEM. */
sl_status sl_quantise_layers(const sl_ranker *ranker, const sl_calibrated *calibrated, const sl_layer_choice *choices,
                             const sl_allocator *allocator, sl_coded_layers *out);
/* Fills one layer of `coded`, which has the layer's type, and its input range if it is static INT8. Errors: as
 * above. */
sl_status sl_code_layer(const sl_ranker *ranker, const sl_calibrated *calibrated, const sl_layer_choice *choice,
                        sl_coded_layers *coded, size_t layer);

#endif
