/* Opening an index, changing it, and keeping what was changed. */
#ifndef CLI_INDEX_OPEN_SAVE_H
#define CLI_INDEX_OPEN_SAVE_H

#include "cli/common/options.h"

/* How a command opens an index. */
typedef struct opening {
    sl_place place;
    numa_choice numa;
    int prefault;
    sl_tier tier;
    int progress; /* --progress, for a copy into DRAM or for reading ahead */
} opening;

/* Opens an index and reads its facts. Returns an exit status; *out is NULL on failure. */
int open_index(const char *path, opening how, sl_index **out, sl_index_stats *stats);

/* Saves an index as save_handle does, with room for so many vectors (0: a file that is not written in place) in this
 * layout. */
typedef struct saving {
    sl_index *index;
    size_t room;
    sl_layout layout;
} saving;
int save_index(saving saving, const char *path, int progress, double *seconds);

/* Makes the path of the work file beside an output, to be freed; NULL without --max-memory (0). Returns an exit
 * status. */
int work_path(size_t max_memory, const char *output, char **path);
/* Reports a failure of a call that --max-memory bounds (0: nothing does). Returns an exit status. */
int report_bounded(const char *path, const char *output, size_t max_memory, sl_status status);

/* Opens an index to be changed. A file with room is opened for writing in place. Any other file is opened with this
 * place and claimed, so that nobody changes it meanwhile. `wait`: seconds to wait for another changer. */
typedef struct changing {
    const char *path;
    sl_place otherwise;
    size_t wait;
    int progress;
} changing;
int open_to_change(changing how, sl_index **out, sl_index_stats *stats);
/* Keeps the changes: syncs a file with room, or saves the whole in the file's place in this layout. */
int keep_changes(sl_index *index, const char *path, int progress, double *seconds);

#endif
