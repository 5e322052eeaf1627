#include "hnsw/search/scan_tiles.h"

#include "hnsw/graph/partition.h"
#include "hnsw/search/bands.h"

#include <math.h>
#include <string.h>

/* A query collects so many times the hits it keeps before it drops the worst. */
enum { KEEP_ROOM = 3, SPARE = 16 };

size_t sl_tile_code_bytes(const sl_scan_rows *target) {
    return sl_round_up(4 * sl_tile_steps(target->codes, target->dim), SL_ROW_STEP);
}

size_t sl_scan_hit_room(size_t keep) {
    return KEEP_ROOM * keep + SL_TILE_ROWS + SPARE;
}

size_t sl_probe_choice_room(const sl_probe_choice *choice) {
    return choice->wanted + choice->wanted / 4;
}

size_t sl_probe_choice_prefixes(const sl_probe_choice *choice) {
    return choice->parts->count << choice->parts->band_bits;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Queries
 * ------------------------------------------------------------------------------------------------------------- */

static void reset_query(sl_query_set *set, size_t i, const sl_query_code *query) {
    const size_t room = sl_scan_hit_room(set->keep);
    set->scans[i] =
        (sl_scan){.query = *query, .least = -INFINITY, .ids = set->ids + i * room, .scores = set->scores + i * room};
}

void sl_query_set_put(sl_query_set *set, size_t i, const sl_query_code *query) {
    const sl_scan_rows *target = &set->target;
    const uint8_t *from = query->code;
    size_t bytes = 4 * sl_tile_steps(target->codes, target->dim), half = bytes / 2, width = target->rows->width;
    uint8_t *to = set->codes + i * sl_tile_code_bytes(target);
    memset(to, 0, sl_tile_code_bytes(target));
    if (target->codes == SL_CODES_I4) {
        memcpy(to, from, half);
        memcpy(to + half, from + width, half);
    } else {
        memcpy(to, from, bytes < width ? bytes : width);
    }
    reset_query(set, i, query);
    set->scans[i].query.code = to;
}

void sl_query_set_share(sl_query_set *set, size_t i, const sl_scan *query) {
    reset_query(set, i, &query->query);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Tiles
 * ------------------------------------------------------------------------------------------------------------- */

/* Sets the factors of deleted rows to NaN: no scan takes a NaN score. */
static void mark_deleted_rows(sl_tile *tile, const sl_graph *graph) {
    for (size_t i = 0; i < tile->rows; i++)
        if (sl_is_deleted(graph, tile->first + i)) tile->factors[i] = NAN;
}

/* Sets the rows to prefetch while this tile is scanned: those behind it, or the first rows of the next range. */
static void set_next_rows(sl_tile *tile, const sl_code_rows *rows, sl_range behind, sl_range next) {
    if (behind.first == behind.end) behind = next;
    size_t n = behind.end - behind.first < SL_TILE_ROWS ? behind.end - behind.first : SL_TILE_ROWS;
    tile->ahead = n ? rows->base + behind.first * rows->pitch : tile->bytes;
    tile->ahead_end = n ? tile->ahead + n * rows->pitch : tile->bytes;
}

/* Returns how many rows of a tile a query scans. The query scans `length` rows of the range, of which `done` lie before
 * the tile. */
static uint32_t rows_of_tile(size_t length, size_t done, size_t rows) {
    size_t left = length > done ? length - done : 0;
    return (uint32_t)(left < rows ? left : rows);
}

/* Scans a tile for n queries, those of most rows first. Queries of as many sixteens of rows go together: the widest
 * registers hold sixteen. */
static void scan_tile(sl_tile_scan *tiles, size_t done, size_t rows, size_t n) {
    sl_tile *tile = &tiles->tile;
    for (size_t from = 0, to = 0; to < n; from = to) {
        tile->rows = rows_of_tile(tiles->row_counts[from], done, rows);
        if (!tile->rows) return;
        for (; to < n; to++) {
            uint32_t own = rows_of_tile(tiles->row_counts[to], done, rows);
            if ((own + 15) / 16 != (tile->rows + 15) / 16) break;
            tiles->queries[to]->rows = own;
            tiles->evaluations += own;
        }
        tiles->kernels->tile.scan(tile, tiles->queries + from, to - from);
    }
}

/* Scans rows from `first` on for n queries.
 * Parameters: next: the range scanned after them; may be empty. */
static void scan_rows(sl_tile_scan *tiles, const sl_query_set *set, size_t first, sl_range next, size_t n) {
    const sl_tile_kernels *kernels = &tiles->kernels->tile;
    const sl_scan_rows *target = &set->target;
    sl_tile *tile = &tiles->tile;
    tile->codes = target->codes;
    tile->steps = sl_tile_steps(target->codes, target->dim);
    size_t all = n ? tiles->row_counts[0] : 0;
    for (size_t done = 0, rows; done < all; done += rows) {
        rows = all - done < SL_TILE_ROWS ? all - done : SL_TILE_ROWS;
        kernels->pack(tile, target->rows, (uint32_t)(first + done), rows);
        if (target->deleted_in) mark_deleted_rows(tile, target->deleted_in);
        set_next_rows(tile, target->rows, (sl_range){first + done + rows, first + all}, next);
        scan_tile(tiles, done, rows, n);
        for (size_t i = 0; i < n; i++)
            if (tiles->queries[i]->count > KEEP_ROOM * set->keep)
                kernels->best(tiles->queries[i], (uint32_t)set->keep, 0);
    }
}

void sl_tile_scan_range(sl_tile_scan *tiles, sl_query_set *set, size_t count, sl_range range) {
    for (size_t i = 0; i < count; i++) {
        tiles->queries[i] = &set->scans[i];
        tiles->row_counts[i] = range.end - range.first;
    }
    scan_rows(tiles, set, range.first, (sl_range){0}, count);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Chosen parts
 * ------------------------------------------------------------------------------------------------------------- */

void sl_tile_scan_choose(sl_tile_scan *tiles, sl_probe_choice *choice, size_t i, sl_scan *found) {
    uint32_t *chosen = choice->chosen + i * sl_probe_choice_room(choice);
    sl_bands_choose(tiles->kernels, choice->parts, choice->probes, found, tiles->words);
    memcpy(chosen, found->ids, found->count * sizeof *chosen);
    choice->counts[i] = found->count;
}

/* Sorts n queries by the band prefixes that they chose at these places. */
static void sort_by_prefix(sl_tile_scan *tiles, const sl_probe_choice *choice, size_t n, sl_choice_span places) {
    size_t count = sl_probe_choice_prefixes(choice), most = sl_probe_choice_room(choice);
    memset(tiles->starts, 0, (count + 1) * sizeof *tiles->starts);
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = places.from; j < places.to && j < choice->counts[i]; j++)
            tiles->starts[choice->chosen[i * most + j]]++;
    uint32_t sum = 0;
    for (size_t prefix = 0; prefix <= count; prefix++) {
        sum += tiles->starts[prefix];
        tiles->starts[prefix] = sum;
    }
    for (size_t i = n; i-- > 0;)
        for (uint32_t j = places.from; j < places.to && j < choice->counts[i]; j++)
            tiles->pairs[--tiles->starts[choice->chosen[i * most + j]]] = (uint32_t)i;
}

/* Returns the next chosen band prefix from this one on, or the number of all prefixes. */
static size_t next_chosen(const sl_tile_scan *tiles, size_t count, size_t prefix) {
    while (prefix < count && tiles->starts[prefix] == tiles->starts[prefix + 1])
        prefix++;
    return prefix;
}

/* Collects the queries that chose one of a part's band prefixes, with the rows that they scan. Returns their number.
 * Each query comes once, by its longest prefix: groups of a damaged file may hold the same partition twice, and a query
 * has room for one tile's hits more than it keeps. */
static size_t collect_queries(sl_tile_scan *tiles, const sl_query_set *set, const sl_probe_choice *choice,
                              sl_range prefixes, size_t rows) {
    size_t queries = 0;
    for (size_t at = tiles->starts[prefixes.first]; at < tiles->starts[prefixes.end]; at++)
        set->scans[tiles->pairs[at]].rows = 0;
    for (size_t prefix = prefixes.first; prefix < prefixes.end; prefix++)
        for (size_t at = tiles->starts[prefix]; at < tiles->starts[prefix + 1]; at++) {
            sl_scan *scan = &set->scans[tiles->pairs[at]];
            if (scan->rows) continue;
            scan->rows = 1; /* until its tile is scanned */
            tiles->queries[queries] = scan;
            tiles->row_counts[queries++] = sl_partition_prefix_rows(choice->parts, prefix, rows);
        }
    return queries;
}

void sl_tile_scan_chosen(sl_tile_scan *tiles, sl_query_set *set, size_t count, size_t n, const sl_probe_choice *choice,
                         sl_choice_span places) {
    const sl_partitions *parts = choice->parts;
    const size_t all = sl_probe_choice_prefixes(choice);
    sort_by_prefix(tiles, choice, count, places);
    for (size_t prefix = next_chosen(tiles, all, 0), behind; prefix < all; prefix = behind) {
        size_t p = prefix >> parts->band_bits, end = (p + 1) << parts->band_bits;
        behind = next_chosen(tiles, all, end);
        sl_range next = behind < all ? sl_partition_prefix(parts, behind, n) : (sl_range){0};
        sl_range range = sl_partition_nodes(parts, p, n);
        size_t queries = collect_queries(tiles, set, choice, (sl_range){prefix, end}, range.end - range.first);
        scan_rows(tiles, set, range.first, next, queries);
    }
}
