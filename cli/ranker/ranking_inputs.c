#include "cli/ranker/ranking_inputs.h"

#include "cli/common/interrupt.h"
#include "cli/common/json_out.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/size_text.h"
#include "cli/common/system.h"
#include "cli/index/open_save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)64 << 20)

int has_ending(const char *path, const char *ending) {
    size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

/* Reads `size` bytes, or all if there are fewer. Returns -1 with errno on failure. */
static ssize_t read_whole(int fd, char *out, size_t size) {
    size_t used = 0;
    while (used < size) {
        ssize_t got = read(fd, out + used, size - used);
        if (got < 0 && errno == EINTR && !interrupted()) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        used += (size_t)got;
    }
    return (ssize_t)used;
}

char *read_text(const char *path) {
    /* O_NONBLOCK: do not wait for the other end of a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    char *text = NULL;
    if (fd < 0 || fstat(fd, &info) != 0)
        (void)report_failure("%s: cannot open: %s; check the path and who may read it", path, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        (void)report_failure("%s: cannot read: not a regular file", path);
    else if (info.st_size < 0 || (uint64_t)info.st_size > TEXT_MAX)
        (void)report_failure("%s: larger than %s; a spec is a short JSON text", path, text_of_size(TEXT_MAX).text);
    else
        text = allocate((size_t)info.st_size + 1, 1);
    if (text) {
        ssize_t length = read_whole(fd, text, (size_t)info.st_size);
        int whole = length >= 0 && strlen(text) == (size_t)length;
        if (length < 0)
            (void)report_failure("%s: cannot read: %s", path, strerror(errno));
        else if (!whole)
            (void)report_failure("%s: holds a NUL byte: not a text", path);
        if (!whole) {
            free(text);
            text = NULL;
        }
    }
    if (fd >= 0) close(fd);
    return text;
}

int csv_open(csv_file *file, const char *path, const char *spec, const char *spec_path) {
    sl_csv_params params;
    sl_csv_params_init(&params);
    params.spec = spec;
    *file = (csv_file){.path = path, .rows = {.struct_size = sizeof file->rows}};
    sl_status status = sl_csv_open(path, &params, &file->csv);
    if (status == SL_OK) status = sl_csv_rows(file->csv, &file->rows);
    if (status == SL_OK) return EXIT_DONE;
    return report_status(spec && status == SL_EINVAL ? spec_path : path, status);
}

void csv_close(csv_file *file) {
    sl_csv_free(file->csv);
    file->csv = NULL;
}

int csv_next(csv_file *file, size_t max_rows, sl_table *block) {
    *block = (sl_table){.struct_size = sizeof *block};
    sl_status status = file->rows.next(file->rows.ctx, max_rows, block);
    return status == SL_OK ? EXIT_DONE : report_status(file->path, status);
}

const sl_column *find_column(const sl_table *table, const char *name) {
    for (size_t i = 0; i < table->column_count; i++)
        if (strcmp(table->columns[i].name, name) == 0) return &table->columns[i];
    return NULL;
}

int open_model(const char *path, sl_ranker **out, sl_ranker_info *info) {
    sl_ranker_open_params params;
    sl_ranker_open_params_init(&params);
    params.log = report_log(&params.log_ctx);
    *out = NULL;
    sl_status status = sl_ranker_open(path, &params, out);
    if (status != SL_OK) return report_status(path, status);
    *info = (sl_ranker_info){.struct_size = sizeof *info};
    status = sl_ranker_get_info(*out, info);
    if (status == SL_OK) return EXIT_DONE;
    sl_ranker_free(*out);
    *out = NULL;
    return report_status(path, status);
}

int check_trained(const char *output, const char *checkpoint, const char *const *named, size_t count) {
    const char *inputs[TRAINED_INPUTS + 1] = {0};
    size_t given = 0;
    for (size_t i = 0; i < count; i++)
        if (named[i]) inputs[given++] = named[i];
    int status = output_check(output, inputs);
    if (status != EXIT_DONE || !checkpoint) return status;
    if (strcmp(checkpoint, output) == 0)
        return report_failure("%s: named for the model and for the checkpoint; name another file for one", output);
    return output_check(checkpoint, inputs);
}

sl_status save_ranker(void *handle, const char *path, const sl_save_params *params) {
    return sl_ranker_save(handle, path, params);
}

const char *precision_name(sl_precision precision) {
    static const char *const names[] = {"f32", "int8", "int8-dynamic", "bf16"};
    return names[precision];
}

static float largest_scale(const sl_layer_info *layer) {
    float most = 0;
    for (size_t o = 0; layer->weight_scales && o < layer->out; o++)
        most = layer->weight_scales[o] > most ? layer->weight_scales[o] : most;
    return most;
}

void json_layer(json *json, const sl_layer_info *layer) {
    json_open_object(json, NULL);
    json_text(json, "name", layer->name);
    json_count(json, "in", layer->in);
    json_count(json, "out", layer->out);
    json_text(json, "precision", precision_name(layer->precision));
    json_count(json, "bytes", layer->bytes);
    if (layer->weight_scales) json_real(json, "largest_weight_scale", (double)largest_scale(layer));
    if (layer->precision == SL_PRECISION_INT8) {
        json_real(json, "scale", (double)layer->scale);
        json_count(json, "zero", (uint64_t)layer->zero);
        json_real(json, "low", (double)layer->low);
        json_real(json, "high", (double)layer->high);
    }
    json_close_object(json);
}

void print_layer(const sl_layer_info *layer) {
    printf("  %-9s %6zu x %-6zu %-13s %10zu bytes", layer->name, layer->in, layer->out,
           precision_name(layer->precision), layer->bytes);
    if (layer->weight_scales) printf("  weights by up to %.4g", (double)largest_scale(layer));
    if (layer->precision == SL_PRECISION_INT8) printf("  inputs %.4g to %.4g", (double)layer->low, (double)layer->high);
    printf("\n");
}

int open_items(const char *path, const items_opening *how, sl_items **out) {
    progress progress;
    csv_file file = {0};
    sl_items_params params;
    sl_items_params_init(&params);
    if (how->id) params.id = how->id;
    params.exclusive = how->to_change;
    params.wait_s = (double)how->wait;
    params.progress = progress_step;
    params.progress_ctx = &progress;
    *out = NULL;
    int from_csv = has_ending(path, ".csv");
    int result = from_csv ? csv_open(&file, path, NULL, NULL) : EXIT_DONE;
    if (result != EXIT_DONE) return result;
    progress_begin(&progress, "reading items", "rows", 0, how->progress && from_csv);
    sl_status status = from_csv ? sl_items_create(&file.rows, &params, out) : sl_items_open(path, &params, out);
    progress_end(&progress, status == SL_OK);
    if (status != SL_OK) result = report_status(path, status);
    csv_close(&file);
    return result;
}

int lookup_open(lookup *lookup, const char *path) {
    sl_index_stats stats;
    *lookup = (struct lookup){.path = path};
    if (!path) return EXIT_DONE;
    int status = open_index(path, (opening){.place = SL_PLACE_MAP}, &lookup->index, &stats);
    if (status == EXIT_DONE) lookup->dim = stats.dim;
    return status;
}

void lookup_close(lookup *lookup) {
    sl_index_free(lookup->index);
    lookup->index = NULL;
}

/* Several threads may call the callback. Only the first failure keeps its message. */
static sl_status refuse_id(lookup *lookup, const char *feature, size_t width) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&lookup->failed, &none, 1)) return SL_EDIM;
    if (lookup->path)
        snprintf(lookup->message, sizeof lookup->message,
                 "%s: its vectors have %zu elements, but feature '%s' takes %zu; name the index the model was made for",
                 lookup->path, lookup->dim, feature, width);
    else
        snprintf(lookup->message, sizeof lookup->message,
                 "feature '%s' takes vectors by id; name the index that holds them with --index", feature);
    return SL_EDIM;
}

