#include "hnsw/search/sweep.h"

#include "hnsw/graph/partition.h"
#include "hnsw/search/bands.h"

#include <math.h>
#include <string.h>

/* A query finds so many times what it keeps before the worst are dropped. */
enum { KEEP_ROOM = 3, SPARE = 16 };

size_t sl_tile_code_bytes(const sl_ground *ground) {
    return sl_round_up(4 * sl_tile_steps(ground->codes, ground->dim), SL_ROW_STEP);
}

size_t sl_scan_room(size_t keep) {
    return KEEP_ROOM * keep + SL_TILE_ROWS + SPARE;
}

size_t sl_choice_most(const sl_choice *choice) {
    return choice->wanted + choice->wanted / 4;
}

size_t sl_choice_prefixes(const sl_choice *choice) {
    return choice->parts->count << choice->parts->band_bits;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Queries
 * ------------------------------------------------------------------------------------------------------------- */

static void begin_scan(sl_scan_set *set, size_t i, const sl_query_code *query) {
    const size_t room = sl_scan_room(set->keep);
    set->scans[i] =
        (sl_scan){.query = *query, .least = -INFINITY, .ids = set->ids + i * room, .scores = set->scores + i * room};
}

void sl_scan_set_put(sl_scan_set *set, size_t i, const sl_query_code *query) {
    const sl_ground *ground = &set->ground;
    const uint8_t *from = query->code;
    size_t bytes = 4 * sl_tile_steps(ground->codes, ground->dim), half = bytes / 2, width = ground->rows->width;
    uint8_t *to = set->codes + i * sl_tile_code_bytes(ground);
    memset(to, 0, sl_tile_code_bytes(ground));
    if (ground->codes == SL_CODES_I4) {
        memcpy(to, from, half);
        memcpy(to + half, from + width, half);
    } else {
        memcpy(to, from, bytes < width ? bytes : width);
    }
    begin_scan(set, i, query);
    set->scans[i].query.code = to;
}

void sl_scan_set_lend(sl_scan_set *set, size_t i, const sl_scan *query) {
    begin_scan(set, i, &query->query);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Tiles
 * ------------------------------------------------------------------------------------------------------------- */

/* Makes the factors of deleted rows NaN: scores that are no numbers are not taken. */
static void leave_out(sl_tile *tile, const uint64_t *dead) {
    for (size_t i = 0; i < tile->rows; i++)
        if (sl_is_marked(dead, tile->first + i)) tile->factors[i] = NAN;
}

/* Names what is read once this tile is scanned: the rows behind it, or the first rows of the next range. */
static void look_ahead(sl_tile *tile, const sl_code_rows *rows, sl_range behind, sl_range next) {
    if (behind.first == behind.end) behind = next;
    size_t n = behind.end - behind.first < SL_TILE_ROWS ? behind.end - behind.first : SL_TILE_ROWS;
    tile->ahead = n ? rows->base + behind.first * rows->pitch : tile->bytes;
    tile->ahead_end = n ? tile->ahead + n * rows->pitch : tile->bytes;
}

/* Returns how many rows of a tile a query looks at. The query looks at `length` rows of a range, `done` of which lie
 * before the tile. */
static uint32_t rows_of_tile(size_t length, size_t done, size_t rows) {
    size_t left = length > done ? length - done : 0;
    return (uint32_t)(left < rows ? left : rows);
}

/* Scans a tile for the first n queries in turn, none of which looks at more of it than the one before. Queries that
 * look at as many sixteens of rows go together: the widest registers hold sixteen. */
static void scan_tile(sl_sweep *sweep, size_t done, size_t rows, size_t n) {
    sl_tile *tile = &sweep->tile;
    for (size_t from = 0, to = 0; to < n; from = to) {
        tile->rows = rows_of_tile(sweep->lengths[from], done, rows);
        if (!tile->rows) return;
        for (; to < n; to++) {
            uint32_t own = rows_of_tile(sweep->lengths[to], done, rows);
            if ((own + 15) / 16 != (tile->rows + 15) / 16) break;
            sweep->turn[to]->rows = own;
            sweep->evaluations += own;
        }
        sweep->kernels->tile.scan(tile, sweep->turn + from, to - from);
    }
}

/* Scans rows from `first` on for the first n queries in turn. `next` is the range that is scanned after them; it may be
 * empty. */
static void scan_rows(sl_sweep *sweep, const sl_scan_set *set, size_t first, sl_range next, size_t n) {
    const sl_tile_kernels *kernels = &sweep->kernels->tile;
    const sl_ground *ground = &set->ground;
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
            if (sweep->turn[i]->count > KEEP_ROOM * set->keep) kernels->best(sweep->turn[i], (uint32_t)set->keep, 0);
    }
}

void sl_sweep_range(sl_sweep *sweep, sl_scan_set *set, size_t count, sl_range range) {
    for (size_t i = 0; i < count; i++) {
        sweep->turn[i] = &set->scans[i];
        sweep->lengths[i] = range.end - range.first;
    }
    scan_rows(sweep, set, range.first, (sl_range){0}, count);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Parts that queries chose
 * ------------------------------------------------------------------------------------------------------------- */

void sl_sweep_choose(sl_sweep *sweep, sl_choice *choice, size_t i, sl_scan *found) {
    uint32_t *chosen = choice->chosen + i * sl_choice_most(choice);
    sl_bands_choose(sweep->kernels, choice->parts, choice->probes, found, sweep->words);
    memcpy(chosen, found->ids, found->count * sizeof *chosen);
    choice->counts[i] = found->count;
}

/* Sorts the first n queries by the band prefixes that they chose in these places. */
static void pair_up(sl_sweep *sweep, const sl_choice *choice, size_t n, sl_ranks places) {
    size_t count = sl_choice_prefixes(choice), most = sl_choice_most(choice);
    memset(sweep->starts, 0, (count + 1) * sizeof *sweep->starts);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = places.from; j < places.to && j < choice->counts[i]; j++)
            sweep->starts[choice->chosen[i * most + j]]++;
    uint32_t sum = 0;
    for (size_t prefix = 0; prefix <= count; prefix++) {
        sum += sweep->starts[prefix];
        sweep->starts[prefix] = sum;
    }
    for (size_t i = n; i-- > 0;)
        for (uint32_t j = places.from; j < places.to && j < choice->counts[i]; j++)
            sweep->pairs[--sweep->starts[choice->chosen[i * most + j]]] = (uint32_t)i;
}

/* The first band prefix from this one on that a query chose; the number of all where there is none. */
static size_t chosen_from(const sl_sweep *sweep, size_t count, size_t prefix) {
    while (prefix < count && sweep->starts[prefix] == sweep->starts[prefix + 1])
        prefix++;
    return prefix;
}

/* Makes it the turn of the queries that chose one of these band prefixes of a part, which has so many rows. Returns
 * how many queries they are. Each query comes once, by its largest prefix. Groups of a damaged file may hold the same
 * partitions, and a query has room for one tile's rows more than it keeps. */
static size_t take_turns(sl_sweep *sweep, const sl_scan_set *set, const sl_choice *choice, sl_range prefixes,
                         size_t rows) {
    size_t queries = 0;
    for (size_t at = sweep->starts[prefixes.first]; at < sweep->starts[prefixes.end]; at++)
        set->scans[sweep->pairs[at]].rows = 0;
    for (size_t prefix = prefixes.first; prefix < prefixes.end; prefix++)
        for (size_t at = sweep->starts[prefix]; at < sweep->starts[prefix + 1]; at++) {
            sl_scan *scan = &set->scans[sweep->pairs[at]];
            if (scan->rows) continue;
            scan->rows = 1; /* until its tile is scanned */
            sweep->turn[queries] = scan;
            sweep->lengths[queries++] = sl_partition_prefix_rows(choice->parts, prefix, rows);
        }
    return queries;
}

void sl_sweep_chosen(sl_sweep *sweep, sl_scan_set *set, size_t count, size_t n, const sl_choice *choice,
                     sl_ranks places) {
    const sl_partitions *parts = choice->parts;
    const size_t all = sl_choice_prefixes(choice);
    pair_up(sweep, choice, count, places);
    for (size_t prefix = chosen_from(sweep, all, 0), behind; prefix < all; prefix = behind) {
        size_t p = prefix >> parts->band_bits, end = (p + 1) << parts->band_bits;
        behind = chosen_from(sweep, all, end);
        sl_range next = behind < all ? sl_partition_prefix(parts, behind, n) : (sl_range){0};
        sl_range range = sl_partition_nodes(parts, p, n);
        size_t queries = take_turns(sweep, set, choice, (sl_range){prefix, end}, range.end - range.first);
        scan_rows(sweep, set, range.first, next, queries);
    }
}
