#include "hnsw/scan.h"

#include "hnsw/partition.h"
#include "hnsw/tier.h"
#include "hnsw/walk.h"

#include <math.h>
#include <string.h>

/* Queries that go together: enough that a partition is read for dozens of them, and what they have found stays in a
 * second-level cache or near it. */
enum { TOGETHER = 1024, CHOOSING = 64, KEEP_ROOM = 3, SPARE = 16 };

/* Entries that a thread's queries have room for: where each keeps thousands, fewer of them go together. */
#define MOST_FOUND ((size_t)1 << 23)

/* Codes of a kind, and the rows of that kind one after another. */
typedef struct sl_ground {
    const sl_code_rows *rows;
    sl_codes codes;
    size_t dim;
    const uint64_t *dead; /* a bit a row that is not to be found; NULL: there are none */
} sl_ground;

/* One thread's work on some queries. */
typedef struct sl_sweep {
    sl_batch *batch;
    sl_searcher *searcher;
    const sl_partitions *partitions;
    sl_ground nodes, centroids;
    size_t first, count; /* of the queries; count is at most `most` */
    size_t most;
    size_t probes, keep;
    sl_tile tile;
    sl_scan *scans;   /* a query's nodes */
    sl_scan *nearest; /* a query's partitions, of CHOOSING queries */
    sl_scan **turn;   /* queries that look at one partition */
    uint32_t *chosen; /* a query's partitions, the nearest of them first, most_probes entries a query */
    uint32_t *counts; /* how many these are */
    uint32_t *starts; /* partition -> its first place in pairs, partitions + 1 */
    uint32_t *pairs;  /* queries, by partition */
    uint8_t *codes;   /* of the queries, and behind them of CHOOSING over centroids */
    uint32_t *ids;    /* room for what is found, in the same order */
    float *scores;
    float *floats; /* a query as floats, and as much again */
    void *buffer;  /* its code over centroids */
    size_t evaluations;
} sl_sweep;

static size_t code_bytes(const sl_ground *ground) {
    return sl_round_up(4 * sl_tile_steps(ground->codes, ground->dim), SL_ROW_STEP);
}

static size_t room_for(size_t keep) {
    return KEEP_ROOM * keep + SL_TILE_ROWS + SPARE;
}

/* What sl_tile_kernels.best may leave. */
static size_t most_probes(const sl_sweep *sweep) {
    return sweep->probes + sweep->probes / 4;
}

int sl_scan_serves(const sl_index *index, const sl_search_params *params) {
    sl_codes codes = index->walked->codes;
    /* Where most are deleted, a scan reads more of those than of the others. */
    return params->probes && index->n && index->partitions.count && index->kernels->tile.scan &&
           (codes == SL_CODES_I8 || codes == SL_CODES_I4) && !params->accept && !params->accept_bits &&
           index->dead_count <= index->n / 2;
}

size_t sl_scan_probes(const sl_index *index, const sl_search_params *params) {
    size_t probes = params->probes, partitions = index->partitions.count;
    if (probes >= partitions) return partitions;
    probes = (size_t)((uint64_t)probes * index->n / sl_live_count(index));
    return probes < partitions ? probes : partitions;
}

