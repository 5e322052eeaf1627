#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"
#include "cli/index/sampled_check.h"
#include "cli/inspect/check_ranking.h"
#include "cli/inspect/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Most ids of damaged records to print. Further ones are only counted. */
#define MOST_LISTED 10000

typedef struct check_options {
    size_t sample, threads;
    int scrub, drop, progress, json;
} check_options;

typedef struct outcome {
    sl_check_report report;
    uint64_t *bad_ids; /* of the first MOST_LISTED; NULL without --scrub */
    uint64_t *dropped_ids;
    size_t dropped;
    int sound;
    double seconds;
} outcome;

/* A count that is a fault unless it is 0. */
typedef struct fault {
    const char *key, *name;
    size_t count;
} fault;

#define FAULTS 7

static void list_faults(const sl_check_report *report, fault *out) {
    const fault faults[FAULTS] = {
        {"bad_links", "broken links", report->bad_links},
        {"bad_upper", "broken records of the upper layers", report->bad_upper},
        {"unreachable", "vectors no path leads to", report->unreachable},
        {"no_in_link", "vectors nothing links to", report->no_in_link},
        {"bad_vectors", "vectors with broken factors", report->bad_vectors},
        {"duplicate_ids", "ids that come twice", report->duplicate_ids},
        {"bad_records", "damaged records", report->bad_records},
    };
    for (size_t i = 0; i < FAULTS; i++)
        out[i] = faults[i];
}

/* Returns whether the check reached the graph. Damage to the file ends the check earlier, and nothing is counted. */
static int graph_was_checked(const outcome *found) {
    fault faults[FAULTS];
    size_t counted = 0;
    list_faults(&found->report, faults);
    for (size_t i = 0; i < FAULTS; i++)
        counted += faults[i].count;
    return found->sound || counted;
}

/* Only --scrub counts the last fault. */
static size_t fault_count(const outcome *found) {
    return found->bad_ids ? FAULTS : FAULTS - 1;
}

static size_t listed_count(const outcome *found) {
    return found->report.bad_records < MOST_LISTED ? found->report.bad_records : MOST_LISTED;
}

static void count_or_null(json *json, const char *key, int checked, size_t count) {
    if (checked)
        json_count(json, key, count);
    else
        json_text(json, key, NULL);
}

static void json_ids(json *json, const char *key, const uint64_t *ids, size_t count) {
    json_open_array(json, key);
    for (size_t i = 0; i < count; i++)
        json_count(json, NULL, ids[i]);
    json_close_array(json);
}

static void json_records(json *json, const outcome *found) {
    if (!found->bad_ids) return;
    json_count(json, "records_checked", found->report.records_checked);
    json_ids(json, "bad_ids", found->bad_ids, listed_count(found));
    json_count(json, "dropped", found->dropped);
    json_ids(json, "dropped_ids", found->dropped_ids, found->dropped < MOST_LISTED ? found->dropped : MOST_LISTED);
}

static void print_json(const char *path, const check_options *options, const sl_index_stats *stats,
                       const outcome *found) {
    fault faults[FAULTS];
    const sl_check_report *report = &found->report;
    int checked = graph_was_checked(found);
    list_faults(report, faults);
    json json;
    json_begin(&json, stdout);
    json_text(&json, "index", path);
    json_flag(&json, "ok", found->sound);
    json_text(&json, "fault", found->sound ? NULL : sl_last_error());
    json_index(&json, stats);
    for (size_t i = 0; i < fault_count(found); i++)
        count_or_null(&json, faults[i].key, checked, faults[i].count);
    count_or_null(&json, "min_degree", checked, report->min_degree);
    count_or_null(&json, "max_degree", checked, report->max_degree);
    json_real(&json, "mean_degree", checked ? report->mean_degree : NAN);
    json_sampled(&json, options->sample, report);
    json_count(&json, "sections_checked", report->sections_checked);
    json_count(&json, "pages_checked", report->pages_checked);
    json_count(&json, "bad_pages", report->bad_pages);
    json_flag(&json, "unverified", report->unverified);
    json_records(&json, found);
    json_real(&json, "check_s", found->seconds);
    json_end(&json);
}

