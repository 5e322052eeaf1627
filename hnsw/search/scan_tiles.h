/*
 * Scores many queries against the same rows. A kernel reads a tile of rows once for all queries that scan it.
 *
 * A tile scan takes rows, queries encoded in a tile's order, and the partitions that they chose. It knows no searcher
 * and no batch call.
 */
#ifndef SL_HNSW_SEARCH_SCAN_TILES_H
#define SL_HNSW_SEARCH_SCAN_TILES_H

#include "hnsw/graph/index.h"

/* Consecutive code rows. */
typedef struct sl_scan_rows {
    const sl_code_rows *rows;
    sl_codes codes;
    size_t dim;
    const sl_graph *deleted_in; /* the graph that knows which rows are deleted; NULL: none is */
} sl_scan_rows;

/* Queries over the same rows, with their hits so far. */
typedef struct sl_query_set {
    sl_scan_rows target;
    size_t keep;    /* hits that each query keeps */
    sl_scan *scans; /* one per query */
    uint8_t *codes; /* sl_tile_code_bytes per query; NULL: another set holds the codes */
    uint32_t *ids;  /* sl_scan_hit_room(keep) places per query; `scores` has as many */
    float *scores;
} sl_query_set;

/* The parts (partitions, or groups of partitions) that each query chose. */
typedef struct sl_probe_choice {
    const sl_partitions *parts;
    size_t probes;    /* parts that each query scans */
    size_t wanted;    /* nearest parts that each query chooses from: sl_bands_candidates; 0: queries choose none */
    uint32_t *chosen; /* sl_probe_choice_room band prefixes per query, the nearest part's first */
    uint32_t *counts; /* number of band prefixes that each query chose */
} sl_probe_choice;

/* One thread's scratch. */
typedef struct sl_tile_scan {
    const sl_kernels *kernels;
    sl_tile tile;
    sl_scan **queries;  /* queries that scan the current part; those that scan most of its rows come first */
    size_t *row_counts; /* for each of them, how many of the part's rows it scans */
    uint32_t *starts;   /* for each band prefix, its first place in `pairs`; one more for the end */
    uint32_t *pairs;    /* query numbers sorted by band prefix, and therefore by part */
    uint32_t *words;    /* scratch of sl_bands_choose */
    uint64_t evaluations;
} sl_tile_scan;

/* Returns the bytes of a query's code in a tile's order. */
size_t sl_tile_code_bytes(const sl_scan_rows *target);

/* Returns how many hits a query needs room for if it keeps `keep`. */
size_t sl_scan_hit_room(size_t keep);

/* Returns the most band prefixes that sl_bands_choose leaves for one query. */
size_t sl_probe_choice_room(const sl_probe_choice *choice);

/* Returns the number of band prefixes of all parts together. */
size_t sl_probe_choice_prefixes(const sl_probe_choice *choice);

/* Makes a query number i of the set, without hits.
 * Parameters: query: its code over the set's rows. */
void sl_query_set_put(sl_query_set *set, size_t i, const sl_query_code *query);

/* Makes another set's query number i of this set, without hits. The rows of both sets have the same codes. */
void sl_query_set_share(sl_query_set *set, size_t i, const sl_scan *query);

/* Scans a range of rows for the first `count` queries of a set. */
void sl_tile_scan_range(sl_tile_scan *tiles, sl_query_set *set, size_t count, sl_range range);

/* Chooses the band prefixes of query i.
 * Parameters: found: its hits among the parts' centroids; the choice overwrites them. */
void sl_tile_scan_choose(sl_tile_scan *tiles, sl_probe_choice *choice, size_t i, sl_scan *found);

/* The range [from, to) of places in each query's list of band prefixes. */
typedef struct sl_choice_span {
    uint32_t from, to;
} sl_choice_span;

/* Scans the band prefixes at these places of the first `count` queries' lists, for these queries.
 * Parameters: n: number of rows. */
void sl_tile_scan_chosen(sl_tile_scan *tiles, sl_query_set *set, size_t count, size_t n, const sl_probe_choice *choice,
                         sl_choice_span places);

#endif
