#include "hnsw/tune/choose_probes.h"

#include "hnsw/search/scan_batch.h"
#include "hnsw/search/scan_params.h"
#include "hnsw/search/start_nodes.h"

#include <math.h>

/* The price of a batch's scan. An evaluation of a walk is the unit; it waits for its row and serves one query. rows:
 * rows scanned in the time of an evaluation. beside: the other costs of a scan less those of a walk, in evaluations. A
 * scan's other costs are choosing partitions, and re-ranking the candidates that each of many thinnings leaves. With
 * VNNI in 512 bits, 10 to 19 rows are scanned in the time of an evaluation, fewer if rows are long; the other costs are
 * 3 us and more. On AVX2 it's 10 to 13 rows, and 8 to 18 us. */
typedef struct price {
    double rows, beside;
} price;

static price price_of(sl_isa isa) {
    switch (isa) {
    case SL_ISA_AVX512VNNI:
    case SL_ISA_AMXINT8: /* its matrices serve eight queries of a partition or more */
        return (price){12, 300};
    case SL_ISA_AVX2:
        return (price){12, 800};
    case SL_ISA_AVXVNNI:
    case SL_ISA_AVX512BW:
        return (price){7, 300};
    default:
        return (price){4, 300};
    }
}

/* Rows scanned for a single query in the time of an evaluation. Such a scan reads all its rows from memory. Measured:
 * 3.6 to 4.7 on every tier, and 6 with a million vectors. */
#define ROWS_AN_EVALUATION_ONE 4.0

typedef struct probe_tuning {
    sl_tune *tune;
    sl_query_batch batch;
    sl_search_params params;
} probe_tuning;

/* The scan has its own progress, through which the tuning's callback may cancel it. */
static int ask_whether_to_go_on(void *ctx, uint64_t done, uint64_t total) {
    (void)done, (void)total;
    sl_progress_step(ctx, 0);
    return sl_progress_cancelled(ctx);
}

/* Measures recall, its error, and the rows scanned, with this many probes per query. */
static sl_status measure_probes(probe_tuning *tuning, size_t probes, sl_tune_point *out) {
    sl_tune_task *task = &tuning->tune->task;
    sl_query_batch *batch = &tuning->batch;
    const size_t k = task->k;
    sl_search_stats stats = {0};
    uint64_t sum = 0, squares = 0;
    tuning->params.probes = probes;
    sl_progress_start(&batch->progress, task->progress.report ? ask_whether_to_go_on : NULL, &task->progress, task->nq);
    SL_TRY(sl_scan_batch(batch, &stats));
    if (sl_progress_cancelled(&task->progress)) return sl_progress_end(&task->progress);
    for (size_t q = 0; q < task->nq; q++) {
        uint64_t hits = 0;
        for (size_t i = 0; i < k; i++)
            hits += sl_tune_true_rank(task->truth + q * k, k, (uint32_t)batch->ids[q * k + i]) < k;
        sum += hits;
        squares += hits * hits;
    }
    *out = sl_tune_point_of(task, sum, squares, stats.evaluations);
    out->at = probes;
    task->passes++;
    return SL_OK;
}

/* Finds the fewest probes, at least `from`, that reach the record's target, by doubling and halving. If no number of
 * probes reaches it, or none within `most` evaluations, out->at is 0. In the second case out->evaluations exceeds
 * `most`. */
static sl_status find_fewest(probe_tuning *tuning, const sl_tuned_record *record, size_t from, double most,
                             sl_tune_point *out) {
    size_t all = tuning->batch.graph->partitions.count, low = from - 1, high = from;
    tuning->params.rerank = record->rerank;
    for (double before = 0;; low = high, high = 2 * high < all ? 2 * high : all) {
        SL_TRY(measure_probes(tuning, high, out));
        if (out->recall >= sl_tune_target_with_margin(record->target, out)) break;
        out->at = 0;
        /* If evaluations did not rise, the groups have no further partitions to scan. */
        if (high == all || out->evaluations > most || out->evaluations == before) return SL_OK;
        before = out->evaluations;
    }
    while (high - low > 1 + high / 32) {
        size_t middle = low + (high - low) / 2;
        sl_tune_point here;
        SL_TRY(measure_probes(tuning, middle, &here));
        if (here.recall >= sl_tune_target_with_margin(record->target, &here)) {
            high = middle;
            *out = here;
        } else {
            low = middle;
        }
    }
    if (out->evaluations > most) out->at = 0;
    return SL_OK;
}

/* The most rows that a scan may cost: per query of a batch, and for a single query. */
typedef struct budget {
    double batch, one;
} budget;

/* Chooses among all partitions, then among those of fewer and fewer groups. Goes on while that gets cheaper, or while
 * the cost is too high. A scan is recorded if it pays off for batches or for single queries. In a batch, the centroids
 * that every query scores cost a quarter less; numbers of groups are compared by that cost too. *kept becomes the
 * measurement with the record's probes; its `at` is 0 if the record gets none. */
