/* A file that appears whole or not at all. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stddef.h>

typedef struct output output;

/* Opens a temporary file beside `path`. Returns an exit status; *out is NULL on failure. */
int output_create(const char *path, output **out);

/* Appends; buffered. */
int output_write(output *output, const void *data, size_t size);

/* Writes over what the file begins with: a header whose counts are known only at the end. */
int output_rewrite_start(output *output, const void *data, size_t size);

/* Flushes, syncs, renames over the path, syncs the folder, and frees. On failure the path is as it was. */
int output_commit(output *output);

/* Removes the temporary file and frees; takes NULL. */
void output_discard(output *output);

/* Removes the temporary files of all outputs that are open, in a process that is about to end. A signal handler may. */
void output_remove_unfinished(void);

/* Whether two names are of one file that is there. */
int is_same_file(const char *a, const char *b);

/* Whether a file could be put at `path`, so that hours of work do not end in a refusal: its folder exists and may be
 * written to, and nothing but a regular file is there, which is none of `inputs`, a list ended by NULL, that it would
 * take the place of. Returns an exit status. */
int output_check(const char *path, const char *const *inputs);

/* The folder part of a path, to be freed: "." where there is none. NULL for want of memory. */
char *output_folder(const char *path);

#endif
