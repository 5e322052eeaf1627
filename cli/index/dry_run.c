#include "cli/index/dry_run.h"

#include "cli/common/clock.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_out.h"
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/size_text.h"
#include "cli/common/system.h"
#include "cli/index/open_save.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Vectors of the smaller sample: enough for leaves. */
enum { SMALL = 4096 };
/* Length of a sample's runs of consecutive rows. */
enum { RUN = 16 };
/* Seconds for the larger sample, estimated from the smaller one. */
#define BUDGET 1.0
/* How often a sample is built, and how many times larger the larger sample is at least. */
enum { TURNS = 2, GROWTH = 4 };

/* A built sample, and what it took. */
typedef struct sample {
    size_t n;
    double read_s, link_s, number_s, save_s;
    uint64_t work_bytes; /* bytes of its work file */
    sl_build_plan plan;
} sample;

/* How one builder's seconds grow with n. A comparison with a centre takes as long in linking as in numbering. */
typedef struct law {
    sample small, large; /* equal for a small base */
    double compared_s;   /* seconds of one comparison with a centre */
    double number_s;     /* other seconds of numbering a vector; both are from LEAVES if it serves */
    double link_s;       /* other seconds of linking a vector; with INSERT for logarithm 1 */
    double link_log_s;   /* INSERT: further seconds of a vector per unit of log n */
} law;

typedef struct estimate {
    sl_build_plan plan;
    law laws[3]; /* by builder */
    double read_s, link_s, number_s, save_s;
    uint64_t peak, peak_alike, index_bytes, file_bytes, old_bytes; /* old: of the replaced file */
    uint64_t work_bytes, spilled, unpacked;                        /* of the work file, and of nameless files */
    uint64_t memory, space;                                        /* of this machine; 0: unknown */
} estimate;

static int stop_if_interrupted(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    (void)done;
    (void)total;
    return interrupted();
}

