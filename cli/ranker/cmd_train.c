#include "cli/common/report.h"
#include "cli/ranker/commands.h"
#include "cli/ranker/training.h"

/* The rows of a training. */
typedef struct train_rows {
    csv_file data, valid;
} train_rows;

static int train_ranker(train_state *state, train_rows *rows) {
    sl_train_params params;
    train_begin(state, &params);
    sl_status status = sl_ranker_train(state->spec, &rows->data.rows, state->options->valid ? &rows->valid.rows : NULL,
                                       &params, &state->ranker, &state->report);
    train_end(state, status);
    if (status == SL_OK) return EXIT_DONE;
    if (status == SL_ECANCELED) return train_report_interrupted(state);
    return lookup_report_run(&state->lookup, state->spec_path, &rows->data, &rows->valid, status);
}

static int train_and_save(train_state *state, train_rows *rows) {
    const char *valid = state->options->valid;
    int status = train_check_outputs(state);
    if (status == EXIT_DONE) status = train_open(state);
    if (status == EXIT_DONE) status = csv_open(&rows->data, state->data_path, state->spec, state->spec_path);
    if (status == EXIT_DONE && valid) status = csv_open(&rows->valid, valid, state->spec, state->spec_path);
    if (status == EXIT_DONE) status = train_ranker(state, rows);
    if (status == EXIT_DONE) status = train_save(state);
    return status == EXIT_DONE ? train_print(state, NULL, NULL) : status;
}

static int run_train(const command *self, int argc, char **argv) {
    train_options options = TRAIN_DEFAULT;
    const char *paths[2];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    int usage = train_options_check(&options);
    if (usage != EXIT_DONE) return usage;
    train_state state = {.options = &options, .spec_path = paths[0], .data_path = paths[1]};
    train_rows rows = {.data = {.path = NULL}};
    int status = train_and_save(&state, &rows);
    csv_close(&rows.valid);
    csv_close(&rows.data);
    train_close(&state);
    return status;
}

static const char *const operands[] = {"SPEC.json", "DATA.csv", NULL};

const command command_train = {
    .name = "train",
    .summary = "train a model that ranks",
    .synopsis = "shortlist train SPEC.json DATA.csv -o MODEL [--valid CSV] [--epochs N] [--seed N] [--threads N] "
                "[--init MODEL] [--teacher MODEL] [--temperature T] [--soft SHARE] [--rate-scale FACTOR] "
                "[--layers f32|int8] [--ranges observed|learned] [--keep LAYER=f32] "
                "[--checkpoint FILE] [--checkpoint-steps N] [--resume] [--precision f32|bf16|fp16|auto] "
                "[--loss-scale X] [--index INDEX] [--progress] [--json]",
    .description =
        "Trains a wide & deep model on the rows of DATA.csv. SPEC.json names the label, the features and the two parts "
        "of the model; docs/SPEC.md describes its keys. Statistics and vocabularies that are fitted to the rows become "
        "part of MODEL. Later rows go through the same features.\nWith --teacher, the model also learns the scores of "
        "a larger model. A small model can become better this way than by labels alone. With --soft 1, DATA.csv needs "
        "no labels. Any rows that the teacher can score will do, such as the candidates of requests.\nOn a terminal, "
        "or with --progress, each epoch's losses are printed on stderr as it ends. The model is that of the epoch with "
        "the best validation loss.\nCtrl-C ends the training and writes no model; with --checkpoint, --resume can go "
        "on with it. A loss that is not finite ends the training as well, and the last checkpoint stays. One row, or "
        "labels of one class alone, are refused, because they teach nothing.\n",
    .examples = "shortlist train spec.json adult.csv -o model.slr\n"
                "shortlist train spec.json clicks.csv -o model.slr --valid later.csv --checkpoint state.slr --resume\n"
                "shortlist train spec.json adult.csv -o model.slr --epochs 20 --seed 7 --json\n"
                "shortlist train small.json adult.csv -o small.slr --teacher model.slr --temperature 2 --soft 0.7\n"
                "shortlist train spec.json today.csv -o today.slr --init model.slr --rate-scale 0.1\n"
                "shortlist train spec.json adult.csv -o int8.slr --init model.slr --rate-scale 0.1 --layers int8\n",
    .operands = operands,
    .options = train_table,
    .run = run_train,
};
