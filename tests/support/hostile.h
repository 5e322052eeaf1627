/* Files made to do harm: makes them pass the checks of opening, and does everything with them that a program may do. */
#ifndef SL_TESTS_HOSTILE_H
#define SL_TESTS_HOSTILE_H

#include "storage/format.h"

#include <shortlist.h>

/* Small valid indexes of every kind of codes, ids and refine, of records, and of enough vectors for partitions with
 * bands of length. The last is a file with room. Opening does not check most of its sections against a CRC. */
#define HOSTILE_KINDS   13
#define HOSTILE_ROOM    (HOSTILE_KINDS - 1)
#define HOSTILE_VECTORS 120u
void hostile_build(int kind, const char *path);

/* Puts right, in an index or any type of file, the values that opening checks first, which would hide every other
 * change: magic, version, byte order, sizes, the CRC of each section inside the file, that of the header, and the sums
 * of pages. Files shorter than a header stay as they are. */
void hostile_seal(unsigned char *bytes, size_t size);
void hostile_seal_as(unsigned char *bytes, size_t size, const sl_file_type *type);

/* Opens the file and, on success, describes, searches (by walks, scans, batches and under a filter), reads, checks and
 * merges it. In DRAM, also adds, deletes, and saves to save_path, which may be NULL. Mapped, also searches with a DRAM
 * copy; opens a file with room once more to write, which changes it. Returns the status of opening. Ends the process if
 * the library breaks a promise that holds for any file: a status it may not give, more results than vectors, a failure
 * without a message, a block not given back, or a block out of proportion to the file. */
sl_status hostile_use(const char *path, size_t file_size, sl_place place, const char *save_path);

#endif
