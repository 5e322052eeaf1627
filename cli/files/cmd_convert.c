#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/commands.h"
#include "cli/files/vectors.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)8 << 20)

typedef struct convert_options {
    int type; /* an element; -1: from OUT's ending or IN */
    int round, progress, json;
} convert_options;

/* The default type of .npy: IN's type, or the nearest type that .npy files here have. */
static element npy_type(const convert_options *options, element from) {
    if (options->type >= 0) return (element)options->type;
    switch (from) {
    case ELEMENT_F64:
        return ELEMENT_F32;
    case ELEMENT_U16:
        return ELEMENT_I32;
    case ELEMENT_U32:
    case ELEMENT_I64:
        return ELEMENT_U64;
    default:
        return from;
    }
}

static int copy_rows(vectors *in, vectors_writer *writer, const convert_options *options) {
    size_t row = in->dim * element_size(in->type);
    size_t block = row < BLOCK_SIZE ? BLOCK_SIZE / row : 1;
    if (block > in->n) block = in->n;
    void *rows = allocate(block, row);
    if (!rows) return EXIT_FAILED;
    progress progress;
    int status = EXIT_DONE;
    progress_begin(&progress, "converting", "rows", in->n, options->progress);
    for (size_t first = 0; status == EXIT_DONE && first < in->n; first += block) {
        size_t count = in->n - first < block ? in->n - first : block;
        status = vectors_read(in, first, count, in->type, 0, rows);
        if (status == EXIT_DONE)
            status = vectors_append(writer, rows, in->type, count, options->round, in->path, first);
        if (progress_step(&progress, first + count, in->n) && status == EXIT_DONE) status = report_interrupted();
    }
    progress_end(&progress, status == EXIT_DONE);
    free(rows);
    return status;
}

static int print_result(const vectors *in, const char *out, element type, int as_json) {
    if (as_json) {
        json json;
        json_begin(&json, stdout);
        json_count(&json, "n", in->n);
        json_count(&json, "dim", in->dim);
        json_text(&json, "input", element_name(in->type));
        json_text(&json, "type", element_name(type));
        json_text(&json, "output", out);
        json_end(&json);
    } else
        printf("%s: %zu rows of %zu %s, from %s\n", out, in->n, in->dim, element_name(type), element_name(in->type));
    return report_stdout();
}

static int run_convert(const command *self, int argc, char **argv) {
    convert_options options = {.type = -1};
    const char *paths[2];
    element type;
    vectors *in = NULL;
    vectors_writer *writer = NULL;
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    int status = vectors_writer_type(paths[1], options.type >= 0 ? (element)options.type : ELEMENT_F32, &type);
    if (status == EXIT_DONE && options.type >= 0 && (int)type != options.type)
        status = report_usage("--type %s: a file named %s holds %s; choose another ending, or .npy",
                              element_name((element)options.type), paths[1], element_name(type));
    if (status == EXIT_DONE) status = output_check(paths[1], (const char *const[]){paths[0], NULL});
    if (status == EXIT_DONE) status = vectors_open(paths[0], VECTORS_ARRAY, &in);
    if (status == EXIT_DONE) {
        element npy = npy_type(&options, in->type);
        status = vectors_writer_type(paths[1], npy, &type);
        if (status == EXIT_DONE) status = vectors_create(paths[1], in->n, in->dim, npy, &writer);
    }
    if (status == EXIT_DONE) status = copy_rows(in, writer, &options);
    if (status == EXIT_DONE) {
        status = vectors_commit(writer);
        writer = NULL;
    }
    if (status == EXIT_DONE) status = print_result(in, paths[1], type, options.json);
    vectors_discard(writer);
    vectors_close(in);
    return status;
}

static const char *const operands[] = {"IN", "OUT", NULL};

static const option convert_table[] = {
    {0, "type", OPTION_WORD, ELEMENT_TARGETS, 0, offsetof(convert_options, type),
     "Element type of a .npy OUT (default: that of IN); the other endings imply theirs."},
    {0, "round", OPTION_FLAG, NULL, 0, offsetof(convert_options, round),
     "Round to the nearest value of the new type where a fraction would be lost. Without it such a value is refused; "
     "one out of range always is. Between floating-point types values are rounded in any case."},
    OPTION_PROGRESS(convert_options),
    OPTION_JSON(convert_options),
    OPTION_LAST};

const command command_convert = {
    .name = "convert",
    .summary = "bring a file of vectors into another format",
    .synopsis = "shortlist convert IN OUT [--type " ELEMENT_TARGETS "] [--round] [--progress] [--json]",
    .description = "Reads " VECTORS_READ_ENDINGS " and writes " VECTORS_WRITE_ENDINGS
                   ". The endings of the names tell the types. From an .hdf5 file the dataset train is read; "
                   "FILE.hdf5:NAME names another, such as test or neighbors.\n"
                   "A value that the new type cannot hold ends the command. The message names the row, counted from 0, "
                   "and OUT is left as it was.\n",
    .examples = "shortlist convert sift.bvecs sift.u8bin\n"
                "shortlist convert glove.hdf5:test queries.fbin\n"
                "shortlist convert base.fbin half.npy --type f16\n",
    .operands = operands,
    .options = convert_table,
    .run = run_convert,
};
