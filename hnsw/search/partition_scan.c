#include "hnsw/search/partition_scan.h"

#include "hnsw/place/dram_copy.h"
#include "hnsw/search/bands.h"
#include "hnsw/search/walk.h"

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

/* What each query chose of some parts: partitions, or groups of them. */
typedef struct sl_choice {
    const sl_partitions *parts;
    size_t probes;    /* of a query */
    size_t wanted;    /* parts it keeps meanwhile: sl_bands_partitions */
    uint32_t *chosen; /* a query's shares, that of the nearest first, most_of_choice entries a query */
    uint32_t *counts; /* how many these are */
} sl_choice;

/* One thread's work on some queries. */
typedef struct sl_sweep {
    sl_query_batch *batch;
    sl_searcher *searcher;
    sl_ground nodes, centroids, group_centroids;
    sl_choice partitions, groups; /* groups: none are wanted where all centroids are looked at */
    size_t first, count;          /* of the queries; count is at most `most` */
    size_t most, choosing;        /* choosing: how many choose their partitions together */
    size_t keep;
    sl_tile tile;
    sl_scan *scans;          /* a query's nodes */
    sl_scan *nearest;        /* a query's partitions, of `choosing` queries */
    sl_scan *nearest_groups; /* of CHOOSING queries */
    sl_scan **turn;          /* queries that look at one part, those of larger shares first */
    size_t *lengths;         /* how many of its rows each looks at */
    uint32_t *starts;        /* share -> its first place in pairs, and one more */
    uint32_t *pairs;         /* queries, by share, and so by part */
    uint8_t *codes;          /* of the queries, and behind them of those that choose, over centroids */
    uint32_t *ids;           /* room for what is found, in the same order, and by those that choose groups */
    float *scores;
    uint32_t *choice; /* scratch of choosing shares */
    float *floats;    /* a query as floats */
    void *buffer;     /* its code over centroids */
    sl_search_stats stats;
} sl_sweep;

static size_t code_bytes(const sl_ground *ground) {
    return sl_round_up(4 * sl_tile_steps(ground->codes, ground->dim), SL_ROW_STEP);
}

static size_t room_for(size_t keep) {
    return KEEP_ROOM * keep + SL_TILE_ROWS + SPARE;
}

static size_t shares_of(const sl_choice *choice) {
    return choice->parts->count << choice->parts->band_bits;
}

/* What sl_bands_choose may leave. */
static size_t most_of_choice(const sl_choice *choice) {
    return choice->wanted + choice->wanted / 4;
}

int sl_scan_serves(const sl_index *index, const sl_search_params *params) {
    sl_codes codes = index->walk_codec->codes;
    /* Where most are deleted, a scan reads more of those than of the others. */
    return params->probes && index->n && index->partitions.count && index->kernels->tile.scan &&
           (codes == SL_CODES_I8 || codes == SL_CODES_I4) && !params->accept && !params->accept_bits &&
           index->dead_count <= index->n / 2;
}

/* As many more as nodes are deleted, of so many parts. */
static size_t among_live(const sl_index *index, size_t wanted, size_t parts) {
    if (wanted >= parts) return parts;
    wanted = (size_t)((uint64_t)wanted * index->n / sl_undeleted_count(index));
    return wanted < parts ? wanted : parts;
}

size_t sl_scan_probes(const sl_index *index, const sl_search_params *params) {
    return among_live(index, params->probes, index->partitions.count);
}

