/* A file that appears whole or not at all. */
#ifndef CLI_COMMON_OUTPUT_H
#define CLI_COMMON_OUTPUT_H

#include <stddef.h>

typedef struct output output;

/* Opens a temporary file beside `path`. Returns an exit status; *out is NULL on failure. */
int output_create(const char *path, output **out);

/* Appends bytes, buffered. */
int output_write(output *output, const void *data, size_t size);

/* Overwrites the file's beginning: a header whose counts are known only at the end. */
int output_rewrite_start(output *output, const void *data, size_t size);

/* Flushes, syncs, renames over the path, syncs the folder, and frees. On failure the path does not change. A finished
 * file that cannot be renamed stays, and the message names it. */
int output_commit(output *output);

/* Removes the temporary file and frees. NULL is allowed. */
void output_discard(output *output);

/* Removes the temporary files of all open outputs before the process ends. A signal handler may call it. */
void output_remove_unfinished(void);

/* Returns whether two names belong to one existing file. */
int is_same_file(const char *a, const char *b);

/* Checks before hours of work that a file can be put at `path`. Its folder exists and is writable. A file at `path` is
 * regular, and is none of `inputs`, a list ended by NULL. A save is tried. Returns an exit status. */
int output_check(const char *path, const char *const *inputs);

/* The two parts of output_check: checks names, and tries a save. `own`: the command itself changes or replaces the
 * file, and waits for another writer later. */
int output_check_name(const char *path, const char *const *inputs);
int output_try(const char *path, int own);

/* The folder of a path, to be freed; "." if the path has none. NULL: no memory. */
char *output_folder(const char *path);

#endif
