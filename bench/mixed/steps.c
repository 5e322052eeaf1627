/*
 * Steps of training, side by side: one trainer for each way, on the same rows, which take turns step by step.
 *   bench_mixed SPEC DATA ROUNDS WAY...   prints one line of JSON for each step
 * A way is a precision, or int8-observed or int8-learned: layers in INT8 with ranges of that kind.
 * The step is the whole one: the mini-batch gathered, forward, backward, sums and optimisers of all parts.
 */
#include "ranker/train/train_step.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5, WARM = 3 };

static void must(sl_status status, const char *what) {
    if (status == SL_OK) return;
    fprintf(stderr, "bench mixed: %s: %s\n", what, sl_last_error());
    exit(1);
}

static char *text_of(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || !fread(text, 1, (1 << 20) - 1, file)) must(SL_EIO, path);
    fclose(file);
    return text;
}

static sl_train_precision precision_named(const char *name) {
    for (int p = SL_TRAIN_F32; p < SL_TRAIN_AUTO; p++)
        if (strcmp(name, sl_train_precision_name((sl_train_precision)p)) == 0) return (sl_train_precision)p;
    fprintf(stderr, "bench mixed: %s is no way: f32, bf16, fp16, int8-observed or int8-learned\n", name);
    exit(1);
}

static void choose(const char *way, sl_train_params *params) {
    int learned = strcmp(way, "int8-learned") == 0;
    if (!learned && strcmp(way, "int8-observed") != 0) {
        params->precision = precision_named(way);
        return;
    }
    params->layers = SL_TRAIN_LAYERS_INT8;
    params->ranges = learned ? SL_TRAIN_RANGES_LEARNED : SL_TRAIN_RANGES_OBSERVED;
}

static sl_trainer *trainer_of(const char *spec, const sl_rows *rows, const char *way) {
    sl_train_params params;
    sl_train_params_init(&params);
    params.threads = 1;
    choose(way, &params);
    sl_features *features;
    sl_trainer *trainer;
    must(sl_train_fit(spec, rows, &params, NULL, &features), "fit");
    must(sl_trainer_create(features, rows, NULL, &params, NULL, &trainer), "trainer");
    sl_dataset_shuffle(&trainer->data, trainer->spec->seed, 0);
    if (trainer->ranges) trainer->ranges->first_step = 0;
    must(sl_trainer_start_ranges(trainer), "ranges");
    return trainer;
}

/* A step, and the next mini-batch after it. The last one of an epoch, which is smaller, is left out. */
static void step(sl_trainer *trainer) {
    must(sl_trainer_forward(trainer), "forward");
    must(sl_trainer_collect(trainer), "backward");
    if (!trainer->overflowed) sl_trainer_apply(trainer);
    if (++trainer->position.minibatch + 1 >= sl_trainer_minibatches(trainer)) trainer->position.minibatch = 0;
}

int main(int argc, char **argv) {
    if (argc < 5 || argc > 4 + MOST) {
        fprintf(stderr, "usage: bench_mixed SPEC DATA ROUNDS WAY...\n");
        return 2;
    }
    size_t count = (size_t)argc - 4;
    long rounds = strtol(argv[3], NULL, 10);
    sl_trainer *trainers[MOST];
    pin();
    char *spec = text_of(argv[1]);
    sl_csv_params csv_params;
    sl_csv_params_init(&csv_params);
    csv_params.spec = spec;
    sl_csv *csv;
    sl_rows rows = {.struct_size = sizeof rows};
    must(sl_csv_open(argv[2], &csv_params, &csv), argv[2]);
    must(sl_csv_rows(csv, &rows), argv[2]);
    for (size_t t = 0; t < count; t++)
        trainers[t] = trainer_of(spec, &rows, argv[4 + t]);
    for (long round = -WARM; round < rounds; round++) {
        for (size_t turn = 0; turn < count; turn++) {
            size_t t = (turn + (size_t)(round + WARM)) % count;
            int64_t wall = now_ns(), processor = processor_ns();
            step(trainers[t]);
            if (round < 0) continue;
            printf("{\"event\": \"step\", \"round\": %ld, \"precision\": \"%s\", \"emulated\": %s, \"rows\": %zu, "
                   "\"wall_ms\": %.4f, \"processor_ms\": %.4f}\n",
                   round, argv[4 + t], trainers[t]->net && sl_net_trainer_emulates(trainers[t]->net) ? "true" : "false",
                   trainers[t]->minibatch_rows, (double)(now_ns() - wall) * 1e-6,
                   (double)(processor_ns() - processor) * 1e-6);
        }
    }
    for (size_t t = 0; t < count; t++)
        sl_trainer_free(trainers[t]);
    sl_csv_free(csv);
    free(spec);
    return 0;
}