size_t sl_scan_groups(const sl_index *index, const sl_search_params *params) {
    size_t groups = among_live(index, params->groups, index->groups.count);
    return groups < index->groups.count ? groups : 0;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Scanning
 * ------------------------------------------------------------------------------------------------------------- */

/* Scores that are no numbers are not taken. */
static void leave_out(sl_tile *tile, const uint64_t *dead) {
    for (size_t i = 0; i < tile->rows; i++)
        if (sl_is_marked(dead, tile->first + i)) tile->factors[i] = NAN;
}

/* What is read once this tile is scanned: the rows behind it, or the first of the next range. */
static void look_ahead(sl_tile *tile, const sl_code_rows *rows, sl_range behind, sl_range next) {
    if (behind.first == behind.end) behind = next;
    size_t n = behind.end - behind.first < SL_TILE_ROWS ? behind.end - behind.first : SL_TILE_ROWS;
    tile->ahead = n ? rows->base + behind.first * rows->pitch : tile->bytes;
    tile->ahead_end = n ? tile->ahead + n * rows->pitch : tile->bytes;
}

/* How many rows of a tile a query looks at that looks at so many of a range, `done` of which lie before the tile. */
static uint32_t rows_of_tile(size_t length, size_t done, size_t rows) {
    size_t left = length > done ? length - done : 0;
    return (uint32_t)(left < rows ? left : rows);
}

/* Scans a tile for n queries of which none looks at more of it than the one before. Those that look at as many
 * sixteens of rows go together: that is what the widest registers hold. */
static void scan_tile(sl_sweep *sweep, size_t done, size_t rows, size_t n) {
    const sl_tile_kernels *kernels = &sweep->batch->index->kernels->tile;
    sl_tile *tile = &sweep->tile;
    for (size_t from = 0, to = 0; to < n; from = to) {
        tile->rows = rows_of_tile(sweep->lengths[from], done, rows);
        if (!tile->rows) return;
        for (; to < n; to++) {
            uint32_t own = rows_of_tile(sweep->lengths[to], done, rows);
            if ((own + 15) / 16 != (tile->rows + 15) / 16) break;
            sweep->turn[to]->rows = own;
            sweep->stats.evaluations += own;
        }
        kernels->scan(tile, sweep->turn + from, to - from);
    }
}

/* Rows from `first` on for the n queries whose turn it is; `next` is the range that comes after them, or an empty one.
 */
static void scan_rows(sl_sweep *sweep, const sl_ground *ground, size_t first, sl_range next, size_t n, size_t keep) {
    const sl_tile_kernels *kernels = &sweep->batch->index->kernels->tile;
    sl_tile *tile = &sweep->tile;
    tile->codes = ground->codes;
    tile->steps = sl_tile_steps(ground->codes, ground->dim);
    size_t all = n ? sweep->lengths[0] : 0;
    for (size_t done = 0, rows; done < all; done += rows) {
        rows = all - done < SL_TILE_ROWS ? all - done : SL_TILE_ROWS;
        kernels->pack(tile, ground->rows, (uint32_t)(first + done), rows);
        if (ground->dead) leave_out(tile, ground->dead);
        look_ahead(tile, ground->rows, (sl_range){first + done + rows, first + all}, next);
        scan_tile(sweep, done, rows, n);
        for (size_t i = 0; i < n; i++)
            if (sweep->turn[i]->count > KEEP_ROOM * keep) kernels->best(sweep->turn[i], (uint32_t)keep, 0);
    }
}

/* The first n of the queries whose turn it is look at all of a range. */
static void scan_range(sl_sweep *sweep, const sl_ground *ground, sl_range range, size_t n, size_t keep) {
    for (size_t i = 0; i < n; i++)
        sweep->lengths[i] = range.end - range.first;
    scan_rows(sweep, ground, range.first, (sl_range){0}, n, keep);
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
    const sl_query_batch *batch = sweep->batch;
    sl_scan *scan = &sweep->scans[i];
    sl_searcher_ask(sweep->searcher, sl_query_batch_query(batch, sweep->first + i), batch->dtype);
    put_code(&sweep->nodes, sl_searcher_query(sweep->searcher), sweep->codes + i * code_bytes(&sweep->nodes), scan);
    scan->ids = sweep->ids + i * room_for(sweep->keep);
    scan->scores = sweep->scores + i * room_for(sweep->keep);
}

/* Room for what a query finds, `number` of those that find `keep`, behind `before` entries. */
static void give_room(sl_sweep *sweep, sl_scan *scan, size_t before, size_t number, size_t keep) {
    scan->ids = sweep->ids + before + number * room_for(keep);
    scan->scores = sweep->scores + before + number * room_for(keep);
}

static void ask_centroids(sl_sweep *sweep, size_t i, size_t place) {
    const sl_query_batch *batch = sweep->batch;
    sl_scan *nearest = &sweep->nearest[place];
    sl_query_code code;
    sl_partition_ask(batch->index, sl_query_batch_query(batch, sweep->first + i), batch->dtype, sweep->buffer,
                     sweep->floats, &code);
    put_code(&sweep->centroids, &code,
             sweep->codes + sweep->most * code_bytes(&sweep->nodes) + place * code_bytes(&sweep->centroids), nearest);
    give_room(sweep, nearest, sweep->most * room_for(sweep->keep), place, sweep->partitions.wanted);
}

/* Of what query i has found, shares of the best are its choice. */
static void take_choice(const sl_sweep *sweep, sl_choice *choice, size_t i, sl_scan *found) {
    uint32_t *chosen = choice->chosen + i * most_of_choice(choice);
    sl_bands_choose(sweep->batch->index->kernels, choice->parts, choice->probes, found, sweep->choice);
    memcpy(chosen, found->ids, found->count * sizeof *chosen);
    choice->counts[i] = found->count;
}

/* The partitions that `count` queries from `from` on look at, among all. */
static void choose_among_all(sl_sweep *sweep, size_t from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ask_centroids(sweep, from + i, i);
        sweep->turn[i] = &sweep->nearest[i];
    }
    scan_range(sweep, &sweep->centroids, (sl_range){0, sweep->partitions.parts->count}, count,
               sweep->partitions.wanted);
    for (size_t i = 0; i < count; i++)
        take_choice(sweep, &sweep->partitions, from + i, &sweep->nearest[i]);
}

