#include "cli/check_ranking.h"

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/ranking.h"
#include "cli/system.h"

/* What both kinds of file are told by. */
typedef struct finding {
    const char *path, *kind; /* the file; "model", as the JSON object names it */
    sl_status status;
    size_t sections;
    uint64_t bytes;
    double seconds;
} finding;

static void params_of(sl_file_check_params *params, progress *progress, int progress_wanted) {
    sl_file_check_params_init(params);
    params->progress = progress_step;
    params->progress_ctx = progress;
    progress_begin(progress, "checking", "bytes", 0, progress_wanted);
}

static void json_begin_finding(json *json, const finding *found) {
    int sound = found->status == SL_OK;
    json_begin(json, stdout);
    json_text(json, found->kind, found->path);
    json_flag(json, "ok", sound);
    json_text(json, "fault", sound ? NULL : sl_last_error());
}

static void json_end_finding(json *json, const finding *found) {
    json_count(json, "sections_checked", found->sections);
    json_count(json, "bytes_checked", found->bytes);
    json_real(json, "check_s", found->seconds);
    json_end(json);
}

static void print_finding(const finding *found) {
    printf("  %-36s %zu\n", "sections that match their checksums", found->sections);
    printf("  %-36s %llu%s\n", "bytes verified", (unsigned long long)found->bytes,
           found->status == SL_OK ? ", the whole file" : "");
}

static const char *word(const finding *found) {
    return found->status == SL_OK ? "sound" : "damaged";
}

/* Damage is told on stdout, as counts, and on stderr, as the one line. */
static int end_finding(const finding *found) {
    if (found->status != SL_OK) (void)report_status(found->path, found->status);
    int printed = report_stdout();
    return found->status == SL_OK ? printed : EXIT_FAILED;
}

int check_model(const char *path, int progress_wanted, int as_json) {
    progress progress;
    sl_file_check_params params;
    sl_ranker_check_report report = {.struct_size = sizeof report};
    double start = now_seconds();
    params_of(&params, &progress, progress_wanted);
    sl_status status = sl_ranker_check(path, &params, &report);
    progress_end(&progress, status == SL_OK);
    if (status != SL_OK && status != SL_ECORRUPT) return report_status(path, status);
    const finding found = {path, "model", status, report.sections_checked, report.bytes_checked, now_seconds() - start};
    if (as_json) {
        json json;
        json_begin_finding(&json, &found);
        json_count(&json, "features", report.features);
        json_count(&json, "parameters", report.parameters);
        json_flag(&json, "checkpoint", report.checkpoint);
        json_end_finding(&json, &found);
    } else {
        printf("%s: %s; a model of %zu features and %zu parameters%s\n", path, word(&found), report.features,
               report.parameters, report.checkpoint ? ", a checkpoint of its training" : "");
        print_finding(&found);
    }
    return end_finding(&found);
}

/* Opening holds the file to its rules, and reads no value. */
static sl_status look_at_items(const char *path, const sl_file_check_params *params, sl_items_check_report *report) {
    sl_items *items;
    sl_status status = sl_items_open(path, NULL, &items);
    if (status == SL_OK) status = sl_items_check(items, params, report);
    sl_items_free(items);
    return status;
}

int check_items(const char *path, int progress_wanted, int as_json) {
    progress progress;
    sl_file_check_params params;
    sl_items_check_report report = {.struct_size = sizeof report};
    double start = now_seconds();
    params_of(&params, &progress, progress_wanted);
    sl_status status = look_at_items(path, &params, &report);
    progress_end(&progress, status == SL_OK);
    if (status != SL_OK && status != SL_ECORRUPT) return report_status(path, status);
    const finding found = {path, "items", status, report.sections_checked, report.bytes_checked, now_seconds() - start};
    if (as_json) {
        json json;
        json_begin_finding(&json, &found);
        json_count(&json, "rows", report.rows);
        json_count(&json, "columns", report.columns);
        json_count(&json, "bad_ids", report.bad_ids);
        json_end_finding(&json, &found);
    } else {
        printf("%s: %s; an item table of %zu rows and %zu columns\n", path, word(&found), report.rows, report.columns);
        print_finding(&found);
        printf("  %-36s %zu\n", "rows with another id than they say", report.bad_ids);
    }
    return end_finding(&found);
}
