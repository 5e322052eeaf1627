/* The hash of a file, which equal files share. */
#ifndef CLI_COMMON_HASH_H
#define CLI_COMMON_HASH_H

#include <stddef.h>

/* XXH3 of 128 bits over all bytes of the file, as 32 hexadecimal digits, like `xxh128sum`. "" for a file with room, or
 * in a build without xxHash. */
typedef struct file_hash {
    char text[33];
} file_hash;

/* Hashes a written file. Does not read a file with room: its identity is its own, and most of it may be holes. Returns
 * an exit status. */
int hash_file(const char *path, size_t room, file_hash *out);

/* The digits, or NULL. */
const char *hash_digits(const file_hash *hash);
/* Prints a line with the digits, or nothing. */
void print_hash(const file_hash *hash);

#endif