/* The groups whose centroids `count` queries from `from` on look at. */
static void choose_groups(sl_sweep *sweep, size_t from, size_t count) {
    const size_t wanted = sweep->groups.wanted;
    size_t before = sweep->most * room_for(sweep->keep) + sweep->choosing * room_for(sweep->partitions.wanted);
    for (size_t i = 0; i < count; i++) {
        ask_centroids(sweep, from + i, from + i);
        sl_scan *nearest = &sweep->nearest_groups[i];
        *nearest = sweep->nearest[from + i];
        give_room(sweep, nearest, before, i, wanted);
        sweep->turn[i] = nearest;
    }
    scan_range(sweep, &sweep->group_centroids, (sl_range){0, sweep->groups.parts->count}, count, wanted);
    for (size_t i = 0; i < count; i++)
        take_choice(sweep, &sweep->groups, from + i, &sweep->nearest_groups[i]);
}

/* Sorts the queries by the shares that they chose in places `from` up to below `to` of their lists. */
static void pair_up(sl_sweep *sweep, const sl_choice *choice, uint32_t from, uint32_t to) {
    size_t count = shares_of(choice), most = most_of_choice(choice);
    memset(sweep->starts, 0, (count + 1) * sizeof *sweep->starts);
    for (size_t i = 0; i < sweep->count; i++)
        for (uint32_t j = from; j < to && j < choice->counts[i]; j++)
            sweep->starts[choice->chosen[i * most + j]]++;
    uint32_t sum = 0;
    for (size_t share = 0; share <= count; share++) {
        sum += sweep->starts[share];
        sweep->starts[share] = sum;
    }
    for (size_t i = sweep->count; i-- > 0;)
        for (uint32_t j = from; j < to && j < choice->counts[i]; j++)
            sweep->pairs[--sweep->starts[choice->chosen[i * most + j]]] = (uint32_t)i;
}

