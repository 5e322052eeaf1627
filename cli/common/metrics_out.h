/* Writes metrics in the text exposition format of Prometheus, version 0.0.4. */
#ifndef CLI_COMMON_METRICS_OUT_H
#define CLI_COMMON_METRICS_OUT_H

#include <stdint.h>
#include <stdio.h>

typedef enum metric_type { METRIC_GAUGE, METRIC_COUNTER } metric_type;

/* A label of a sample. A value that is not UTF-8 is written with U+FFFD in place of the bytes that are not. */
typedef struct metric_label {
    const char *name, *value;
} metric_label;

/* The output, and the label that each sample has. */
typedef struct metrics {
    FILE *file;
    metric_label label;
    const char *family; /* the family that was begun last */
} metrics;

/* Begins a family. Its samples follow. A counter's name ends in _total. `help` has no backslash and no line break. */
void metrics_family(metrics *metrics, const char *name, metric_type type, const char *help);
/* Write one sample of the family, with `count` more labels. */
void metrics_count(metrics *metrics, const metric_label *more, size_t count, uint64_t value);
void metrics_real(metrics *metrics, const metric_label *more, size_t count, double value);

/* Write a family of one sample. */
void metrics_gauge(metrics *metrics, const char *name, const char *help, uint64_t value);
void metrics_ratio(metrics *metrics, const char *name, const char *help, double value);
void metrics_counter(metrics *metrics, const char *name, const char *help, uint64_t value);

#endif
