/* Trainers for programs that time their steps. A failure ends the program. */
#ifndef BENCH_MIXED_TRAINERS_H
#define BENCH_MIXED_TRAINERS_H

#include "ranker/train/train_step.h"

/* A spec, and the rows of a CSV file. */
typedef struct bench_rows {
    char *spec;
    sl_csv *csv;
    sl_rows rows;
} bench_rows;

void must(sl_status status, const char *what);
void bench_rows_open(const char *spec, const char *data, bench_rows *out);
void bench_rows_close(bench_rows *rows);
/* Makes a trainer at its first step, on one thread. */
sl_trainer *bench_trainer(const bench_rows *rows, sl_train_params *params);
/* Goes on to the next mini-batch. The last one of an epoch, which is smaller, is left out. */
void bench_next(sl_trainer *trainer);

#endif
