#include "trainers.h"

#include <stdio.h>
#include <stdlib.h>

void must(sl_status status, const char *what) {
    if (status == SL_OK) return;
    fprintf(stderr, "bench: %s: %s\n", what, sl_last_error());
    exit(1);
}

static char *text_of(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || !fread(text, 1, (1 << 20) - 1, file)) must(SL_EIO, path);
    fclose(file);
    return text;
}

void bench_rows_open(const char *spec, const char *data, bench_rows *out) {
    sl_csv_params params;
    *out = (bench_rows){.spec = text_of(spec), .rows.struct_size = sizeof out->rows};
    sl_csv_params_init(&params);
    params.spec = out->spec;
    must(sl_csv_open(data, &params, &out->csv), data);
    must(sl_csv_rows(out->csv, &out->rows), data);
}

void bench_rows_close(bench_rows *rows) {
    sl_csv_free(rows->csv);
    free(rows->spec);
}

sl_trainer *bench_trainer(const bench_rows *rows, sl_train_params *params) {
    sl_features *features;
    sl_trainer *trainer;
    params->threads = 1;
    must(sl_train_fit(rows->spec, &rows->rows, params, NULL, &features), "fit");
    must(sl_trainer_create(features, &rows->rows, NULL, params, NULL, &trainer), "trainer");
    sl_dataset_shuffle(&trainer->data, trainer->spec->seed, 0);
    if (trainer->ranges) trainer->ranges->first_step = 0;
    must(sl_trainer_start_ranges(trainer), "ranges");
    return trainer;
}

void bench_next(sl_trainer *trainer) {
    if (++trainer->position.minibatch + 1 >= sl_trainer_minibatches(trainer)) trainer->position.minibatch = 0;
}