static sl_status choose_among_groups(probe_tuning *tuning, sl_tuned_record *record, budget budget, size_t *from,
                                     sl_tune_point *kept) {
    const sl_graph *graph = tuning->batch.graph;
    double least = 0;
    size_t probes = *from, groups = 0, fewer = graph->groups.count;
    *kept = (sl_tune_point){0};
    do {
        double saved = (double)(groups ? graph->groups.count : graph->partitions.count) / 4;
        double most = record->probes ? least + saved : fmax(budget.batch + saved, budget.one);
        sl_tune_point point;
        tuning->params.groups = groups;
        SL_TRY(find_fewest(tuning, record, probes, most, &point));
        if (!point.at && (record->groups || point.evaluations <= most)) break;
        if (point.at) {
            *kept = point;
            probes = record->probes = (uint32_t)point.at;
            record->groups = (uint32_t)groups;
            least = point.evaluations - saved;
            if (!groups) *from = probes;
        }
        groups = fewer = fewer * 2 / 3;
    } while (groups);
    if (kept->evaluations <= budget.one) record->probes_one = record->probes;
    return SL_OK;
}

/* Chooses scans for a target that walks reach, if scans are cheaper. */
static sl_status choose_where_cheaper(probe_tuning *tuning, sl_tuned_record *record, size_t *from) {
    const sl_graph *graph = tuning->batch.graph;
    /* A walk's evaluations of start nodes cost less, because it reads them as a scan for one query reads rows. */
    double walked = record->evaluations - (double)sl_start_nodes_evaluations(graph) * (1 - 1 / ROWS_AN_EVALUATION_ONE);
    const price price = price_of(graph->kernels->isa);
    const budget budget = {(walked - price.beside) * price.rows, walked * ROWS_AN_EVALUATION_ONE};
    sl_tune_point kept;
    return choose_among_groups(tuning, record, budget, from, &kept);
}

/* Chooses scans for a target that walks miss. Scans depend on no links. They may cost as much as the deepest walk. They
 * re-rank so many candidates that recall falls by at most a sixteenth of what the target allows to miss. The record
 * then describes scans. */
static sl_status choose_where_walks_fail(probe_tuning *tuning, sl_tuned_record *record, size_t *from) {
    const sl_tune *tune = tuning->tune;
    const size_t depths = tune->task.depth_count, last = tune->curves[0].count - 1;
    const sl_tune_point *deepest = &tune->curves[depths - 1].points[last];
    const budget budget = {0, deepest->evaluations * ROWS_AN_EVALUATION_ONE};
    size_t depth = 0;
    sl_tuned_record scanned = *record;
    sl_tune_point kept;
    while (tune->curves[depth].points[last].recall < deepest->recall - (1 - record->target) / 16)
        depth++;
    scanned.rerank = (uint32_t)(tune->task.depths[depth] < deepest->at ? tune->task.depths[depth] : deepest->at);
    SL_TRY(choose_among_groups(tuning, &scanned, budget, from, &kept));
    if (!scanned.probes_one) return SL_OK;
    scanned.recall = kept.recall;
    scanned.standard_error = kept.error;
    scanned.evaluations = kept.evaluations;
    scanned.ef = scanned.rerank > scanned.k ? scanned.rerank : scanned.k;
    *record = scanned;
    return SL_OK;
}

/* Higher targets need more partitions, so each search starts from the last number. Scans may be cheaper at a higher
 * target although walks are cheaper at a lower one: a scan's other costs weigh less there. */
static sl_status choose_for_all_targets(probe_tuning *tuning) {
    sl_tune *tune = tuning->tune;
    size_t from = 1;
    for (size_t t = 0; t < tune->count; t++) {
        sl_tuned_record *record = &tune->records[t];
        /* If codes limit recall, scans don't help: they score the same codes and re-rank by the same data. */
        if (record->limit == SL_LIMIT_CODES) continue;
        SL_TRY(
            (record->limit == SL_LIMIT_NONE ? choose_where_cheaper : choose_where_walks_fail)(tuning, record, &from));
    }
    return SL_OK;
}

sl_status sl_tune_choose_probes(sl_tune *tune) {
    sl_tune_task *task = &tune->task;
    probe_tuning tuning = {.tune = tune};
    sl_query_batch *batch = &tuning.batch;
    sl_search_params_init(&tuning.params);
    tuning.params.probes = 1;
    *batch = (sl_query_batch){.graph = &task->index->graph,
                              .numa = task->index->numa,
                              .searchers = task->searchers,
                              .threads = task->threads,
                              .queries = task->queries,
                              .dtype = task->dtype,
                              .nq = task->nq,
                              .stride = task->stride,
                              .k = task->k,
                              .params = &tuning.params,
                              .nodes = 1};
    size_t bytes;
    void *ids;
    if (!sl_can_scan(batch->graph, batch->params)) return SL_OK;
    if (!sl_mul(task->nq, task->k * sizeof *batch->ids, &bytes))
        return sl_fail(SL_ENOMEM, "%zu results of %zu queries do not fit the address space", task->k, task->nq);
    SL_TRY(sl_mem_alloc(&task->index->graph.allocator, bytes, &ids));
    batch->ids = ids;
    sl_status status = choose_for_all_targets(&tuning);
    sl_mem_free(&task->index->graph.allocator, ids, bytes);
    return status;
}
