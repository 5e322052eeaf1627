/* Files made to do harm: how they are made to pass the checks of opening, and everything a program may do with one. */
#ifndef SL_TESTS_HOSTILE_H
#define SL_TESTS_HOSTILE_H

#include "storage/format.h"

#include <shortlist.h>

/* Small valid indexes of every kind of codes, ids and refine tier, of records, and of enough vectors for partitions
 * with bands of length; the last is a file with room, in which opening does not check most sections against a CRC. */
#define HOSTILE_KINDS   13
#define HOSTILE_ROOM    (HOSTILE_KINDS - 1)
#define HOSTILE_VECTORS 120u
void hostile_build(int kind, const char *path);

/* Of an index; or of any type of file: puts right what opening checks before anything else and what would stop every
 * other change there: magic, version, byte order, sizes, the CRC of each section that lies inside the file, that of the
 * header, and the sums of pages. Files shorter than a header stay as they are. */
void hostile_seal(unsigned char *bytes, size_t size);
void hostile_seal_as(unsigned char *bytes, size_t size, const sl_file_type *type);

/* Opens the file and, where that succeeds, describes, searches (by walks, scans and in batches), reads and checks it,
 * and in DRAM adds to it, deletes and saves it to save_path, which may be NULL; mapped, searches it with a tier too,
 * and where it has room opens it once more to write, which changes it. Returns what opening gave. Ends the process
 * where the library breaks a promise that holds for any file: a status it may not give, more results than there are
 * vectors, a failure without a message, a block not given back, or a block out of proportion to the file. */
sl_status hostile_use(const char *path, size_t file_size, sl_place place, const char *save_path);

#endif
