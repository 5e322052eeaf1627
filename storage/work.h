/* A work file: notes of what a long piece of work has done, so that it continues after an interruption. Each note has a
 * CRC. The notes end at the first that isn't whole, as a kill or a power loss leaves it. Nothing is synced: lost work
 * is done again. */
#ifndef SL_STORAGE_WORK_H
#define SL_STORAGE_WORK_H

#include "base/memory.h"

typedef struct sl_work sl_work;

/* The head of a note. Kinds and numbers are the caller's. */
typedef struct sl_note {
    uint32_t kind, number; /* kinds count from 1 */
    uint32_t size;         /* bytes */
    uint32_t crc;          /* of the other fields and the bytes */
} sl_note;

/* Opens the file or creates it, and keeps others off. Errors: SL_EBUSY: another has it; SL_EIO and SL_ENOSPC by errno;
 * SL_ECORRUPT: a file of another kind, which is left alone. */
sl_status sl_work_open(const char *path, const sl_allocator *allocator, sl_work **out);
/* Adds an older file of notes, which is read after the first. The next sl_work_begin reads it too. Errors: as above. */
sl_status sl_work_add(sl_work *work, const char *path);
/* Closes the files. Removes the first if it has no notes. Takes NULL. */
void sl_work_close(sl_work *work);
/* Removes the files when the work is done. Takes NULL. */
void sl_work_remove(sl_work *work);

/* Begins reading at the first note. Notes made under another key are dropped; the key stands for all that the work
 * depends on. */
sl_status sl_work_begin(sl_work *work, const uint64_t key[2]);
/* Reads the next note into `to`. Returns 0 behind the last whole note. Further notes are appended there. */
int sl_work_next(sl_work *work, sl_note *note, void *to, size_t room);
/* Drop the note read last and all behind it in its file; or all notes of the first file. */
void sl_work_cut(sl_work *work);
void sl_work_restart(sl_work *work);

/* A place between two notes. */
typedef struct sl_work_mark {
    size_t file;
    uint64_t end;
} sl_work_mark;
/* Return the place behind the note read last, and go back there. Appends go behind all notes of the first file only if
 * these were read again. */
sl_work_mark sl_work_here(const sl_work *work);
void sl_work_go_back(sl_work *work, sl_work_mark mark);

/* Pieces of the work, and those of them that notes had when it began. */
typedef struct sl_work_counts {
    uint64_t pieces, noted;
} sl_work_counts;
/* Sets and returns the counts, for reports. They are 0 at first. */
void sl_work_count(sl_work *work, sl_work_counts counts);
sl_work_counts sl_work_counted(const sl_work *work);

/* Appends a note to the first file. Threads: any. Errors: SL_ENOSPC, SL_EIO. */
sl_status sl_work_append(sl_work *work, uint32_t kind, uint32_t number, const void *bytes, size_t size);

#endif
