#include "cli/inspect/check_ranking.h"

#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/ranker/ranking_inputs.h"

#define FACTS 3

/* A number that a check prints. */
typedef struct fact {
    const char *key;
    uint64_t value;
    int is_flag;
    const char *line; /* its line of text; NULL: it is in the heading */
} fact;

typedef struct finding {
    sl_status status;
    size_t sections;
    uint64_t bytes;
    double seconds;
    fact facts[FACTS];
    char heading[128]; /* the file's content in words */
} finding;

/* How to check a type of file: its key in JSON, and the function that checks it and fills facts and counts. */
typedef struct checker {
    const char *key;
    sl_status (*look)(const char *path, const sl_file_check_params *params, finding *found);
} checker;

static sl_status look_at_model(const char *path, const sl_file_check_params *params, finding *found) {
    sl_ranker_check_report report = {.struct_size = sizeof report};
    sl_status status = sl_ranker_check(path, params, &report);
    found->sections = report.sections_checked;
    found->bytes = report.bytes_checked;
    found->facts[0] = (fact){"features", report.features, 0, NULL};
    found->facts[1] = (fact){"parameters", report.parameters, 0, NULL};
    found->facts[2] = (fact){"checkpoint", report.checkpoint != 0, 1, NULL};
    snprintf(found->heading, sizeof found->heading, "a model of %zu features and %zu parameters%s", report.features,
             report.parameters, report.checkpoint ? ", a checkpoint of its training" : "");
    return status;
}

/* Opening checks the file's structure and reads no value. */
static sl_status look_at_items(const char *path, const sl_file_check_params *params, finding *found) {
    sl_items_check_report report = {.struct_size = sizeof report};
    sl_items *items;
    sl_status status = sl_items_open(path, NULL, &items);
    if (status == SL_OK) status = sl_items_check(items, params, &report);
    sl_items_free(items);
    found->sections = report.sections_checked;
    found->bytes = report.bytes_checked;
    found->facts[0] = (fact){"rows", report.rows, 0, NULL};
    found->facts[1] = (fact){"columns", report.columns, 0, NULL};
    found->facts[2] = (fact){"bad_ids", report.bad_ids, 0, "rows with another id than they say"};
    snprintf(found->heading, sizeof found->heading, "an item table of %zu rows and %zu columns", report.rows,
             report.columns);
    return status;
}

static void print_json(const char *path, const checker *type, const finding *found) {
    const int sound = found->status == SL_OK;
    json json;
    json_begin(&json, stdout);
    json_text(&json, type->key, path);
    json_flag(&json, "ok", sound);
    json_text(&json, "fault", sound ? NULL : sl_last_error());
    for (size_t i = 0; i < FACTS; i++)
        if (found->facts[i].is_flag)
            json_flag(&json, found->facts[i].key, found->facts[i].value != 0);
        else
            json_count(&json, found->facts[i].key, found->facts[i].value);
    json_count(&json, "sections_checked", found->sections);
    json_count(&json, "bytes_checked", found->bytes);
    json_real(&json, "check_s", found->seconds);
    json_end(&json);
}

static void print_text(const char *path, const finding *found) {
    const int sound = found->status == SL_OK;
    printf("%s: %s; %s\n", path, sound ? "sound" : "damaged", found->heading);
    printf("  %-36s %zu\n", "sections that match their checksums", found->sections);
    printf("  %-36s %llu%s\n", "bytes verified", (unsigned long long)found->bytes, sound ? ", the whole file" : "");
    for (size_t i = 0; i < FACTS; i++)
        if (found->facts[i].line)
            printf("  %-36s %llu\n", found->facts[i].line, (unsigned long long)found->facts[i].value);
}

int check_ranking(const char *path, sl_file_kind kind, int progress_wanted, int as_json) {
    static const checker model = {"model", look_at_model}, items = {"items", look_at_items};
    const checker *type = kind == SL_FILE_RANKER ? &model : &items;
    finding found = {.status = SL_OK};
    progress progress;
    sl_file_check_params params;
    sl_file_check_params_init(&params);
    params.progress = progress_step;
    params.progress_ctx = &progress;
    double start = now_seconds();
    progress_begin(&progress, "checking", "bytes", 0, progress_wanted);
    found.status = type->look(path, &params, &found);
    progress_end(&progress, found.status == SL_OK);
    if (found.status != SL_OK && found.status != SL_ECORRUPT) return report_status(path, found.status);
    found.seconds = now_seconds() - start;
    if (as_json)
        print_json(path, type, &found);
    else
        print_text(path, &found);
    /* Reports damage on stdout, as counts, and on stderr, as the one line. */
    if (found.status != SL_OK) (void)report_status(path, found.status);
    int printed = report_stdout();
    return found.status == SL_OK ? printed : EXIT_FAILED;
}