void sl_scan_best_first(sl_scan *nearest) {
    uint32_t best = 0;
    if (!nearest->count) return;
    for (uint32_t i = 1; i < nearest->count; i++)
        if (nearest->scores[i] > nearest->scores[best]) best = i;
    uint32_t id = nearest->ids[best];
    nearest->ids[best] = nearest->ids[0];
    nearest->ids[0] = id;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Scanning
 * ------------------------------------------------------------------------------------------------------------- */

/* Scores that are no numbers are not taken. */
static void leave_out(sl_tile *tile, const uint64_t *dead) {
    for (size_t i = 0; i < tile->rows; i++)
        if (dead[(tile->first + i) / 64] >> ((tile->first + i) % 64) & 1) tile->factors[i] = NAN;
}

static void scan_rows(sl_sweep *sweep, const sl_ground *ground, sl_range range, sl_scan *const *scans, size_t n,
                      size_t keep) {
    const sl_tile_kernels *kernels = &sweep->batch->index->kernels->tile;
    sl_tile *tile = &sweep->tile;
    tile->codes = ground->codes;
    tile->steps = sl_tile_steps(ground->codes, ground->dim);
    for (size_t first = range.first; first < range.end && n; first += SL_TILE_ROWS) {
        size_t rows = range.end - first < SL_TILE_ROWS ? range.end - first : SL_TILE_ROWS;
        kernels->pack(tile, ground->rows, (uint32_t)first, rows);
        if (ground->dead) leave_out(tile, ground->dead);
        kernels->scan(tile, scans, n);
        for (size_t i = 0; i < n; i++)
            if (scans[i]->count > KEEP_ROOM * keep) kernels->best(scans[i], (uint32_t)keep);
        sweep->evaluations += rows * n;
    }
}

/* A query's code in the order of a tile. */
static void put_code(const sl_ground *ground, const sl_query_code *query, uint8_t *to, sl_scan *scan) {
    const uint8_t *from = query->code;
    size_t bytes = 4 * sl_tile_steps(ground->codes, ground->dim), half = bytes / 2;
    memset(to, 0, code_bytes(ground));
    if (ground->codes == SL_CODES_I4) {
        memcpy(to, from, half);
        memcpy(to + half, from + ground->rows->width, half);
    } else {
        memcpy(to, from, bytes < ground->rows->width ? bytes : ground->rows->width);
    }
    scan->query = *query;
    scan->query.code = to;
    scan->least = -INFINITY;
    scan->count = 0;
}

static void ask_nodes(sl_sweep *sweep, size_t i) {
    const sl_batch *batch = sweep->batch;
    sl_scan *scan = &sweep->scans[i];
    sl_searcher_ask(sweep->searcher, sl_batch_query(batch, sweep->first + i), batch->dtype);
    put_code(&sweep->nodes, sl_searcher_query(sweep->searcher), sweep->codes + i * code_bytes(&sweep->nodes), scan);
    scan->ids = sweep->ids + i * room_for(sweep->keep);
    scan->scores = sweep->scores + i * room_for(sweep->keep);
}

static void ask_centroids(sl_sweep *sweep, size_t i, size_t place) {
    const sl_batch *batch = sweep->batch;
    size_t before = sweep->most * room_for(sweep->keep);
    sl_scan *nearest = &sweep->nearest[place];
    sl_query_code code;
    sl_partition_ask(batch->index, sl_batch_query(batch, sweep->first + i), batch->dtype, sweep->buffer, sweep->floats,
                     &code);
    put_code(&sweep->centroids, &code,
             sweep->codes + sweep->most * code_bytes(&sweep->nodes) + place * code_bytes(&sweep->centroids), nearest);
    nearest->ids = sweep->ids + before + place * room_for(sweep->probes);
    nearest->scores = sweep->scores + before + place * room_for(sweep->probes);
}

/* The partitions that `count` queries from `from` on look at, the nearest of all first. */
static void choose_partitions(sl_sweep *sweep, size_t from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ask_centroids(sweep, from + i, i);
        sweep->turn[i] = &sweep->nearest[i];
    }
    scan_rows(sweep, &sweep->centroids, (sl_range){0, sweep->partitions->count}, sweep->turn, count, sweep->probes);
    for (size_t i = 0; i < count; i++) {
        sl_scan *nearest = &sweep->nearest[i];
        uint32_t *chosen = sweep->chosen + (from + i) * most_probes(sweep);
        sweep->batch->index->kernels->tile.best(nearest, (uint32_t)sweep->probes);
        sl_scan_best_first(nearest);
        memcpy(chosen, nearest->ids, nearest->count * sizeof *chosen);
        sweep->counts[from + i] = nearest->count;
    }
}

/* Scans the partitions that queries chose in places `from` up to below `to` of their lists. */
static void scan_chosen(sl_sweep *sweep, uint32_t from, uint32_t to) {
    const sl_partitions *partitions = sweep->partitions;
    size_t count = partitions->count, n = sweep->batch->index->n;
    memset(sweep->starts, 0, (count + 1) * sizeof *sweep->starts);
    for (size_t i = 0; i < sweep->count; i++)
        for (uint32_t j = from; j < to && j < sweep->counts[i]; j++)
            sweep->starts[sweep->chosen[i * most_probes(sweep) + j]]++;
    uint32_t sum = 0;
    for (size_t p = 0; p <= count; p++) {
        uint32_t here = sweep->starts[p];
        sum += here;
        sweep->starts[p] = sum;
    }
    for (size_t i = sweep->count; i-- > 0;)
        for (uint32_t j = from; j < to && j < sweep->counts[i]; j++)
            sweep->pairs[--sweep->starts[sweep->chosen[i * most_probes(sweep) + j]]] = (uint32_t)i;
    for (size_t p = 0; p < count; p++) {
        size_t queries = sweep->starts[p + 1] - sweep->starts[p];
        for (size_t i = 0; i < queries; i++)
            sweep->turn[i] = &sweep->scans[sweep->pairs[sweep->starts[p] + i]];
        scan_rows(sweep, &sweep->nodes, sl_partition_nodes(partitions, p, n), sweep->turn, queries, sweep->keep);
    }
}

