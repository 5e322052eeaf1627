#include "cli/index/tuned_settings.h"

static int get_setting(const sl_index *index, size_t i, sl_tuned *out) {
    *out = (sl_tuned){.struct_size = sizeof *out};
    return sl_index_get_tuned(index, i, out) == SL_OK;
}

void json_tuned(json *json, const sl_index *index, size_t first, size_t count) {
    sl_tuned tuned;
    json_open_array(json, "tuned");
    for (size_t i = first; i < first + count && get_setting(index, i, &tuned); i++) {
        json_open_object(json, NULL);
        json_count(json, "k", tuned.k);
        json_real(json, "target", tuned.target);
        json_flag(json, "reached", tuned.limit == SL_LIMIT_NONE);
        json_text(json, "limit", sl_tune_limit_name(tuned.limit));
        json_count(json, "ef", tuned.ef);
        json_count(json, "rerank", tuned.rerank);
        json_real(json, "stop", tuned.stop);
        json_count(json, "ef_alone", tuned.ef_alone);
        json_count(json, "probes", tuned.probes);
        json_count(json, "probes_one", tuned.probes_one);
        json_count(json, "groups", tuned.groups);
        json_flag(json, "scan_only", tuned.scan_only);
        json_real(json, "recall", tuned.recall);
        json_real(json, "standard_error", tuned.standard_error);
        json_real(json, "evaluations", tuned.evaluations);
        json_count(json, "least_k", tuned.least_k);
        json_count(json, "n", tuned.n);
        json_count(json, "queries", tuned.queries);
        json_close_object(json);
    }
    json_close_array(json);
}

void print_tuned(const sl_index *index, size_t first, size_t count) {
    sl_tuned tuned;
    unsigned limits = 0;
    printf("%6s  %8s  %7s  %7s  %7s  %7s  %7s  %7s  %8s  %11s  %7s\n", "k", "target", "ef", "rerank", "stop", "probes",
           "one", "groups", "recall", "evaluations", "for k");
    for (size_t i = first; i < first + count && get_setting(index, i, &tuned); i++) {
        limits |= 1u << tuned.limit;
        printf("%6zu  %8.4g  %7zu  %7zu  %7.4g  %7zu  %7zu  %7zu  %8.4f  %11.0f  ", tuned.k, tuned.target, tuned.ef,
               tuned.rerank, tuned.stop, tuned.probes, tuned.probes_one, tuned.groups, tuned.recall, tuned.evaluations);
        if (tuned.limit != SL_LIMIT_NONE)
            printf("not reached: %s\n", sl_tune_limit_name(tuned.limit));
        else if (tuned.scan_only)
            printf("%7zu, by scans alone\n", tuned.k);
        else if (tuned.least_k == tuned.k)
            printf("%7zu\n", tuned.k);
        else
            printf("%zu to %zu\n", tuned.least_k, tuned.k);
    }
    for (sl_tune_limit limit = SL_LIMIT_CODES; limit <= SL_LIMIT_EF; limit++)
        if (limits >> limit & 1) printf("not reached, %s: %s\n", sl_tune_limit_name(limit), sl_tune_limit_text(limit));
}
