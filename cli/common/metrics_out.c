#include "cli/common/metrics_out.h"

#include "cli/common/utf8.h"

#include <inttypes.h>
#include <math.h>

static void write_label(FILE *file, metric_label label, char before) {
    fprintf(file, "%c%s=\"", before, label.name);
    for (const unsigned char *s = (const unsigned char *)label.value; *s;) {
        const size_t length = utf8_length(s);
        if (*s == '"' || *s == '\\')
            fprintf(file, "\\%c", *s);
        else if (*s == '\n')
            fputs("\\n", file);
        else if (length)
            fwrite(s, 1, length, file);
        else
            fputs("\xef\xbf\xbd", file);
        s += length ? length : 1;
    }
    fputc('"', file);
}

void metrics_family(metrics *metrics, const char *name, metric_type type, const char *help) {
    metrics->family = name;
    fprintf(metrics->file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
            type == METRIC_COUNTER ? "counter" : "gauge");
}

static void begin_sample(const metrics *metrics, const metric_label *more, size_t count) {
    fputs(metrics->family, metrics->file);
    write_label(metrics->file, metrics->label, '{');
    for (size_t i = 0; i < count; i++)
        write_label(metrics->file, more[i], ',');
    fputs("} ", metrics->file);
}

void metrics_count(metrics *metrics, const metric_label *more, size_t count, uint64_t value) {
    begin_sample(metrics, more, count);
    fprintf(metrics->file, "%" PRIu64 "\n", value);
}

void metrics_real(metrics *metrics, const metric_label *more, size_t count, double value) {
    begin_sample(metrics, more, count);
    if (isfinite(value))
        fprintf(metrics->file, "%.9g\n", value);
    else
        fputs(isnan(value) ? "NaN\n" : value > 0 ? "+Inf\n" : "-Inf\n", metrics->file);
}

void metrics_gauge(metrics *metrics, const char *name, const char *help, uint64_t value) {
    metrics_family(metrics, name, METRIC_GAUGE, help);
    metrics_count(metrics, NULL, 0, value);
}

void metrics_ratio(metrics *metrics, const char *name, const char *help, double value) {
    metrics_family(metrics, name, METRIC_GAUGE, help);
    metrics_real(metrics, NULL, 0, value);
}

void metrics_counter(metrics *metrics, const char *name, const char *help, uint64_t value) {
    metrics_family(metrics, name, METRIC_COUNTER, help);
    metrics_count(metrics, NULL, 0, value);
}