/* The first share from this one on that a query chose; their number where there is none. */
static size_t chosen_from(const sl_sweep *sweep, const sl_choice *choice, size_t share) {
    while (share < shares_of(choice) && sweep->starts[share] == sweep->starts[share + 1])
        share++;
    return share;
}

/* Makes it the turn of those that chose a share from `from` up to below `to` of a part that has so many rows, which
 * find in `scans`; returns how many they are. Each once, by the largest share: groups of a damaged file may hold the
 * same partitions, and there is room for one tile's rows more than are kept. */
static size_t take_turns(sl_sweep *sweep, const sl_choice *choice, size_t from, size_t to, size_t rows,
                         sl_scan *scans) {
    size_t queries = 0;
    for (size_t at = sweep->starts[from]; at < sweep->starts[to]; at++)
        scans[sweep->pairs[at]].rows = 0;
    for (size_t share = from; share < to; share++)
        for (size_t at = sweep->starts[share]; at < sweep->starts[share + 1]; at++) {
            sl_scan *scan = &scans[sweep->pairs[at]];
            if (scan->rows) continue;
            scan->rows = 1; /* until its tile is scanned */
            sweep->turn[queries] = scan;
            sweep->lengths[queries++] = sl_partition_shared(choice->parts, share, rows);
        }
    return queries;
}

/* Scans each part for those that chose a share of it: `n` rows in all of this ground. */
static void scan_parts(sl_sweep *sweep, const sl_choice *choice, const sl_ground *ground, size_t n, sl_scan *scans,
                       size_t keep) {
    const size_t count = shares_of(choice);
    const unsigned bits = choice->parts->band_bits;
    for (size_t share = chosen_from(sweep, choice, 0), behind; share < count; share = behind) {
        size_t p = share >> bits, end = (p + 1) << bits;
        behind = chosen_from(sweep, choice, end);
        sl_range next = behind < count ? sl_partition_share(choice->parts, behind, n) : (sl_range){0};
        sl_range range = sl_partition_nodes(choice->parts, p, n);
        size_t queries = take_turns(sweep, choice, share, end, range.end - range.first, scans);
        scan_rows(sweep, ground, range.first, next, queries, keep);
    }
}

static void choose_partitions(sl_sweep *sweep) {
    const sl_choice *partitions = &sweep->partitions;
    void (*choose)(sl_sweep *, size_t, size_t) = sweep->groups.wanted ? choose_groups : choose_among_all;
    for (size_t i = 0; i < sweep->count; i += CHOOSING)
        choose(sweep, i, sweep->count - i < CHOOSING ? sweep->count - i : CHOOSING);
    if (!sweep->groups.wanted) return;
    pair_up(sweep, &sweep->groups, 0, UINT32_MAX);
    scan_parts(sweep, &sweep->groups, &sweep->centroids, partitions->parts->count, sweep->nearest, partitions->wanted);
    for (size_t i = 0; i < sweep->count; i++)
        take_choice(sweep, &sweep->partitions, i, &sweep->nearest[i]);
}

/* Scans the shares that queries chose in places `from` up to below `to` of their lists. */
static void scan_chosen(sl_sweep *sweep, uint32_t from, uint32_t to) {
    pair_up(sweep, &sweep->partitions, from, to);
    scan_parts(sweep, &sweep->partitions, &sweep->nodes, sweep->batch->index->n, sweep->scans, sweep->keep);
}

/* Nodes that were added after the partitions were made: every query looks at them. */
static void scan_tail(sl_sweep *sweep) {
    for (size_t i = 0; i < sweep->count; i++)
        sweep->turn[i] = &sweep->scans[i];
    scan_range(sweep, &sweep->nodes, sl_partition_rest(sweep->partitions.parts, sweep->batch->index->n), sweep->count,
               sweep->keep);
}

