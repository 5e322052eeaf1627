/* The hash of a file, by which equal files are known. */
#ifndef CLI_COMMON_HASH_H
#define CLI_COMMON_HASH_H

#include <stddef.h>

/* XXH3 of 128 bits over all bytes of the file, as 32 hexadecimal digits: what `xxh128sum` prints. "": there is none,
 * for a file with room, or in a build without xxHash. */
typedef struct file_hash {
    char text[33];
} file_hash;

/* Reads a file that was written. A file with room is not read: it has an identity of its own, and may be holes for the
 * most part. Returns an exit status. */
int hash_file(const char *path, size_t room, file_hash *out);

/* The digits; NULL: there are none. */
const char *hash_digits(const file_hash *hash);
/* Prints a line with the digits, or nothing. */
void print_hash(const file_hash *hash);

#endif
