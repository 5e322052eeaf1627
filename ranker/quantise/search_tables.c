/* The public call of the search: checks its parameters, and runs one search per type of embedding tables. */
#include "base/clock.h"
#include "base/params.h"
#include "ranker/quantise/precision_search.h"
#include "ranker/quantise/quantise.h"
#include "ranker/quantise/search_bayesian.h"

#include <math.h>

void sl_precision_search_params_init_sized(sl_precision_search_params *params, size_t struct_size) {
    const sl_precision_search_params mine = {.struct_size = sizeof mine, .max_drop = 0.0005, .ndcg_k = 10};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

static sl_status check_search(const sl_precision_search_params *params) {
    if (!(params->max_drop >= 0) || isinf(params->max_drop))
        return sl_fail(SL_EINVAL, "max_drop is %g; give 0 or more", params->max_drop);
    if (!(params->timeout_s >= 0)) return sl_fail(SL_EINVAL, "timeout_s is %g; give 0 or more", params->timeout_s);
    if ((unsigned)params->measure > SL_MEASURE_RMSE)
        return sl_fail(SL_EINVAL, "measure %d is none of sl_measure", (int)params->measure);
    if ((unsigned)params->strategy > SL_STRATEGY_BAYESIAN)
        return sl_fail(SL_EINVAL, "strategy %d is none of sl_strategy", (int)params->strategy);
    if (params->strategy == SL_STRATEGY_BAYESIAN && params->trials > SL_BAYESIAN_MOST_TRIALS)
        return sl_fail(SL_EINVAL,
                       "%zu trials are too many for the Bayesian strategy; give %d at most, or search "
                       "exhaustively",
                       params->trials, SL_BAYESIAN_MOST_TRIALS);
    if (params->leave_static && params->leave_dynamic && params->leave_bf16)
        return sl_fail(SL_EINVAL, "leave_static, leave_dynamic and leave_bf16 leave no precision but F32");
    if (params->measure == SL_MEASURE_NDCG && !params->group)
        return sl_fail(SL_EINVAL, "NDCG needs groups; name their column");
    return SL_OK;
}

/* The best result of the searches so far. */
typedef struct result {
    sl_ranker *ranker; /* NULL: none yet */
    sl_precision_search_report report;
} result;

/* Returns whether a search's result replaces the best. Within the bound beats outside it. Within it the lower cost
 * wins, outside it the smaller drop. */
static int is_better(const sl_precision_search_report *found, const result *best) {
    if (!best->ranker || found->within != best->report.within) return !best->ranker || found->within;
    return found->within ? found->cost < best->report.cost : found->drop < best->report.drop;
}

/* Keeps a search's result if it is the best, else frees it. Trials and proofs count over all searches. */
static void keep_better(result *best, const sl_precision_search_report *found, sl_ranker *made) {
    int proved = found->proved && (!best->ranker || best->report.proved);
    size_t trials = found->trials;
    if (made && is_better(found, best)) {
        sl_ranker_free(best->ranker);
        *best = (result){made, *found};
    } else {
        sl_ranker_free(made);
    }
    best->report.proved = proved;
    best->report.trials = trials;
}

/* Searches with every type of tables, the smallest first. Each search considers only costs below the earlier results,
 * so equal costs keep the smaller tables. Ends early at the lowest cost of all. */
static sl_status search_types(sl_search_job *job, const sl_table_type *types, size_t count, result *best) {
    for (size_t i = 0; i < count && (!i || !sl_search_is_over(job, job->trials)); i++) {
        sl_precision_search_report found = {.struct_size = sizeof found, .blame = SIZE_MAX, .tables = types[i]};
        sl_ranker *made;
        int is_least = 0;
        job->quantize.tables = types[i];
        SL_TRY(sl_search_precisions(job, &made, &found, &is_least));
        if (i + 1 < count && !is_least && sl_search_is_over(job, found.trials)) found.proved = 0;
        job->trials = found.trials;
        keep_better(best, &found, made);
        if (is_least) return SL_OK;
        if (best->report.within) job->below = best->report.cost;
    }
    return SL_OK;
}

static sl_status search_all_types(sl_search_job *job, result *best) {
    static const sl_table_type all[] = {SL_TABLE_I4, SL_TABLE_I8, SL_TABLE_F32};
    const sl_table_type given = job->quantize.tables, floats = SL_TABLE_F32;
    if (given != SL_TABLE_AUTO) return search_types(job, &given, 1, best);
    /* A model in training has tables of floats. */
    if (job->params->training || !job->ranker->features->table_count) return search_types(job, &floats, 1, best);
    return search_types(job, all, sizeof all / sizeof *all, best);
}

sl_status sl_ranker_search_precision(const sl_ranker *ranker, const sl_rows *rows, const sl_rows *eval,
                                     const sl_precision_search_params *params, sl_ranker **out,
                                     sl_precision_search_report *report) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!ranker || !rows) return sl_fail(SL_EINVAL, "ranker or rows is NULL");
    sl_precision_search_params mine;
    sl_precision_search_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_precision_search_params_init"));
    if (report) SL_TRY(sl_params_check_out(report, "sl_precision_search_report"));
    SL_TRY(check_search(&mine));
    sl_search_job job = {.ranker = ranker, .rows = rows, .eval = eval, .params = &mine, .below = INFINITY};
    sl_layer_choice choices[SL_MAX_LAYERS];
    sl_quantize_params_init(&job.quantize);
    job.quantize.tables = SL_TABLE_AUTO;
    SL_TRY(sl_params_in(&job.quantize, sizeof job.quantize, mine.quantize, "sl_quantize_params_init"));
    SL_TRY(sl_layer_choices(ranker, &job.quantize, choices));
    job.start = sl_now_s();
    result best = {.ranker = NULL};
    sl_status status = search_all_types(&job, &best);
    if (status != SL_OK) {
        sl_ranker_free(best.ranker);
        return status;
    }
    best.report.seconds = sl_now_s() - job.start;
    *out = best.ranker;
    if (report) sl_params_out(report, &best.report, sizeof best.report);
    return SL_OK;
}
