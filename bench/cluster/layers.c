/*
 * When the gradients of a training's layers are complete within a step, on one pinned thread.
 *   bench_cluster SPEC DATA STEPS PRECISION   prints one line of JSON for each step
 * All times are the processor's, in seconds since the step began. `layers` has the layers in the order of the backward
 * pass: the last one first. `table_s` is the time to copy and read every table as a rank does that gets its sums, and
 * `sum_s` the time to add up two arrays of all gradients. `touched` has the rows that the mini-batch touched: of the
 * wide part, of each table.
 */
#include "timing.h"
#include "trainers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 3 };

/* Times of one step. */
typedef struct step_times {
    int64_t begin, layers[SL_MAX_LAYERS];
    size_t count;
} step_times;

static double since(const step_times *times, int64_t at) {
    return (double)(at - times->begin) * 1e-9;
}

static void on_layer(void *ctx, size_t layer) {
    step_times *times = ctx;
    (void)layer;
    times->layers[times->count++] = processor_ns();
}

/* Floats of the wide part and of all tables. */
static size_t sparse_floats(const sl_features *features) {
    size_t floats = features->wide_size * features->outputs;
    for (size_t t = 0; t < features->table_count; t++)
        floats += sl_table_floats(features, t);
    return floats;
}

/* The time to fill a table with this rank's rows, and to look for rows of the sums that are not 0. */
static double time_tables(float *table, const float *rows, size_t floats) {
    const int64_t begin = processor_ns();
    size_t touched = 0;
    memset(table, 0, floats * sizeof *table);
    memcpy(table, rows, floats * sizeof *table);
    for (size_t i = 0; i < floats; i++)
        touched += table[i] != 0;
    /* The count is used, so the loop stays. */
    return (double)(processor_ns() - begin) * 1e-9 + (touched > floats ? 1 : 0);
}

static double time_sums(float *sums, const float *numbers, size_t floats) {
    const int64_t begin = processor_ns();
    for (size_t i = 0; i < floats; i++)
        sums[i] += numbers[i];
    return (double)(processor_ns() - begin) * 1e-9;
}

static void time_step(sl_trainer *trainer, float *numbers, long number) {
    const size_t sparse = sparse_floats(trainer->features), all = sparse + trainer->dense_size;
    step_times times = {.count = 0};
    sl_net_trainer_on_layer(trainer->net, on_layer, &times);
    times.begin = processor_ns();
    must(sl_trainer_forward(trainer), "forward");
    const int64_t forward = processor_ns();
    must(sl_trainer_collect(trainer), "backward");
    const int64_t collected = processor_ns();
    sl_trainer_apply(trainer);
    const int64_t end = processor_ns();
    bench_next(trainer);
    const sl_sparse_gradients *gradients = &trainer->sparse->gradients;
    const double table_s = time_tables(numbers, numbers + all, sparse), sum_s = time_sums(numbers, numbers + all, all);
    if (number < 0) return;
    printf("{\"event\": \"step\", \"rows\": %zu, \"precision\": \"%s\", \"forward_s\": %.9f, \"layers_s\": [",
           trainer->minibatch_rows, sl_train_precision_name(trainer->precision.precision), since(&times, forward));
    for (size_t i = 0; i < times.count; i++)
        printf("%s%.9f", i ? ", " : "", since(&times, times.layers[i]));
    printf("], \"collected_s\": %.9f, \"end_s\": %.9f, \"table_s\": %.9f, \"sum_s\": %.9f, \"touched\": [%zu",
           since(&times, collected), since(&times, end), table_s, sum_s, gradients->wide.count);
    for (size_t t = 0; t < trainer->features->table_count; t++)
        printf(", %zu", gradients->tables[t].count);
    printf("]}\n");
}

/* Prints the shape: floats of each layer, rows and widths of each table, the wide part first. */
static void print_shape(const sl_trainer *trainer) {
    const sl_features *features = trainer->features;
    const size_t layers = trainer->shape.layers;
    printf("{\"event\": \"shape\", \"layers\": [");
    for (size_t l = 0; l < layers; l++) {
        const size_t end = l + 1 < layers ? sl_net_weight_at(&trainer->shape, l + 1) : trainer->dense_size;
        printf("%s%zu", l ? ", " : "", end - sl_net_weight_at(&trainer->shape, l));
    }
    printf("], \"tables\": [[%zu, %zu]", features->wide_size, features->outputs);
    for (size_t t = 0; t < features->table_count; t++)
        printf(", [%zu, %zu]", features->tables[t].size, features->tables[t].dim);
    printf("], \"bucket\": %zu}\n", SL_TRAIN_BUCKET);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: bench_cluster SPEC DATA STEPS f32|bf16\n");
        return 2;
    }
    bench_rows rows;
    sl_train_params params;
    const long steps = strtol(argv[3], NULL, 10);
    pin();
    bench_rows_open(argv[1], argv[2], &rows);
    sl_train_params_init(&params);
    params.precision = strcmp(argv[4], "bf16") == 0 ? SL_TRAIN_BF16 : SL_TRAIN_F32;
    sl_trainer *trainer = bench_trainer(&rows, &params);
    float *numbers = calloc(2 * (sparse_floats(trainer->features) + trainer->dense_size), sizeof *numbers);
    must(numbers ? SL_OK : SL_ENOMEM, "memory");
    print_shape(trainer);
    for (long number = -WARM; number < steps; number++)
        time_step(trainer, numbers, number);
    free(numbers);
    sl_trainer_free(trainer);
    bench_rows_close(&rows);
    return 0;
}
