#include "cli/index/description.h"

#include "cli/common/report.h"
#include "cli/common/size_text.h"

#include <stdio.h>

sl_codes index_codes(int choice, sl_dtype dtype) {
    if (choice >= 0) return (sl_codes)choice;
    return dtype == SL_I16 ? SL_CODES_I16 : SL_CODES_I8;
}

static double bytes_per_vector(const sl_index_stats *stats) {
    return stats->n ? (double)stats->bytes_total / (double)stats->n : 0;
}

void json_index(json *json, const sl_index_stats *stats) {
    json_count(json, "n", stats->n);
    json_count(json, "deleted", stats->deleted);
    json_count(json, "dim", stats->dim);
    json_text(json, "metric", sl_metric_name(stats->metric));
    json_text(json, "input", sl_dtype_name(stats->dtype));
    json_text(json, "codes", sl_codes_name(stats->codes));
    json_text(json, "refine", sl_refine_name(stats->refine));
    json_text(json, "clip", sl_clip_name(stats->clip));
    json_real(json, "clip_share", stats->clip_share);
    json_count(json, "m", stats->m);
    json_count(json, "ef_build", stats->ef_construction);
    json_count(json, "seed", stats->seed);
    json_real(json, "bytes_per_vector", bytes_per_vector(stats));
    json_count(json, "bytes_total", stats->bytes_total);
    json_text(json, "isa", stats->isa);
}

clip_text text_of_clip(const sl_index_stats *stats) {
    clip_text clip = {""};
    if (stats->clip == SL_CLIP_QUANTILE)
        snprintf(clip.text, sizeof clip.text, " clip quantile:%g", stats->clip_share);
    else if (stats->clip != SL_CLIP_AUTO)
        snprintf(clip.text, sizeof clip.text, " clip %s", sl_clip_name(stats->clip));
    return clip;
}

void print_index(const sl_index_stats *stats) {
    printf("%zu vectors of %zu %s, %s, codes %s%s, refine %s, m %zu, ef_build %zu\n", stats->n, stats->dim,
           sl_dtype_name(stats->dtype), sl_metric_name(stats->metric), sl_codes_name(stats->codes),
           text_of_clip(stats).text, sl_refine_name(stats->refine), stats->m, stats->ef_construction);
    if (stats->deleted)
        printf("%zu deleted in all still take memory; later adds use it, or 'shortlist compact' takes them out\n",
               stats->deleted);
    printf("%s, %.1f bytes a vector\n", text_of_size(stats->bytes_total).text, bytes_per_vector(stats));
}

int check_depth(const char *option, size_t value, size_t n, const char *path) {
    if (value == 0) return report_failure("%s is 0; ask for at least 1", option);
    if (value > SL_MAX_EF) return report_failure("%s is %zu; ask for at most %u", option, value, SL_MAX_EF);
    if (value > n)
        return report_failure("%s is %zu, but %s holds %zu vectors; ask for at most %zu", option, value, path, n, n);
    return EXIT_DONE;
}
