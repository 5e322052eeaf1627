/* A folder for one test, and whole files in it. */
#ifndef SL_TESTS_SCRATCH_H
#define SL_TESTS_SCRATCH_H

#include <stddef.h>

#define SCRATCH_PATH 512

typedef struct scratch {
    char folder[SCRATCH_PATH / 2];
    char path[SCRATCH_PATH]; /* folder/index.sl, which does not exist yet */
} scratch;

/* Failures of these end the test. */
void scratch_open(scratch *s);
/* Removes the folder and the files in it. */
void scratch_close(scratch *s);

/* Returns the number of entries of the folder. */
size_t scratch_count(const scratch *s);
/* Removes the finished files that failed saves left, and returns their number. */
size_t scratch_take_finished(const scratch *s);
/* Writes folder/name to out, SCRATCH_PATH bytes. */
void scratch_name(const scratch *s, const char *name, char *out);

/* Returns the file's bytes in a new block to free(), with *size set. */
unsigned char *file_read(const char *path, size_t *size);
void file_write(const char *path, const void *bytes, size_t size);
/* Overwrites `size` bytes at an offset of an existing file. */
void file_patch(const char *path, size_t offset, const void *bytes, size_t size);

#endif