/* `save`: how the index will be saved; NULL: as samples are. */
static sl_status plan_of(const dry_run *dry, size_t n, sl_builder builder, const sl_save_params *save,
                         sl_build_plan *plan) {
    sl_add_params add;
    sl_add_params_init(&add);
    add.threads = dry->addition->threads;
    add.builder = builder;
    plan->struct_size = sizeof *plan;
    return sl_index_plan_build(dry->params, n, dry->addition->ids, &add, save, plan);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Samples
 * ------------------------------------------------------------------------------------------------------------- */

/* Reads runs of rows, evenly spread over the base. */
static int read_sample(const dry_run *dry, size_t n, char *rows) {
    vectors *base = dry->addition->base;
    const size_t row = base->dim * element_size(dry->addition->type), runs = (n + RUN - 1) / RUN;
    for (size_t run = 0, done = 0; run < runs; run++) {
        const size_t count = n - done < RUN ? n - done : RUN, room = base->n - count;
        const size_t first = runs > 1 ? (size_t)((double)room * (double)run / (double)(runs - 1)) : 0;
        int status = vectors_read(base, first, count, dry->addition->type, 0, rows + done * row);
        if (status != EXIT_DONE) return status;
        if (interrupted()) return report_interrupted();
        done += count;
    }
    return EXIT_DONE;
}

/* Returns the path of a sample's file beside the output. The caller frees it. */
static char *sample_path(const dry_run *dry, const char *ending) {
    const size_t size = strlen(dry->output) + strlen(ending) + 32;
    char *path = allocate(size, 1);
    if (path) snprintf(path, size, "%s.dry-run.%ld%s", dry->output, (long)getpid(), ending);
    return path;
}

/* Saves a sample beside the output, and removes it. Returns an exit status. */
static int save_sample(const dry_run *dry, sl_index *index) {
    char *path = sample_path(dry, "");
    if (!path) return EXIT_FAILED;
    sl_save_params save;
    sl_save_params_init(&save);
    save.progress = stop_if_interrupted;
    sl_status status = sl_index_save(index, path, &save);
    if (status == SL_OK) (void)unlink(path);
    free(path);
    return status == SL_OK ? EXIT_DONE : report_status(dry->output, status);
}

/* Builds the rows into a sample. work: path of the work file, or NULL. Returns an exit status. */
static int build_rows(const dry_run *dry, sl_builder builder, const char *work, const void *rows, sample *out) {
    struct stat noted;
    sl_index_params params = *dry->params;
    sl_add_params add;
    sl_add_times times = {.struct_size = sizeof times};
    sl_index *index;
    params.tags = params.keys = 0;
    params.work_path = work;
    sl_add_params_init(&add);
    add.threads = dry->addition->threads;
    add.builder = builder;
    add.progress = stop_if_interrupted;
    add.times = &times;
    sl_status status = sl_index_create(&params, &index);
    if (status != SL_OK) return report_status(dry->base_path, status);
    status = sl_index_reserve(index, out->n);
    if (status == SL_OK) status = sl_index_add(index, rows, element_dtype(dry->addition->type), out->n, 0, NULL, &add);
    if (work && stat(work, &noted) == 0) out->work_bytes = (uint64_t)noted.st_size;
    const double added = now_seconds();
    const int result = status == SL_OK ? save_sample(dry, index) : report_status(dry->base_path, status);
    out->save_s = now_seconds() - added;
    out->link_s = times.linking;
    out->number_s = times.numbering;
    sl_index_free(index);
    return result;
}

/* The same, with a work file if the build has one: with a limit of memory. */
static int build_with_work_file(const dry_run *dry, sl_builder builder, const void *rows, sample *out) {
    if (!dry->max_memory) return build_rows(dry, builder, NULL, rows, out);
    char *work = sample_path(dry, ".work");
    if (!work) return EXIT_FAILED;
    int status = build_rows(dry, builder, work, rows, out);
    (void)unlink(work);
    free(work);
    return status;
}

/* Builds n vectors of the base. */
static int build_sample(const dry_run *dry, sl_builder builder, size_t n, sample *out) {
    const double start = now_seconds();
    *out = (sample){.n = n};
    char *rows = allocate(n, dry->addition->base->dim * element_size(dry->addition->type));
    int status = rows ? read_sample(dry, n, rows) : EXIT_FAILED;
    out->read_s = now_seconds() - start;
    if (status == EXIT_DONE) {
        const sl_status planned = plan_of(dry, n, builder, NULL, &out->plan);
        status =
            planned == SL_OK ? build_with_work_file(dry, builder, rows, out) : report_status(dry->base_path, planned);
    }
    free(rows);
    return status;
}

/* Builds a sample several times and keeps the least seconds. Other processes use the machine too, and a first build
 * starts threads and gets pages. */
static int build_turns(const dry_run *dry, sl_builder builder, size_t n, sample *out) {
    int status = build_sample(dry, builder, n, out);
    for (size_t turn = 1; turn < TURNS && status == EXIT_DONE; turn++) {
        sample again;
        status = build_sample(dry, builder, n, &again);
        if (status != EXIT_DONE) break;
        out->read_s = fmin(out->read_s, again.read_s);
        out->link_s = fmin(out->link_s, again.link_s);
        out->number_s = fmin(out->number_s, again.number_s);
        out->save_s = fmin(out->save_s, again.save_s);
    }
    return status;
}

/* Vectors of the larger sample: doubles them while the time allows. */
static size_t large_size(const sample *small, size_t n) {
    const double each = (small->link_s + small->number_s + small->save_s) / (double)small->n;
    size_t size = GROWTH * small->n;
    while (size < n && 2 * each * (double)size <= BUDGET)
        size *= 2;
    return size < n ? size : n;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Laws
 * ------------------------------------------------------------------------------------------------------------- */

/* Fits seconds = a * x + b * y to two measurements, with a and b at least 0. */
static void fit_two_terms(const double x[2], const double y[2], const double seconds[2], double *a, double *b) {
    const double det = x[0] * y[1] - x[1] * y[0];
    *a = x[1] > 0 ? seconds[1] / x[1] : 0;
    *b = 0;
    if (det == 0) return;
    const double slope = (x[0] * seconds[1] - x[1] * seconds[0]) / det;
    const double rest = x[1] > 0 ? (seconds[1] - slope * y[1]) / x[1] : 0;
    if (slope <= 0) return;
    *a = rest > 0 ? rest : 0;
    *b = rest > 0 ? slope : seconds[1] / y[1];
}

static double n_log_n(size_t n) {
    return (double)n * log((double)n);
}

/* Fits the numbering. It takes little time for a sample, so other work on the machine disturbs it much. Linking has
 * comparisons of the same kind in leaves, and each takes at least as long. */
static void fit_numbering(law *law) {
    const sample *small = &law->small, *large = &law->large;
    const double n[2] = {(double)small->n, (double)large->n};
    const double compared[2] = {small->plan.compared_numbering, large->plan.compared_numbering};
    const double numbered[2] = {small->number_s, large->number_s}, pairs = large->plan.compared_in_leaves;
    fit_two_terms(n, compared, numbered, &law->number_s, &law->compared_s);
    if (pairs == 0 || law->compared_s <= large->link_s / pairs) return;
    law->compared_s = large->link_s / pairs;
    law->number_s = fmax(0, (numbered[1] - law->compared_s * compared[1]) / n[1]);
}

static void fit_law(law *law, sl_builder builder) {
    const sample *small = &law->small, *large = &law->large;
    const double n[2] = {(double)small->n, (double)large->n}, linked[2] = {small->link_s, large->link_s};
    fit_numbering(law);
    if (builder == SL_BUILDER_INSERT) {
        const double logs[2] = {n_log_n(small->n), n_log_n(large->n)};
        fit_two_terms(n, logs, linked, &law->link_s, &law->link_log_s);
        return;
    }
    const double rest = large->link_s - law->compared_s * large->plan.compared_linking;
    law->link_s = (rest > 0 ? rest : 0) / n[1];
}

static double link_seconds(const law *law, const sl_build_plan *plan) {
    const size_t n = (size_t)plan->n;
    if (n == law->large.n) return law->large.link_s;
    return law->link_s * (double)n + law->link_log_s * (n > 1 ? n_log_n(n) : 0) +
           law->compared_s * plan->compared_linking;
}

static double number_seconds(const law *law, const sl_build_plan *plan) {
    if (plan->n == law->large.n) return law->large.number_s;
    return law->number_s * (double)plan->n + law->compared_s * plan->compared_numbering;
}

static double save_seconds(const law *law, uint64_t bytes) {
    const double ones[2] = {1, 1};
    const double sizes[2] = {(double)law->small.plan.bytes_file, (double)law->large.plan.bytes_file};
    const double seconds[2] = {law->small.save_s, law->large.save_s};
    double fixed, each;
    fit_two_terms(ones, sizes, seconds, &fixed, &each);
    return law->small.n == law->large.n ? law->large.save_s : fixed + each * (double)bytes;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The estimate
 * ------------------------------------------------------------------------------------------------------------- */

static int learn_law(const dry_run *dry, sl_builder builder, law *law) {
    const size_t n = dry->addition->base->n;
    if (law->large.n) return EXIT_DONE;
    int status = build_turns(dry, builder, n < SMALL ? n : SMALL, &law->small);
    law->large = law->small;
    if (status == EXIT_DONE && n > law->small.n)
        status = build_turns(dry, builder, large_size(&law->small, n), &law->large);
    if (status == EXIT_DONE) fit_law(law, builder);
    return status;
}

/* Finds the law to use for numbering. Numbering does not depend on the builder, and a sample that leaves linked is
 * larger. */
static int numbering_law(const dry_run *dry, sl_builder builder, estimate *out, const law **law) {
    sl_build_plan plan;
    const size_t n = dry->addition->base->n;
    const int leaves = n > GROWTH * SMALL && plan_of(dry, n, SL_BUILDER_LEAVES, NULL, &plan) == SL_OK;
    *law = &out->laws[leaves ? SL_BUILDER_LEAVES : builder];
    return leaves ? learn_law(dry, SL_BUILDER_LEAVES, &out->laws[SL_BUILDER_LEAVES]) : EXIT_DONE;
}

static int plan_all(const dry_run *dry, estimate *out) {
    const addition *addition = dry->addition;
    const size_t n = addition->base->n;
    const uint64_t own = addition_bytes(addition);
    sl_save_params save;
    sl_save_params_init(&save);
    save.room = dry->room;
    save.layout = dry->layout;
    sl_status status = plan_of(dry, n, addition->builder, &save, &out->plan);
    if (status != SL_OK) return report_status(dry->base_path, status);
    out->peak = own + out->plan.bytes_peak;
    out->peak_alike = own + out->plan.bytes_peak_alike;
    if (dry->max_memory && out->peak_alike > dry->max_memory / 4 * 3) out->spilled = out->peak_alike;
    out->unpacked = addition->in_file;
    out->index_bytes = out->plan.bytes_index;
    out->file_bytes = out->plan.bytes_file;
    return EXIT_DONE;
}

static int time_all(const dry_run *dry, estimate *out) {
    const sl_builder builder = out->plan.builder;
    const double n = (double)dry->addition->base->n;
    law *law = &out->laws[builder];
    const struct law *numbering;
    int status = learn_law(dry, builder, law);
    if (status == EXIT_DONE) status = numbering_law(dry, builder, out, &numbering);
    if (status != EXIT_DONE) return status;
    out->link_s = link_seconds(law, &out->plan);
    out->number_s = number_seconds(numbering, &out->plan);
    out->save_s = save_seconds(law, out->file_bytes);
    out->work_bytes = (uint64_t)((double)law->large.work_bytes * n / (double)law->large.n);
    if (!dry->addition->mapped) out->read_s = law->large.read_s / (double)law->large.n * n;
    return EXIT_DONE;
}

static int read_machine(const dry_run *dry, estimate *out) {
    sl_system system = {.struct_size = sizeof system};
    struct stat old;
    sl_status status = sl_system_query(&system);
    if (status != SL_OK) return report_status(NULL, status);
    char *folder = output_folder(dry->output);
    if (!folder) return report_failure("out of memory");
    out->memory = system.memory;
    out->space = free_space(folder);
    if (stat(dry->output, &old) == 0) out->old_bytes = (uint64_t)old.st_blocks * 512;
    free(folder);
    return EXIT_DONE;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Printing
 * ------------------------------------------------------------------------------------------------------------- */

static const char *const builder_names[] = {"auto", "insert", "leaves"};

static uint64_t memory_limit_of(const dry_run *dry, const estimate *e) {
    return dry->max_memory && (!e->memory || dry->max_memory < e->memory) ? dry->max_memory : e->memory;
}

static double seconds_of(const estimate *e) {
    return e->read_s + e->link_s + e->number_s + e->save_s;
}

/* Bytes that must be free in the folder. During the save the index may still lie in files, and the work file goes only
 * afterwards. */
static uint64_t room_needed(const estimate *e) {
    const uint64_t saving = e->file_bytes + (e->spilled ? e->index_bytes : 0);
    const uint64_t building = e->spilled + e->unpacked;
    return e->work_bytes + (saving > building ? saving : building);
}

static void json_samples(json *json, const estimate *e) {
    json_open_array(json, "samples");
    for (size_t builder = 0; builder < sizeof e->laws / sizeof *e->laws; builder++) {
        const sample *samples[] = {&e->laws[builder].small, &e->laws[builder].large};
        for (size_t i = samples[0]->n == samples[1]->n; i < 2; i++) {
            if (!samples[i]->n) continue;
            json_open_object(json, NULL);
            json_text(json, "builder", builder_names[builder]);
            json_count(json, "n", samples[i]->n);
            json_real(json, "link_s", samples[i]->link_s);
            json_real(json, "number_s", samples[i]->number_s);
            json_real(json, "save_s", samples[i]->save_s);
            json_close_object(json);
        }
    }
    json_close_array(json);
}

/* Writes whether `needed` fits; null if `there` is unknown. */
static void json_known(json *json, const char *key, uint64_t needed, uint64_t there) {
    if (there)
        json_flag(json, key, needed <= there);
    else
        json_text(json, key, NULL);
}

static void json_estimate(const dry_run *dry, const estimate *e) {
    json json;
    json_begin(&json, stdout);
    json_flag(&json, "dry_run", 1);
    json_count(&json, "n", dry->addition->base->n);
    json_count(&json, "dim", dry->params->dim);
    json_text(&json, "metric", sl_metric_name(dry->params->metric));
    json_text(&json, "codes", sl_codes_name(dry->params->codes));
    json_text(&json, "refine", sl_refine_name(dry->params->refine));
    json_count(&json, "m", dry->params->m);
    json_count(&json, "ef_build", dry->params->ef_construction);
    json_text(&json, "builder", builder_names[e->plan.builder]);
    json_count(&json, "threads", thread_count(dry->addition->threads));
    json_real(&json, "seconds", seconds_of(e));
    json_real(&json, "read_s", e->read_s);
    json_real(&json, "link_s", e->link_s);
    json_real(&json, "number_s", e->number_s);
    json_real(&json, "save_s", e->save_s);
    json_samples(&json, e);
    json_count(&json, "peak_bytes", e->peak);
    json_count(&json, "peak_alike_bytes", e->peak_alike);
    json_count(&json, "index_bytes", e->index_bytes);
    json_count(&json, "file_bytes", e->file_bytes);
    json_count(&json, "old_file_bytes", e->old_bytes);
    json_count(&json, "work_file_bytes", e->work_bytes);
    json_count(&json, "spilled_bytes", e->spilled);
    json_count(&json, "unpacked_bytes", e->unpacked);
    json_count(&json, "disk_bytes", room_needed(e) + e->old_bytes);
    json_count(&json, "memory_bytes", e->memory);
    json_count(&json, "free_bytes", e->space);
    json_known(&json, "fits_memory", e->peak_alike, memory_limit_of(dry, e));
    json_known(&json, "fits_folder", room_needed(e), e->space);
    json_end(&json);
}

static const char *fit_verdict(uint64_t needed, uint64_t there) {
    return !there ? "not known" : needed <= there ? "fits" : "does not fit";
}

/* Beyond --max-memory, large blocks go to files, so the build fits. */
static const char *memory_verdict(const dry_run *dry, const estimate *e) {
    const uint64_t limit = memory_limit_of(dry, e);
    if (dry->max_memory && limit == dry->max_memory && e->peak_alike > limit)
        return "large blocks go to temporary files";
    return fit_verdict(e->peak_alike, limit);
}

static void print_estimate(const dry_run *dry, const estimate *e) {
    const law *law = &e->laws[e->plan.builder];
    const uint64_t limit = memory_limit_of(dry, e);
    printf("%s: %zu vectors of %zu would be built by %s", dry->base_path, dry->addition->base->n, dry->params->dim,
           builder_names[e->plan.builder]);
    printf(", on %zu threads\n", thread_count(dry->addition->threads));
    printf("time    %.3g s: reading %.2g, linking %.3g, numbering %.3g, saving %.2g; from building %zu", seconds_of(e),
           e->read_s, e->link_s, e->number_s, e->save_s, law->small.n);
    if (law->large.n > law->small.n) printf(" and %zu", law->large.n);
    printf(" of them\n");
    printf("memory  %s at most; %s where vectors are alike; %s of them for the index; there are %s: %s\n",
           text_of_size(e->peak).text, text_of_size(e->peak_alike).text, text_of_size(e->index_bytes).text,
           text_of_size(limit).text, memory_verdict(dry, e));
    printf("disk    %llu bytes; free there %s: %s", (unsigned long long)e->file_bytes, text_of_size(e->space).text,
           fit_verdict(room_needed(e), e->space));
    if (e->work_bytes) printf("; until then the work file takes %s", text_of_size(e->work_bytes).text);
    if (e->spilled + e->unpacked)
        printf("; until then temporary files take %s at most", text_of_size(e->spilled + e->unpacked).text);
    if (e->old_bytes) printf("; until then the file that is there keeps its %s", text_of_size(e->old_bytes).text);
    printf("\n");
}

int dry_run_print(const dry_run *dry) {
    estimate estimate = {.read_s = 0};
    int status = plan_all(dry, &estimate);
    if (status == EXIT_DONE) status = time_all(dry, &estimate);
    if (status == EXIT_DONE) status = read_machine(dry, &estimate);
    if (status != EXIT_DONE) return status;
    if (dry->json)
        json_estimate(dry, &estimate);
    else
        print_estimate(dry, &estimate);
    return report_stdout();
}
