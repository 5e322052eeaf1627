#include "cli/sampled.h"

#include "cli/progress.h"

#include <math.h>

sl_status check_index_told(sl_index *index, sl_check_params *params, int wanted, sl_check_report *report) {
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
    json_real(json, "sampled_lost_share", known ? (double)report->sampled_lost / (double)sample : (double)NAN);
}

void print_sampled(size_t sample, const sl_check_report *report) {
    if (isnan(report->sampled_recall)) return;
    printf("  %-36s %.4f\n", "recall of the sample over codes", report->sampled_recall);
    printf("  %-36s %zu of %zu, %.1f %%\n", "lost of the sample", report->sampled_lost, sample,
           100 * (double)report->sampled_lost / (double)sample);
}