/* Nodes that were added after the partitions were made: every query looks at them. */
static void scan_tail(sl_sweep *sweep) {
    for (size_t i = 0; i < sweep->count; i++)
        sweep->turn[i] = &sweep->scans[i];
    scan_rows(sweep, &sweep->nodes, sl_partition_rest(sweep->partitions, sweep->batch->index->n), sweep->turn,
              sweep->count, sweep->keep);
}

/* Ranks what a query has found. Where that is too little since it lies where much is deleted, it walks. */
static sl_status answer(sl_sweep *sweep, size_t i, size_t *results) {
    sl_batch *batch = sweep->batch;
    sl_searcher *searcher = sweep->searcher;
    sl_scan *scan = &sweep->scans[i];
    const void *query = sl_batch_query(batch, sweep->first + i);
    batch->index->kernels->tile.best(scan, (uint32_t)sweep->keep);
    sl_searcher_rank(searcher, query, batch->dtype, batch->k, batch->params, scan);
    if (sl_searcher_results(searcher) < batch->k && sweep->nodes.dead) {
        sl_search_params walk = *batch->params;
        walk.probes = 0;
        SL_TRY(sl_searcher_run(searcher, query, batch->dtype, batch->k, &walk));
        sweep->evaluations += sl_searcher_evaluations(searcher);
    }
    sl_batch_write(batch, searcher, sweep->first + i);
    *results += sl_searcher_results(searcher);
    return SL_OK;
}

