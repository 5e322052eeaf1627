/* Opens an index, changes it, and keeps the changes. */
#ifndef CLI_INDEX_OPEN_SAVE_H
#define CLI_INDEX_OPEN_SAVE_H

#include "cli/common/options.h"

/* How a command opens an index. */
typedef struct opening {
    sl_place place;
    numa_choice numa;
    int prefault;
    sl_tier tier;
    int progress; /* --progress, for copying into DRAM or reading ahead */
} opening;

/* Opens an index and reads its facts. Returns an exit status; *out is NULL on failure. */
int open_index(const char *path, opening how, sl_index **out, sl_index_stats *stats);

/* Saves an index as save_handle does, in this layout and with room for this many vectors (0: not written in place). */
typedef struct saving {
    sl_index *index;
    size_t room;
    sl_layout layout;
} saving;
int save_index(saving saving, const char *path, int progress, double *seconds);

/* Makes the path of the work file beside an output, to be freed. NULL without --max-memory (0). Returns an exit
 * status. */
int work_path(size_t max_memory, const char *output, char **path);
/* Returns whether the work file has notes. */
int work_has_notes(const char *work);
/* Reports a failed call that ran under --max-memory (0: no limit). Returns an exit status. */
int report_bounded(const char *path, const char *output, size_t max_memory, sl_status status);

/* Opens an index to change it. Opens a file with room for writing in place. Opens any other file with this place and
 * claims it, so that nobody else changes it. `wait`: seconds to wait for another changer. */
typedef struct changing {
    const char *path;
    sl_place otherwise;
    size_t wait;
    int progress;
} changing;
int open_to_change(changing how, sl_index **out, sl_index_stats *stats);
/* Keeps the changes: syncs a file with room, or replaces any other file, in this layout. */
int keep_changes(sl_index *index, const char *path, int progress, double *seconds);

#endif