static void print_records(const outcome *found) {
    if (!found->bad_ids) return;
    if (!found->report.records_checked) {
        printf("  %-36s none; sections of this file have checksums\n", "records with a checksum of their own");
        return;
    }
    printf("  %-36s %zu\n", "records verified", found->report.records_checked);
    for (size_t i = 0; i < listed_count(found); i++)
        printf("  %-36s %llu\n", "damaged record of id", (unsigned long long)found->bad_ids[i]);
    if (found->dropped) printf("  %-36s %zu\n", "damaged records that were dropped", found->dropped);
    for (size_t i = 0; i < found->dropped && i < MOST_LISTED; i++)
        printf("  %-36s %llu\n", "dropped: id", (unsigned long long)found->dropped_ids[i]);
    if (found->report.bad_records > MOST_LISTED)
        printf("  %-36s %zu\n", "more of them", found->report.bad_records - MOST_LISTED);
}

static void print_text(const char *path, const check_options *options, const outcome *found) {
    fault faults[FAULTS];
    const sl_check_report *report = &found->report;
    list_faults(report, faults);
    printf("%s: %s; %zu vectors; verified: %zu sections", path, found->sound ? "sound" : "damaged", report->n,
           report->sections_checked);
    if (report->pages_checked) printf(", %zu pages", report->pages_checked);
    putchar('\n');
    if (report->bad_pages) printf("  %-36s %zu\n", "damaged pages", report->bad_pages);
    if (report->unverified) printf("  %-36s no checksums in force; --scrub verifies records\n", "pages");
    if (!graph_was_checked(found)) {
        printf("  %-36s not looked at\n", "the graph");
        return;
    }
    for (size_t i = 0; i < fault_count(found); i++)
        printf("  %-36s %zu\n", faults[i].name, faults[i].count);
    if (found->sound && (report->unreachable || report->no_in_link))
        printf("  %-36s left for a writer to link; no fault in a file with room\n", "what no path leads to");
    printf("  %-36s %zu to %zu, mean %.1f\n", "links a vector", report->min_degree, report->max_degree,
           report->mean_degree);
    print_sampled(options->sample, report);
    print_records(found);
}

static sl_status run_check_call(const check_options *options, sl_index *index, outcome *found) {
    sl_check_params params;
    sl_check_params_init(&params);
    params.sample = options->sample;
    params.threads = options->threads;
    params.scrub = options->scrub;
    params.bad_ids = found->bad_ids;
    params.bad_ids_room = found->bad_ids ? MOST_LISTED : 0;
    double start = now_seconds();
    sl_status status = check_index_with_progress(index, &params, options->progress, &found->report);
    found->sound = status == SL_OK;
    found->seconds = now_seconds() - start;
    return status;
}

static int check_and_print(const char *path, const check_options *options, sl_index *index, const sl_index_stats *stats,
                           outcome *found) {
    sl_status status = run_check_call(options, index, found);
    if (status != SL_OK && status != SL_ECORRUPT) return report_status(path, status);
    if (options->json)
        print_json(path, options, stats, found);
    else
        print_text(path, options, found);
    (void)warn_of_resolution(path, stats, found->report.unresolved, found->report.resolution_sampled);
    if (status != SL_OK) (void)report_status(path, status);
    int printed = report_stdout();
    return status == SL_OK ? printed : EXIT_FAILED;
}

/* Reads the damaged ids before it drops them, because they cannot be found afterwards. */
static int drop_damaged(const char *path, const check_options *options, sl_index *index, outcome *found) {
    double seconds;
    sl_status status = run_check_call(options, index, found);
    if (status != SL_OK && status != SL_ECORRUPT) return report_status(path, status);
    memcpy(found->dropped_ids, found->bad_ids, listed_count(found) * sizeof *found->bad_ids);
    status = sl_index_drop_damaged(index, options->threads, &found->dropped);
    if (status != SL_OK) return report_status(path, status);
    return found->dropped ? keep_changes(index, path, 0, &seconds) : EXIT_DONE;
}

/* Opens the index. --drop needs a file that is changed in place: other files have checksums of whole sections. */
static int open_checked(const char *path, const check_options *options, sl_index **index, sl_index_stats *stats) {
    if (!options->drop) return open_index(path, (opening){.place = SL_PLACE_MAP, .tier = SL_TIER_NONE}, index, stats);
    int status = open_to_change((changing){path, SL_PLACE_MAP, WAIT_DEFAULT, options->progress}, index, stats);
    if (status != EXIT_DONE || stats->room) return status;
    return report_failure("%s: --drop is for files that are changed in place (build --room); build this one again",
                          path);
}

