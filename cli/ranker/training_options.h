/* Options that `train` and `prune` share: the teacher, and a factor of the rates. */
#ifndef CLI_RANKER_TRAINING_OPTIONS_H
#define CLI_RANKER_TRAINING_OPTIONS_H

#include "cli/common/options.h"

#include <shortlist_rank.h>

/* Negative numbers mean "not given". */
typedef struct training_options {
    const char *teacher; /* path; NULL: none */
    double temperature, soft, rate_scale;
} training_options;

#define TRAINING_DEFAULT ((training_options){.teacher = NULL, .temperature = -1, .soft = -1, .rate_scale = -1})

/* Reports a teacher's option without a teacher. Returns an exit status. */
int training_options_check(const training_options *given);
/* Copies the given options into the parameters. */
void set_training(const training_options *given, const sl_ranker *teacher, sl_train_params *params);
/* Opens a model. *out is NULL if path is NULL. Returns an exit status. */
int open_optional(const char *path, sl_ranker **out);

#define OPTIONS_TRAINING(type, field)                                                                                  \
    {0,                                                                                                                \
     "teacher",                                                                                                        \
     OPTION_TEXT,                                                                                                      \
     "MODEL",                                                                                                          \
     0,                                                                                                                \
     offsetof(type, field.teacher),                                                                                    \
     "Also learn the scores of this model, which has the same loss and classes. Its columns are read from the same "   \
     "rows."},                                                                                                         \
        {0,                                                                                                            \
         "temperature",                                                                                                \
         OPTION_REAL,                                                                                                  \
         "T",                                                                                                          \
         0,                                                                                                            \
         offsetof(type, field.temperature),                                                                            \
         "Divides the logits of both models in the soft loss: 0.001 to 1000, default 2. Above 1, the teacher's small " \
         "probabilities count for more. Squared loss has none."},                                                      \
        {0,                                                                                                            \
         "soft",                                                                                                       \
         OPTION_REAL,                                                                                                  \
         "SHARE",                                                                                                      \
         0,                                                                                                            \
         offsetof(type, field.soft),                                                                                   \
         "The teacher's share of a row's loss, from 0 to 1; default 0.7. The labels have the rest. With 1, neither "   \
         "labels nor weights are read."},                                                                              \
    {                                                                                                                  \
        0, "rate-scale", OPTION_REAL, "FACTOR", 0, offsetof(type, field.rate_scale),                                   \
            "Multiplies the rates of the spec; default 1. To train a model further, use 0.1 to 0.3."                   \
    }

#endif