static sl_status look_up(void *ctx, const char *feature, uint64_t id, float *out, size_t dim) {
    lookup *lookup = ctx;
    if (!lookup->index || dim != lookup->dim) return refuse_id(lookup, feature, dim);
    return sl_index_get(lookup->index, &id, 1, SL_F32, out);
}

sl_lookup_fn lookup_callback(lookup *lookup, void **ctx) {
    *ctx = lookup;
    return look_up;
}

int lookup_report(const lookup *lookup, const char *path, sl_status status) {
    if (lookup->failed && status != SL_ECANCELED) return report_failure("%s", lookup->message);
    return report_status(path, status);
}

/* Returns whether a failure with this message is about a file. */
static int is_blamed(const csv_file *file, const char *message, int refused) {
    sl_table block = {.struct_size = sizeof block};
    if (!file->csv) return 0;
    if (strstr(message, file->path)) return 1;
    return refused && file->rows.rewind(file->rows.ctx) == SL_OK &&
           file->rows.next(file->rows.ctx, 1, &block) == SL_OK && block.rows == 0;
}

int lookup_report_run(const lookup *lookup, const char *what, const csv_file *rows, const csv_file *more,
                      sl_status status) {
    if (lookup->failed || status == SL_ECANCELED) return lookup_report(lookup, what, status);
    char message[1024]; /* a copy: the library's text lasts until the next call */
    snprintf(message, sizeof message, "%s", *sl_last_error() ? sl_last_error() : sl_status_text(status));
    int refused = status == SL_EINVAL || status == SL_ENOTFOUND;
    const char *subject = !refused && rows->csv ? rows->path : what;
    if (is_blamed(more, message, refused))
        subject = more->path;
    else if (is_blamed(rows, message, refused))
        subject = rows->path;
    if (strstr(message, subject)) return report_failure("%s", message);
    return report_failure("%s: %s", subject, message);
}
