/*
 * Steps of training, side by side: one trainer for each way, on the same rows, which take turns step by step.
 *   bench_mixed SPEC DATA ROUNDS WAY...   prints one line of JSON for each step
 * A way is a precision, or int8-observed or int8-learned: layers in INT8 with ranges of that kind.
 * The step is the whole one: the mini-batch gathered, forward, backward, sums and optimisers of all parts.
 */
#include "timing.h"
#include "trainers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5, WARM = 3 };

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

static sl_trainer *trainer_of(const bench_rows *rows, const char *way) {
    sl_train_params params;
    sl_train_params_init(&params);
    choose(way, &params);
    return bench_trainer(rows, &params);
}

/* A step, and the next mini-batch after it. */
static void step(sl_trainer *trainer) {
    must(sl_trainer_forward(trainer), "forward");
    must(sl_trainer_collect(trainer), "backward");
    if (!trainer->overflowed) sl_trainer_apply(trainer);
    bench_next(trainer);
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
    bench_rows rows;
    bench_rows_open(argv[1], argv[2], &rows);
    for (size_t t = 0; t < count; t++)
        trainers[t] = trainer_of(&rows, argv[4 + t]);
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
    bench_rows_close(&rows);
    return 0;
}
