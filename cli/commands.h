/* The commands, one file each, and their common parts. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/json_out.h"
#include "cli/options.h"
#include "cli/report.h"

extern const command command_build;
extern const command command_add;
extern const command command_delete;
extern const command command_merge;
extern const command command_rebuild;
extern const command command_search;
extern const command command_eval;
extern const command command_tune;
extern const command command_truth;
extern const command command_info;
extern const command command_check;
extern const command command_snapshot;
extern const command command_convert;
extern const command command_cpu;
extern const command command_train;
extern const command command_predict;
extern const command command_quantize;
extern const command command_prune;
extern const command command_evaluate;
extern const command command_items;
extern const command command_recommend;

/* "4294967296 bytes" for people: "4.0 GiB". */
typedef struct size_text {
    char text[24];
} size_text;
size_text text_of_size(uint64_t bytes);

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

/* The codes asked for; if `choice` is -1, the default codes for vectors of this type. */
sl_codes index_codes(int choice, sl_dtype dtype);

/* Writes the first members of every object about an index: n, deleted, dim, metric, … isa. */
void json_index(json *json, const sl_index_stats *stats);

/* " clip mse", " clip quantile:0.01"; nothing where codes have the clip that is their own. */
typedef struct clip_text {
    char text[48];
} clip_text;
clip_text text_of_clip(const sl_index_stats *stats);

/* Prints one line about an index: "339479 vectors of 100 f32, cosine, codes i8, refine bf16, m 16, ef_build 200". */
void print_index(const sl_index_stats *stats);

/* Reports a -k or --ef of 0, above n or above SL_MAX_EF. `option` names it, and `path` the file of n vectors. */
int check_depth(const char *option, size_t value, size_t n, const char *path);

/* Saves a handle of the library by its call, sl_index_save or another. Tells the progress; *seconds gets the time it
 * took. Returns an exit status. */
typedef sl_status (*save_fn)(void *handle, const char *path, const sl_save_params *params);
int save_handle(save_fn save, void *handle, const char *path, int progress, double *seconds);

/* The same of an index, with room for so many vectors (0: a file that is not written in place) in this layout. */
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
#define WAIT_DEFAULT 60
int open_to_change(changing how, sl_index **out, sl_index_stats *stats);
/* Keeps the changes: syncs a file with room, or saves the whole in the file's place in this layout. */
int keep_changes(sl_index *index, const char *path, int progress, double *seconds);

/* The number of threads that a call uses when asked for so many: at most what the library makes. 0 asks for all. */
size_t thread_count(size_t asked);

#endif