/* Ranks what a query has found. Where that is too little since it lies where much is deleted, it walks. */
static sl_status answer(sl_sweep *sweep, size_t i) {
    sl_query_batch *batch = sweep->batch;
    sl_searcher *searcher = sweep->searcher;
    sl_scan *scan = &sweep->scans[i];
    const void *query = sl_query_batch_query(batch, sweep->first + i);
    /* As many as are ranked, so that they need not be sorted to tell which those are. */
    batch->index->kernels->tile.best(scan, (uint32_t)sweep->keep, 1);
    sl_searcher_rank(searcher, query, batch->dtype, batch->k, batch->params, scan);
    if (sl_searcher_results(searcher) < batch->k && sweep->nodes.dead) {
        sl_search_params walk = *batch->params;
        walk.probes = 0;
        SL_TRY(sl_searcher_run(searcher, query, batch->dtype, batch->k, &walk));
        sl_searcher_count(searcher, &sweep->stats);
    }
    sl_query_batch_write(batch, searcher, sweep->first + i);
    sweep->stats.results += sl_searcher_results(searcher);
    return SL_OK;
}

static sl_status sweep_queries(sl_sweep *sweep) {
    for (size_t i = 0; i < sweep->count; i++)
        ask_nodes(sweep, i);
    choose_partitions(sweep);
    /* The nearest partitions first: what they hold sets thresholds that little of the others passes. */
    scan_chosen(sweep, 0, 1);
    scan_tail(sweep);
    scan_chosen(sweep, 1, UINT32_MAX);
    for (size_t i = 0; i < sweep->count; i++) {
        SL_TRY(answer(sweep, i));
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

enum { PIECES = 19 };

static void pieces_of(sl_sweep *sweep, sl_piece *pieces) {
    const size_t word = sizeof(uint32_t);
    sl_choice *partitions = &sweep->partitions, *groups = &sweep->groups;
    size_t most = sweep->most, dim = sweep->centroids.dim;
    size_t choosing = sweep->choosing, choosing_groups = groups->wanted ? CHOOSING : 0;
    size_t steps = sl_tile_steps(sweep->nodes.codes, sweep->nodes.dim);
    size_t centroid_steps = sl_tile_steps(SL_CODES_I8, dim);
    if (steps < centroid_steps) steps = centroid_steps;
    size_t codes = most * code_bytes(&sweep->nodes) + choosing * code_bytes(&sweep->centroids);
    size_t found = most * room_for(sweep->keep) + choosing * room_for(partitions->wanted) +
                   choosing_groups * room_for(groups->wanted);
    size_t turn = most > CHOOSING ? most : CHOOSING;
    size_t shares = shares_of(partitions) > shares_of(groups) ? shares_of(partitions) : shares_of(groups);
    size_t chosen = most_of_choice(partitions), chosen_groups = most_of_choice(groups);
    const sl_piece all[PIECES] = {
        {(void **)&sweep->scans, most * sizeof(sl_scan)},
        {(void **)&sweep->nearest, choosing * sizeof(sl_scan)},
        {(void **)&sweep->nearest_groups, choosing_groups * sizeof(sl_scan)},
        {(void **)&sweep->turn, turn * sizeof(sl_scan *)},
        {(void **)&partitions->chosen, most * chosen * word},
        {(void **)&partitions->counts, most * word},
        {(void **)&groups->chosen, most * chosen_groups * word},
        {(void **)&groups->counts, most * word},
        {(void **)&sweep->lengths, turn * sizeof(size_t)},
        {(void **)&sweep->starts, (shares + 1) * word},
        {(void **)&sweep->pairs, most * (chosen > chosen_groups ? chosen : chosen_groups) * word},
        {(void **)&sweep->codes, codes},
        {(void **)&sweep->ids, found * word},
        {(void **)&sweep->scores, found * sizeof(float)},
        {(void **)&sweep->tile.bytes, SL_TILE_ROWS * 4 * steps},
        {(void **)&sweep->tile.factors, 2 * SL_TILE_ROWS * sizeof(float)},
        {(void **)&sweep->choice, sl_bands_scratch(partitions->parts) * word},
        {(void **)&sweep->floats, dim * sizeof(float)},
        {&sweep->buffer, sl_query_size(&partitions->parts->codec)},
    };
    memcpy(pieces, all, sizeof all);
}

/* What a query keeps. No searcher ranks more than it has room for. */
static size_t keep_of(const sl_query_batch *batch) {
    size_t keep = sl_rerank_count(batch->index, batch->k, batch->params);
    size_t room = sl_searcher_room(batch->searchers[0]);
    return keep < room ? keep : room;
}

/* How many queries go together. */
static size_t most_of(const sl_query_batch *batch) {
    size_t most = (batch->nq + batch->threads - 1) / batch->threads;
    const sl_index *index = batch->index;
    size_t wanted = sl_bands_partitions(&index->partitions, sl_scan_probes(index, batch->params));
    size_t groups = sl_scan_groups(index, batch->params);
    size_t room = room_for(keep_of(batch)) + 3 * wanted + (groups ? room_for(wanted) + 2 * groups : 0);
    size_t fits = MOST_FOUND / room > CHOOSING ? MOST_FOUND / room : CHOOSING;
    if (most > TOGETHER) most = TOGETHER;
    return most < fits ? most : fits;
}

static sl_choice choice_of(const sl_partitions *parts, size_t probes) {
    return (sl_choice){.parts = parts, .probes = probes, .wanted = sl_bands_partitions(parts, probes)};
}

/* All in one block, which stays with the searcher for the next batch: clearing it takes longer than a short scan. */
static sl_status sweep_init(sl_sweep *sweep, sl_query_batch *batch, size_t thread, size_t most) {
    const sl_index *index = batch->index;
    const sl_partitions *partitions = &index->partitions, *groups = &index->groups;
    const sl_dram_copy *tier = sl_dram_copy_now(index);
    const sl_codec *walked = tier ? &tier->walked : index->walk_codec;
    size_t size = 0;
    sl_piece pieces[PIECES];
    *sweep = (sl_sweep){.batch = batch,
                        .searcher = batch->searchers[thread],
                        .nodes = {&walked->rows, walked->codes, walked->dim, index->dead_count ? sl_dead(index) : NULL},
                        .centroids = {&partitions->codec.rows, SL_CODES_I8, index->codec.dim, NULL},
                        .group_centroids = {&groups->codec.rows, SL_CODES_I8, index->codec.dim, NULL},
                        .partitions = choice_of(partitions, sl_scan_probes(index, batch->params)),
                        .groups = choice_of(groups, sl_scan_groups(index, batch->params)),
                        .most = most,
                        .keep = keep_of(batch)};
    sweep->choosing = sweep->groups.wanted ? most : CHOOSING;
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
static sl_status run_thread(sl_query_batch *batch, size_t thread, size_t most, size_t *next, sl_search_stats *stats) {
    sl_sweep sweep;
    SL_TRY(sweep_init(&sweep, batch, thread, most));
    for (;;) {
        sweep.first = __atomic_fetch_add(next, most, __ATOMIC_RELAXED);
        if (sweep.first >= batch->nq || sl_progress_cancelled(&batch->progress)) break;
        sweep.count = batch->nq - sweep.first < most ? batch->nq - sweep.first : most;
        SL_TRY(sweep_queries(&sweep));
    }
    *stats = sweep.stats;
    return SL_OK;
}

sl_status sl_scan_run(sl_query_batch *batch, sl_search_stats *stats) {
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
            stats->expansions += mine.expansions;
        }
    }
    /* Once more, since the message of another thread is not seen on the one that called. */
    if (worst != SL_OK)
        return sl_fail(worst, "cannot allocate what %zu threads need to scan for %zu queries; search on fewer",
                       batch->threads, most);
    return SL_OK;
}
