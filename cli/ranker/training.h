/* A training by the command line, which `shortlist train` and `shortlist-mpi train` share: its options, its inputs, its
 * report. */
#ifndef CLI_RANKER_TRAINING_H
#define CLI_RANKER_TRAINING_H

#include "cli/common/json_out.h"
#include "cli/common/progress.h"
#include "cli/ranker/layer_options.h"
#include "cli/ranker/ranking_inputs.h"
#include "cli/ranker/training_options.h"

#include <sys/stat.h>

/* Zeroes and the macro's values mean "not given". */
typedef struct train_options {
    const char *output, *valid, *checkpoint, *index, *init;
    training_options training;
    layer_options int8;
    size_t epochs, seed, threads, checkpoint_steps;
    int resume, progress, json;
    int precision;     /* an sl_train_precision without DEFAULT, minus SL_TRAIN_F32; -1: not given */
    double loss_scale; /* negative: not given */
} train_options;

#define TRAIN_DEFAULT                                                                                                  \
    ((train_options){.precision = -1, .loss_scale = -1, .training = TRAINING_DEFAULT, .int8 = LAYERS_DEFAULT})

/* Reports options that contradict each other. Returns an exit status. */
int train_options_check(const train_options *options);

/* Zeroes are a state to begin with. */
typedef struct train_state {
    const train_options *options;
    const char *spec_path, *data_path;
    char *spec;
    lookup lookup;
    progress progress;
    struct stat before; /* the checkpoint before the work; st_ino 0: none */
    sl_ranker *ranker, *init, *teacher;
    kept_layers kept;
    sl_train_report report;
    double save_s;
} train_state;

/* Checks that the outputs can be written. Returns an exit status. */
int train_check_outputs(const train_state *state);
/* Reads and opens all inputs but the rows. Returns an exit status. */
int train_open(train_state *state);
void train_close(train_state *state);
/* Fills in the parameters of the library's training, and begins the progress. */
void train_begin(train_state *state, sl_train_params *params);
/* Ends the progress. */
void train_end(train_state *state, sl_status status);
/* Returns whether a checkpoint of this training, or of the one that it went on from, is kept. */
int train_left_checkpoint(const train_state *state);
/* Reports an interrupted training, and names the checkpoint that it left, if any. */
int train_report_interrupted(const train_state *state);
/* Saves the model. Returns an exit status. */
int train_save(train_state *state);

/* Prints the report, as JSON with --json. `more` adds members to the JSON object, or lines to the text if its argument
 * is NULL. NULL: nothing more. Returns an exit status. */
typedef void (*train_more_fn)(json *json, const void *ctx);
int train_print(const train_state *state, train_more_fn more, const void *ctx);

/* The options of `train`, of a struct that begins with a train_options. */
extern const option train_table[];

#endif
