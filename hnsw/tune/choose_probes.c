#include "hnsw/tune/choose_probes.h"

#include "hnsw/search/scan_batch.h"
#include "hnsw/search/scan_params.h"
#include "hnsw/search/start_nodes.h"

#include <math.h>

/* The price of scanning a batch, beside what an evaluation of a walk takes: that waits for its row and serves one
 * query. `rows`: rows that are scanned in that time. `beside`: what a scan does beside its rows, as evaluations,
 * without what a walk does beside its own. A scan finds its partitions, and ranks what each of many thinnings has
 * left. With VNNI in 512 bits ratios of rows are 10 to 19, the fewer the longer the rows. The rest takes 3 us and
 * more. On AVX2 the ratios are 10 to 13, and the rest takes 8 to 18 us. */
typedef struct price {
    double rows, beside;
} price;

static price price_of(sl_isa isa) {
    switch (isa) {
    case SL_ISA_AVX512VNNI:
    case SL_ISA_AMXINT8: /* whose matrices serve eight queries of a partition or more */
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

/* Rows scanned for one query in the time of an evaluation; such a scan reads its rows from memory for itself.
 * Measured: 3.6 to 4.7 on every tier, and 6 with a million vectors. */
#define ROWS_AN_EVALUATION_ONE 4.0

typedef struct probing {
    sl_tune *tune;
    sl_query_batch batch;
    sl_search_params params;
} probing;

/* The scan has a progress of its own. It only asks the tuning's whether to go on. */
static int ask_tuning(void *ctx, uint64_t done, uint64_t total) {
    (void)done, (void)total;
    sl_progress_step(ctx, 0);
    return sl_progress_cancelled(ctx);
}

/* Measures recall and its error with so many partitions a query, and the rows looked at. */
static sl_status measure(probing *probing, size_t probes, sl_tune_point *out) {
    sl_tune_task *task = &probing->tune->task;
    sl_query_batch *batch = &probing->batch;
    const size_t k = task->k;
    sl_search_stats stats = {0};
    uint64_t sum = 0, squares = 0;
    probing->params.probes = probes;
    sl_progress_start(&batch->progress, task->progress.tell ? ask_tuning : NULL, &task->progress, task->nq);
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

/* Finds the fewest partitions, at least `from`, that reach the record's target, by doubling and halving. out->at is 0
 * where none do, or none do by `most` evaluations. In the latter case out->evaluations is more than that. */
static sl_status fewest(probing *probing, const sl_tuned_record *record, size_t from, double most, sl_tune_point *out) {
    size_t all = probing->batch.graph->partitions.count, low = from - 1, high = from;
    probing->params.rerank = record->rerank;
    for (double before = 0;; low = high, high = 2 * high < all ? 2 * high : all) {
        SL_TRY(measure(probing, high, out));
        if (out->recall >= sl_tune_target_with_margin(record->target, out)) break;
        out->at = 0;
        /* The groups that are looked at hold no more, where the evaluations are as before. */
        if (high == all || out->evaluations > most || out->evaluations == before) return SL_OK;
        before = out->evaluations;
    }
    while (high - low > 1 + high / 32) {
        size_t middle = low + (high - low) / 2;
        sl_tune_point here;
        SL_TRY(measure(probing, middle, &here));
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

/* Rows that scanning may cost: a batch, and single queries. */
typedef struct budget {
    double batch, one;
} budget;

/* Chooses among all partitions, then among those of fewer and fewer groups, as long as that gets cheaper or is too
 * dear yet. A scan serves a batch where it is worth it to the batch, or to single queries. A batch counts a quarter
 * less of what every query looks at. Numbers of groups are compared that way too. *kept becomes the measurement with
 * the number of partitions that the record gets. Its `at` is 0 where the record gets none. */
static sl_status settle(probing *probing, sl_tuned_record *record, budget budget, size_t *from, sl_tune_point *kept) {
    const sl_graph *graph = probing->batch.graph;
    double least = 0;
    size_t probes = *from, groups = 0, fewer = graph->groups.count;
    *kept = (sl_tune_point){0};
    do {
        double saved = (double)(groups ? graph->groups.count : graph->partitions.count) / 4;
        double most = record->probes ? least + saved : fmax(budget.batch + saved, budget.one);
        sl_tune_point point;
        probing->params.groups = groups;
        SL_TRY(fewest(probing, record, probes, most, &point));
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

/* Lets scans serve what walks reach, where scans are cheaper. */
static sl_status settle_reached(probing *probing, sl_tuned_record *record, size_t *from) {
    const sl_graph *graph = probing->batch.graph;
    /* A walk reads what it begins with as a scan for one query does. */
    double walked = record->evaluations - (double)sl_start_nodes_evaluations(graph) * (1 - 1 / ROWS_AN_EVALUATION_ONE);
    const price price = price_of(graph->kernels->isa);
    const budget budget = {(walked - price.beside) * price.rows, walked * ROWS_AN_EVALUATION_ONE};
    sl_tune_point kept;
    return settle(probing, record, budget, from, &kept);
}

/* Lets scans serve what walks do not reach: scans depend on no links. They may cost what the deepest walk did. They
 * re-rank no more than loses a sixteenth of what may be missing. The record is one of scans from then on. */
static sl_status settle_missed(probing *probing, sl_tuned_record *record, size_t *from) {
    const sl_tune *tune = probing->tune;
    const size_t depths = tune->task.depth_count, last = tune->curves[0].count - 1;
    const sl_tune_point *deepest = &tune->curves[depths - 1].points[last];
    const budget budget = {0, deepest->evaluations * ROWS_AN_EVALUATION_ONE};
    size_t depth = 0;
    sl_tuned_record scanned = *record;
    sl_tune_point kept;
    while (tune->curves[depth].points[last].recall < deepest->recall - (1 - record->target) / 16)
        depth++;
    scanned.rerank = (uint32_t)(tune->task.depths[depth] < deepest->at ? tune->task.depths[depth] : deepest->at);
    SL_TRY(settle(probing, &scanned, budget, from, &kept));
    if (!scanned.probes_one) return SL_OK;
    scanned.recall = kept.recall;
    scanned.standard_error = kept.error;
    scanned.evaluations = kept.evaluations;
    scanned.ef = scanned.rerank > scanned.k ? scanned.rerank : scanned.k;
    *record = scanned;
    return SL_OK;
}

/* Higher targets take more partitions. A higher target may be served by scans even if a lower one was left to walks.
 * The cost of a scan beside its rows counts less there. */
static sl_status settle_all(probing *probing) {
    sl_tune *tune = probing->tune;
    size_t from = 1;
    for (size_t t = 0; t < tune->count; t++) {
        sl_tuned_record *record = &tune->records[t];
        /* Scans see the same codes, and rank by the same. */
        if (record->limit == SL_LIMIT_CODES) continue;
        SL_TRY((record->limit == SL_LIMIT_NONE ? settle_reached : settle_missed)(probing, record, &from));
    }
    return SL_OK;
}

sl_status sl_tune_choose_probes(sl_tune *tune) {
    sl_tune_task *task = &tune->task;
    probing probing = {.tune = tune};
    sl_query_batch *batch = &probing.batch;
    sl_search_params_init(&probing.params);
    probing.params.probes = 1;
    *batch = (sl_query_batch){.graph = &task->index->graph,
                              .numa = task->index->numa,
                              .searchers = task->searchers,
                              .threads = task->threads,
                              .queries = task->queries,
                              .dtype = task->dtype,
                              .nq = task->nq,
                              .stride = task->stride,
                              .k = task->k,
                              .params = &probing.params,
                              .nodes = 1};
    size_t bytes;
    void *ids;
    if (!sl_can_scan(batch->graph, batch->params)) return SL_OK;
    if (!sl_mul(task->nq, task->k * sizeof *batch->ids, &bytes))
        return sl_fail(SL_ENOMEM, "%zu results of %zu queries do not fit the address space", task->k, task->nq);
    SL_TRY(sl_mem_alloc(&task->index->graph.allocator, bytes, &ids));
    batch->ids = ids;
    sl_status status = settle_all(&probing);
    sl_mem_free(&task->index->graph.allocator, ids, bytes);
    return status;
}
