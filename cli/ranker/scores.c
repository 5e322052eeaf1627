#include "cli/ranker/scores.h"

#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/vectors_format.h"
#include "cli/ranker/ranking_inputs.h"

#include <stdio.h>
#include <stdlib.h>

/* Numbers in the header grow into its padding, so the header has this size for any number of rows. */
#define HEADER_SIZE 128

struct scores {
    const char *path;
    output *output;
    size_t columns, rows;
    int as_npy;
};

int scores_check(const char *path, const char *const *inputs) {
    if (!has_ending(path, ".npy") && !has_ending(path, ".csv"))
        return report_failure("%s: scores are written as .npy or .csv; name such a file", path);
    return output_check(path, inputs);
}

static size_t make_header(const scores *scores, char *out) {
    return npy_write_header(out, HEADER_SIZE, scores->rows, scores->columns > 1 ? scores->columns : 0, ELEMENT_F32);
}

int scores_create(const char *path, size_t columns, scores **out) {
    char text[HEADER_SIZE];
    *out = NULL;
    scores *scores = allocate(1, sizeof *scores);
    if (!scores) return EXIT_FAILED;
    *scores = (struct scores){.path = path, .columns = columns, .as_npy = has_ending(path, ".npy")};
    int status = output_create(path, &scores->output);
    if (status == EXIT_DONE && scores->as_npy) status = output_write(scores->output, text, make_header(scores, text));
    if (status == EXIT_DONE)
        *out = scores;
    else
        scores_discard(scores);
    return status;
}

static int append_lines(scores *scores, const float *values, size_t rows) {
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < rows * scores->columns; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "%.9g%c", (double)values[i], (i + 1) % scores->columns ? ',' : '\n');
        status = output_write(scores->output, text, (size_t)length);
    }
    return status;
}

int scores_append(scores *scores, const float *values, size_t rows) {
    scores->rows += rows;
    if (!scores->as_npy) return append_lines(scores, values, rows);
    return output_write(scores->output, values, rows * scores->columns * sizeof *values);
}

int scores_commit(scores *scores) {
    char text[HEADER_SIZE];
    int status = EXIT_DONE;
    if (scores->as_npy) status = output_rewrite_start(scores->output, text, make_header(scores, text));
    if (status == EXIT_DONE) {
        status = output_commit(scores->output);
        scores->output = NULL;
    }
    scores_discard(scores);
    return status;
}

void scores_discard(scores *scores) {
    if (!scores) return;
    output_discard(scores->output);
    free(scores);
}