static int check_index(const char *path, const check_options *options) {
    sl_index *index = NULL;
    sl_index_stats stats;
    outcome found = {.bad_ids = NULL};
    int status = open_checked(path, options, &index, &stats);
    if (status == EXIT_DONE && options->scrub && !(found.bad_ids = calloc(2 * MOST_LISTED, sizeof *found.bad_ids)))
        status = report_failure("out of memory");
    if (found.bad_ids) found.dropped_ids = found.bad_ids + MOST_LISTED;
    if (status == EXIT_DONE && options->drop) status = drop_damaged(path, options, index, &found);
    if (status == EXIT_DONE) status = check_and_print(path, options, index, &stats, &found);
    free(found.bad_ids);
    sl_index_free(index);
    return status;
}

static int run_check(const command *self, int argc, char **argv) {
    sl_check_params defaults;
    sl_check_params_init(&defaults);
    check_options options = {.sample = defaults.sample};
    const char *path;
    OPTIONS_PARSE(self, argc, argv, &options, &path);
    if (options.drop && !options.scrub) return report_usage("--drop goes with --scrub, which finds what to drop");
    sl_file_kind kind;
    sl_status status = sl_file_kind_of(path, &kind);
    if (status != SL_OK) return report_status(path, status);
    if (kind == SL_FILE_INDEX) return check_index(path, &options);
    if (options.scrub) return report_usage("--scrub is of an index; '%s' is none", path);
    return check_ranking(path, kind, options.progress, options.json);
}

static const char *const operands[] = {"FILE", NULL};

static const option check_table[] = {
    {0, "sample", OPTION_COUNT, "N", 0, offsetof(check_options, sample),
     "For an index: number of vectors to search for and compare with exact search (default 200); 0 leaves that out. A "
     "vector counts as lost if less than half of its own nearest are found. Many lost vectors are a sign of badly "
     "linked regions, although paths lead there."},
    {0, "scrub", OPTION_FLAG, NULL, 0, offsetof(check_options, scrub),
     "For a file with room or in records: verify each vector's codes, refine row and id against a checksum of their "
     "own. List the ids of damaged vectors, 10000 at most. The file is verified as a whole in any case."},
    {0, "drop", OPTION_FLAG, NULL, 0, offsetof(check_options, drop),
     "With --scrub: delete the vectors whose records are damaged, list their ids, and check what is left. Add them "
     "again from where they came from. The pages of these records get new checksums, so that a later check passes; "
     "damage elsewhere stays, and check goes on to fail."},
    OPTION_THREADS(check_options, "For an index: threads to check with; 0 (default) takes all."),
    OPTION_PROGRESS(check_options),
    OPTION_JSON(check_options),
    OPTION_LAST};

const command command_check = {
    .name = "check",
    .summary = "verify a whole index, model or item table",
    .synopsis = "shortlist check FILE [--sample N] [--scrub [--drop]] [--threads N] [--progress] [--json]",
    .description =
        "Verifies a file. The file's first bytes tell its type.\nAn index: every byte of the file is held to its "
        "checksums, of each section or, with room, of each page. Then the whole graph is checked: links out of range "
        "or twice, records of the upper layers, ids that come twice, vectors that no path leads to from the entry "
        "point. Then a sample of the vectors is searched for and compared with exact search over the same codes. Exit "
        "status 1 says that a check failed. The counts are printed in either case. The graph of a damaged file is not "
        "checked. The file may be written meanwhile: changes that its writer is about to put right are no fault. A "
        "file with room has no checksums of pages if it was written directly in persistent memory, or made by an older "
        "version. The output says so.\nA model, a checkpoint or an item table: every byte of the file is verified. "
        "Each section is held to its checksum, bytes between the sections are zero, and the content keeps every rule "
        "of its type. Exit status 1 comes with a line that names the damaged section.\n",
    .examples = "shortlist check base.sl\nshortlist check films.sli\nshortlist check model.slr --json\n"
                "shortlist check base.sl --sample 1000 --json\n"
                "shortlist check live.sl --scrub\nshortlist check live.sl --scrub --drop\n",
    .operands = operands,
    .options = check_table,
    .run = run_check,
};
