/* A folder of a test's own, and whole files in it. */
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

/* Entries of the folder. */
size_t scratch_count(const scratch *s);
/* Removes the finished files that failed saves left, and returns their number. */
size_t scratch_take_finished(const scratch *s);
/* folder/name in out, SCRATCH_PATH bytes. */
void scratch_name(const scratch *s, const char *name, char *out);

/* The file's bytes in a new block with *size set; free() it. */
unsigned char *file_read(const char *path, size_t *size);
void file_write(const char *path, const void *bytes, size_t size);
/* Writes over `size` bytes at an offset of an existing file. */
void file_patch(const char *path, size_t offset, const void *bytes, size_t size);

#endif
