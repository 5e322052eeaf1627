/* Options for layers in INT8, which `train` and `quantize` share: which layers stay F32, and how training finds the
 * ranges of the others. */
#ifndef CLI_RANKER_LAYER_OPTIONS_H
#define CLI_RANKER_LAYER_OPTIONS_H

#include "cli/common/options.h"

#include <shortlist_rank.h>

/* Layers named by --keep, "dense.0=f32,dense.3=f32". */
enum { KEPT_MOST = 16 };
typedef struct kept_layers {
    char *text;
    const char *names[KEPT_MOST];
    size_t count;
} kept_layers;

/* Parses the option; NULL is no option. Returns an exit status. */
int kept_read(const char *given, kept_layers *out);
void kept_free(kept_layers *kept);

/* Words in the order of their enumerations; -1 if not given. */
typedef struct layer_options {
    int layers, ranges;
    const char *keep;
} layer_options;

#define LAYERS_DEFAULT ((layer_options){.layers = -1, .ranges = -1})

extern const char *const range_names[]; /* by sl_train_ranges */

/* Reports options of INT8 without INT8. Returns an exit status. */
int layer_options_check(const layer_options *given);
/* Copies the given options into the parameters, which then point into `kept`. */
void set_layers(const layer_options *given, const kept_layers *kept, sl_train_params *params);

#define OPTION_RANGES(type, field)                                                                                     \
    {                                                                                                                  \
        0, "ranges", OPTION_WORD, "observed|learned", 0, offsetof(type, field),                                        \
            "Ranges of INT8 layers that train. observed (default): a moving average of each mini-batch's extremes. "   \
            "learned: by gradients, with the weights."                                                                 \
    }
#define OPTION_KEEP(type, field)                                                                                       \
    {                                                                                                                  \
        0, "keep", OPTION_TEXT, "LAYER=f32", 0, offsetof(type, field),                                                 \
            "Layers that stay F32, such as dense.0=f32,dense.3=f32."                                                   \
    }

#endif
