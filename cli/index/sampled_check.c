#include "cli/index/sampled_check.h"

#include "cli/common/progress.h"
#include "cli/common/report.h"

#include <math.h>

/* Warns if one vector in this many, or more, is affected. */
enum { WARN_FROM = 10 };

sl_status check_index_with_progress(sl_index *index, sl_check_params *params, int wanted, sl_check_report *report) {
    progress progress;
    params->progress = progress_step;
    params->progress_ctx = &progress;
    *report = (sl_check_report){.struct_size = sizeof *report};
    progress_begin(&progress, "checking", "steps", 0, wanted);
    sl_status status = sl_index_check(index, params, report);
    progress_end(&progress, status == SL_OK);
    return status;
}

void json_sampled(json *json, size_t sample, const sl_check_report *report) {
    const int known = !isnan(report->sampled_recall);
    json_real(json, "sampled_recall", report->sampled_recall);
    if (known)
        json_count(json, "sampled_lost", report->sampled_lost);
    else
        json_text(json, "sampled_lost", NULL);
    json_resolution(json, report->unresolved, report->resolution_sampled);
    json_real(json, "sampled_lost_share", known ? (double)report->sampled_lost / (double)sample : (double)NAN);
}

int measure_resolution(const char *path, const sl_index *index, size_t threads, sl_resolution *out) {
    *out = (sl_resolution){.struct_size = sizeof *out};
    sl_status status = sl_index_resolution(index, threads, out);
    return status == SL_OK ? EXIT_DONE : report_status(path, status);
}

void json_resolution(json *json, size_t unresolved, size_t sampled) {
    json_real(json, "unresolved_share", sampled ? (double)unresolved / (double)sampled : (double)NAN);
}

int warn_of_resolution(const char *path, const sl_index_stats *stats, size_t unresolved, size_t sampled) {
    if (unresolved * WARN_FROM < sampled || !unresolved) return 0;
    report_warning("%s: codes %s do not tell the nearest of %.0f %% of the vectors apart, and searches miss them: the "
                   "vectors lie far from the origin and close to one another. Use codes f32. Around one place it also "
                   "helps to take the mean of all vectors from vectors and queries, which changes no distance",
                   path, sl_codes_name(stats->codes), 100 * (double)unresolved / (double)sampled);
    return 1;
}

void print_sampled(size_t sample, const sl_check_report *report) {
    if (isnan(report->sampled_recall)) return;
    printf("  %-36s %.4f\n", "recall of the sample over codes", report->sampled_recall);
    printf("  %-36s %zu of %zu, %.1f %%\n", "lost of the sample", report->sampled_lost, sample,
           100 * (double)report->sampled_lost / (double)sample);
}
