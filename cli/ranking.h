/* What the ranking commands open: texts, rows of a CSV file, models, item tables, and an index that lends its vectors
 * to features. */
#ifndef CLI_RANKING_H
#define CLI_RANKING_H

#include <shortlist_rank.h>

#include <stdatomic.h>

/* Whether the path ends so. */
int has_ending(const char *path, const char *ending);

/* A whole text file, ended by NUL, to be freed by free(); NULL, reported, where it cannot be read or is no text. */
char *read_text(const char *path);

/* A CSV file as a source of rows. `spec` is a model's, whose "csv" says how the file is written, and spec_path the file
 * it came from; NULL: commas and a header. Returns an exit status; csv_close takes what was never opened. */
typedef struct csv_file {
    const char *path;
    sl_csv *csv;
    sl_rows rows;
} csv_file;
int csv_open(csv_file *file, const char *path, const char *spec, const char *spec_path);
void csv_close(csv_file *file);
/* The next block, of 0 rows at the end; reports what is wrong with it. */
int csv_next(csv_file *file, size_t max_rows, sl_table *block);
/* The column of that name, or NULL. */
const sl_column *find_column(const sl_table *table, const char *name);

/* Opens a model and reads its facts. Returns an exit status; *out is NULL on failure. */
int open_model(const char *path, sl_ranker **out, sl_ranker_info *info);

/* An item table from its file, or built from a CSV file (.csv) whose ids are in column `id`. One that is to be changed
 * is claimed, so that nobody changes it meanwhile; another changer is waited for, `wait` seconds. `progress` is
 * --progress. Returns an exit status; *out is NULL on failure. */
typedef struct items_opening {
    const char *id;
    int progress, to_change;
    size_t wait;
} items_opening;
int open_items(const char *path, const items_opening *how, sl_items **out);

/* An index whose vectors stand in for the ids in the columns of vector features. */
typedef struct lookup {
    const char *path; /* NULL: none, and then ids are refused */
    sl_index *index;
    size_t dim;
    atomic_int failed;
    char message[512];
} lookup;
int lookup_open(lookup *lookup, const char *path);
void lookup_close(lookup *lookup);
/* The callback to give to the library; *ctx is its context. */
sl_lookup_fn lookup_callback(lookup *lookup, void **ctx);
/* report_status for a call that was given the callback. */
int lookup_report(const lookup *lookup, const char *path, sl_status status);

#endif
