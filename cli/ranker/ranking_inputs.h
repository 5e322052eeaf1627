/* Inputs of the ranking commands: texts, rows of a CSV file, models, item tables, and an index with vectors for
 * features. */
#ifndef CLI_RANKER_RANKING_INPUTS_H
#define CLI_RANKER_RANKING_INPUTS_H

#include "cli/common/json_out.h"

#include <shortlist_rank.h>

#include <stdatomic.h>

/* Returns whether the path has this ending. */
int has_ending(const char *path, const char *ending);

/* Reads a whole text file, ended by NUL, to be freed by free(). NULL: it cannot be read or is not text, reported. */
char *read_text(const char *path);

/* Opens a CSV file as a source of rows. `spec` is a model's spec, whose "csv" describes the file, and spec_path names
 * it in messages. spec NULL: commas and a header. Returns an exit status. csv_close accepts a file that was never
 * opened. */
typedef struct csv_file {
    const char *path;
    sl_csv *csv;
    sl_rows rows;
} csv_file;
int csv_open(csv_file *file, const char *path, const char *spec, const char *spec_path);
void csv_close(csv_file *file);
/* Reads the next block; it has 0 rows at the end. Reports failures. */
int csv_next(csv_file *file, size_t max_rows, sl_table *block);
/* The column of that name, or NULL. */
const sl_column *find_column(const sl_table *table, const char *name);

/* Opens a model and reads its facts. Returns an exit status. *out is NULL on failure. */
int open_model(const char *path, sl_ranker **out, sl_ranker_info *info);
/* Runs output_check for a training's model and its checkpoint, which may be NULL. `named`: the inputs; NULL for inputs
 * not given. `count` is at most TRAINED_INPUTS. */
enum { TRAINED_INPUTS = 8 };
int check_trained(const char *output, const char *checkpoint, const char *const *named, size_t count);
/* A save_fn for an sl_ranker. */
sl_status save_ranker(void *handle, const char *path, const sl_save_params *params);

const char *precision_name(sl_precision precision);
/* Writes a dense layer's sizes, precision, and input range. */
void json_layer(json *json, const sl_layer_info *layer);
void print_layer(const sl_layer_info *layer);

/* Opens an item table from its file, or builds it from a CSV file (.csv) with ids in column `id`. Claims a table that
 * will be changed, so that nobody else changes it. `wait`: seconds to wait for another changer. `progress` is
 * --progress. Returns an exit status. *out is NULL on failure. */
typedef struct items_opening {
    const char *id;
    int progress, to_change;
    size_t wait;
} items_opening;
int open_items(const char *path, const items_opening *how, sl_items **out);

/* An index that provides vectors for the ids in columns of vector features. */
typedef struct lookup {
    const char *path; /* NULL: no index, and ids are refused */
    sl_index *index;
    size_t dim;
    atomic_int failed;
    char message[512];
} lookup;
int lookup_open(lookup *lookup, const char *path);
void lookup_close(lookup *lookup);
/* The callback for the library; *ctx is its context. */
sl_lookup_fn lookup_callback(lookup *lookup, void **ctx);
/* report_status for a call with the callback. */
int lookup_report(const lookup *lookup, const char *path, sl_status status);
/* The same for a call that reads two files of rows, each of which may be unopened. The line begins with the file of
 * rows that the message names, or that has no rows. Otherwise it begins with `what`, a spec or a model, for SL_EINVAL
 * and SL_ENOTFOUND, else with `rows`. */
int lookup_report_run(const lookup *lookup, const char *what, const csv_file *rows, const csv_file *more,
                      sl_status status);

#endif