static sl_status sweep_queries(sl_sweep *sweep, size_t *results) {
    for (size_t i = 0; i < sweep->count; i++)
        ask_nodes(sweep, i);
    for (size_t i = 0; i < sweep->count; i += CHOOSING)
        choose_partitions(sweep, i, sweep->count - i < CHOOSING ? sweep->count - i : CHOOSING);
    /* The nearest partitions first: what they hold sets thresholds that little of the others passes. */
    scan_chosen(sweep, 0, 1);
    scan_tail(sweep);
    scan_chosen(sweep, 1, UINT32_MAX);
    for (size_t i = 0; i < sweep->count; i++) {
        SL_TRY(answer(sweep, i, results));
        sl_progress_step(&sweep->batch->progress, 1);
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * A thread's memory, and the threads
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct sl_piece {
    void **at;
    size_t size;
} sl_piece;

enum { PIECES = 14 };

static void pieces_of(sl_sweep *sweep, sl_piece *pieces) {
    size_t most = sweep->most, partitions = sweep->partitions->count, dim = sweep->centroids.dim;
    size_t steps = sl_tile_steps(sweep->nodes.codes, sweep->nodes.dim);
    size_t centroid_steps = sl_tile_steps(SL_CODES_I8, dim);
    if (steps < centroid_steps) steps = centroid_steps;
    size_t codes = most * code_bytes(&sweep->nodes) + CHOOSING * code_bytes(&sweep->centroids);
    size_t found = most * room_for(sweep->keep) + CHOOSING * room_for(sweep->probes);
    size_t turn = most > CHOOSING ? most : CHOOSING, word = sizeof(uint32_t);
    const sl_piece all[PIECES] = {
        {(void **)&sweep->scans, most * sizeof(sl_scan)},
        {(void **)&sweep->nearest, CHOOSING * sizeof(sl_scan)},
        {(void **)&sweep->turn, turn * sizeof(sl_scan *)},
        {(void **)&sweep->chosen, most * most_probes(sweep) * word},
        {(void **)&sweep->counts, most * word},
        {(void **)&sweep->starts, (partitions + 1) * word},
        {(void **)&sweep->pairs, most * most_probes(sweep) * word},
        {(void **)&sweep->codes, codes},
        {(void **)&sweep->ids, found * word},
        {(void **)&sweep->scores, found * sizeof(float)},
        {(void **)&sweep->tile.bytes, SL_TILE_ROWS * 4 * steps},
        {(void **)&sweep->tile.factors, 2 * SL_TILE_ROWS * sizeof(float)},
        {(void **)&sweep->floats, 2 * dim * sizeof(float)},
        {&sweep->buffer, sl_query_size(&sweep->partitions->codec)},
    };
    memcpy(pieces, all, sizeof all);
}

/* What a query keeps. No searcher ranks more than it has room for. */
static size_t keep_of(const sl_batch *batch) {
    size_t keep = sl_rerank_count(batch->index, batch->k, batch->params);
    size_t room = sl_searcher_room(batch->searchers[0]);
    return keep < room ? keep : room;
}

/* How many queries go together. */
static size_t most_of(const sl_batch *batch) {
    size_t most = (batch->nq + batch->threads - 1) / batch->threads;
    size_t room = room_for(keep_of(batch)) + 3 * sl_scan_probes(batch->index, batch->params);
    size_t fits = MOST_FOUND / room > CHOOSING ? MOST_FOUND / room : CHOOSING;
    if (most > TOGETHER) most = TOGETHER;
    return most < fits ? most : fits;
}

/* All in one block, which stays with the searcher for the next batch: clearing it takes longer than a short scan. */
static sl_status sweep_init(sl_sweep *sweep, sl_batch *batch, size_t thread, size_t most) {
    const sl_index *index = batch->index;
    const sl_partitions *partitions = &index->partitions;
    const sl_tier_copy *tier = sl_tier_now(index);
    const sl_codec *walked = tier ? &tier->walked : index->walked;
    size_t size = 0;
    sl_piece pieces[PIECES];
    *sweep = (sl_sweep){.batch = batch,
                        .searcher = batch->searchers[thread],
                        .partitions = partitions,
                        .nodes = {&walked->rows, walked->codes, walked->dim, index->dead_count ? index->dead : NULL},
                        .centroids = {&partitions->codec.rows, SL_CODES_I8, index->codec.dim, NULL},
                        .most = most,
                        .probes = sl_scan_probes(batch->index, batch->params),
                        .keep = keep_of(batch)};
    pieces_of(sweep, pieces);
    for (size_t i = 0; i < PIECES; i++)
        size += sl_round_up(pieces[i].size, SL_CACHE_LINE);
    uint8_t *block;
    SL_TRY(sl_searcher_scratch(sweep->searcher, size, &block));
    for (size_t i = 0; i < PIECES; i++) {
        *pieces[i].at = block;
        block += sl_round_up(pieces[i].size, SL_CACHE_LINE);
    }
    sweep->tile.biases = sweep->tile.factors + SL_TILE_ROWS;
    return SL_OK;
}

/* The next queries that nobody has taken, as long as there are any. */
static sl_status run_thread(sl_batch *batch, size_t thread, size_t most, size_t *next, sl_search_stats *stats) {
    sl_sweep sweep;
    SL_TRY(sweep_init(&sweep, batch, thread, most));
    for (;;) {
        sweep.first = __atomic_fetch_add(next, most, __ATOMIC_RELAXED);
        if (sweep.first >= batch->nq || sl_progress_cancelled(&batch->progress)) break;
        sweep.count = batch->nq - sweep.first < most ? batch->nq - sweep.first : most;
        SL_TRY(sweep_queries(&sweep, &stats->results));
    }
    stats->evaluations += sweep.evaluations;
    return SL_OK;
}

sl_status sl_scan_run(sl_batch *batch, sl_search_stats *stats) {
    size_t most = most_of(batch), next = 0;
    sl_status worst = SL_OK;
#pragma omp parallel num_threads((int)batch->threads) if (batch->threads > 1)
    {
        sl_search_stats mine = {0};
        sl_numa_pin pin;
        sl_numa_pin_thread(batch->threads > 1 ? batch->index->numa : NULL, sl_thread_number(), batch->threads, &pin);
        sl_status status = run_thread(batch, sl_thread_number(), most, &next, &mine);
        sl_numa_unpin_thread(batch->index->numa, &pin);
#pragma omp critical(sl_scan_stats)
        {
            if (status != SL_OK) worst = status;
            stats->results += mine.results;
            stats->evaluations += mine.evaluations;
        }
    }
    /* Once more, since the message of another thread is not seen on the one that called. */
    if (worst != SL_OK)
        return sl_fail(worst, "cannot allocate what %zu threads need to scan for %zu queries; search on fewer",
                       batch->threads, most);
    return SL_OK;
}
