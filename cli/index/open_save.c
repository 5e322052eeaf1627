#include "cli/index/open_save.h"

#include "cli/common/clock.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/save_handle.h"
#include "cli/common/size_text.h"
#include "cli/common/system.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static sl_status open_with(const char *path, sl_open_params *params, int progress_wanted, sl_index **out) {
    progress progress;
    params->log = report_log(&params->log_ctx);
    params->progress = progress_step;
    params->progress_ctx = &progress;
    int reads = params->place == SL_PLACE_DRAM || params->numa || params->prefault;
    progress_begin(&progress, "loading", "bytes", 0, progress_wanted && reads);
    sl_status status = sl_index_open(path, params, out);
    progress_end(&progress, status == SL_OK);
    return status;
}

static int describe_opened(const char *path, sl_status status, sl_index **out, sl_index_stats *stats) {
    if (status != SL_OK) return report_status(path, status);
    *stats = (sl_index_stats){.struct_size = sizeof *stats};
    status = sl_index_get_stats(*out, stats);
    if (status == SL_OK) return EXIT_DONE;
    sl_index_free(*out);
    *out = NULL;
    return report_status(path, status);
}

int open_index(const char *path, opening how, sl_index **out, sl_index_stats *stats) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = how.place;
    params.numa = how.numa.policy;
    params.numa_node = how.numa.node;
    params.prefault = how.prefault;
    params.tier = how.tier;
    return describe_opened(path, open_with(path, &params, how.progress, out), out, stats);
}

/* Reads the file's layout, which a copy in memory does not know. The claim keeps the file unchanged. */
static int read_file_layout(const char *path, sl_index_storage *out) {
    sl_index *index;
    sl_open_params params;
    sl_open_params_init(&params);
    params.tier = SL_TIER_NONE;
    *out = (sl_index_storage){.struct_size = sizeof *out};
    sl_status status = sl_index_open(path, &params, &index);
    if (status != SL_OK) return report_status(path, status);
    status = sl_index_get_storage(index, out);
    int result = status == SL_OK ? EXIT_DONE : report_status(path, status);
    sl_index_free(index);
    return result;
}

/* The other changer may need longer than this command waited. */
static int describe_claimed(changing how, sl_status status, sl_index **out, sl_index_stats *stats) {
    if (status != SL_EBUSY) return describe_opened(how.path, status, out, stats);
    return report_failure("%s, or give more than %zu s of --wait", sl_last_error(), how.wait);
}

/* Opens a file with room for writing in place, and claims any other file. If a file with room replaces the file in
 * between, opens again. */
int open_to_change(changing how, sl_index **out, sl_index_stats *stats) {
    for (;;) {
        sl_index_storage storage;
        sl_open_params params;
        sl_open_params_init(&params);
        params.writable = 1;
        params.wait_s = (double)how.wait;
        sl_status status = open_with(how.path, &params, how.progress, out);
        if (status != SL_EUNSUPPORTED) return describe_claimed(how, status, out, stats);
        params.place = how.otherwise;
        params.writable = 0;
        params.exclusive = 1;
        status = open_with(how.path, &params, how.progress, out);
        int result = describe_claimed(how, status, out, stats);
        if (result == EXIT_DONE) result = read_file_layout(how.path, &storage);
        if (result == EXIT_DONE && !storage.room) result = output_try(how.path, 1);
        if (result == EXIT_DONE && !storage.room) return EXIT_DONE;
        sl_index_free(*out);
        *out = NULL;
        if (result != EXIT_DONE) return result;
    }
}

static sl_status save_as_asked(void *handle, const char *path, const sl_save_params *params) {
    const saving *saving = handle;
    sl_save_params mine = *params;
    mine.room = saving->room;
    mine.layout = saving->layout;
    return sl_index_save(saving->index, path, &mine);
}

int save_index(saving saving, const char *path, int progress_wanted, double *seconds) {
    return save_handle(save_as_asked, &saving, path, progress_wanted, seconds);
}

int work_path(size_t max_memory, const char *output, char **path) {
    static const char ending[] = ".work";
    const size_t length = strlen(output);
    *path = NULL;
    if (!max_memory) return EXIT_DONE;
    *path = allocate(length + sizeof ending, 1);
    if (!*path) return EXIT_FAILED;
    memcpy(*path, output, length);
    memcpy(*path + length, ending, sizeof ending);
    return EXIT_DONE;
}

/* Closing the index removes a work file that is only its head of 32 bytes. */
int work_has_notes(const char *work) {
    enum { HEAD = 32 };
    struct stat info;
    return stat(work, &info) == 0 && info.st_size > HEAD;
}

int report_bounded(const char *path, const char *output, size_t max_memory, sl_status status) {
    char *work;
    if (status == SL_ECANCELED && max_memory && work_path(max_memory, output, &work) == EXIT_DONE) {
        const int failed = work_has_notes(work)
                               ? report_failure("interrupted; no index was written, and %s lets the same "
                                                "command go on",
                                                work)
                               : report_interrupted();
        free(work);
        return failed;
    }
    if (status != SL_ENOMEM || !max_memory) return report_status(path, status);
    return report_failure("%s: --max-memory %s: %s", path, text_of_size(max_memory).text, sl_last_error());
}

int keep_changes(sl_index *index, const char *path, int progress_wanted, double *seconds) {
    sl_index_storage storage;
    sl_index_stats stats = {.struct_size = sizeof stats};
    sl_status status = sl_index_get_stats(index, &stats);
    if (status == SL_OK && !stats.room) {
        int result = read_file_layout(path, &storage);
        const saving saving = {index, 0, storage.record_bytes ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS};
        return result == EXIT_DONE ? save_index(saving, path, progress_wanted, seconds) : result;
    }
    double start = now_seconds();
    if (status == SL_OK) status = sl_index_sync(index);
    *seconds = now_seconds() - start;
    return status == SL_OK ? EXIT_DONE : report_status(path, status);
}
