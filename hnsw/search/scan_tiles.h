/*
 * Scores many queries against the same rows. A kernel reads a tile of rows once for all queries that look at it.
 *
 * A tile scan takes rows, queries in a tile's order, and the partitions they chose. It knows no searcher and no batch
 * call.
 */
#ifndef SL_HNSW_SEARCH_SCAN_TILES_H
#define SL_HNSW_SEARCH_SCAN_TILES_H

#include "hnsw/graph/index.h"

/* Consecutive code rows. */
typedef struct sl_scan_rows {
    const sl_code_rows *rows;
    sl_codes codes;
    size_t dim;
    const uint64_t *tombstones; /* a bit a deleted row; NULL: none */
} sl_scan_rows;

/* Queries over some rows, with their hits so far. */
typedef struct sl_query_set {
    sl_scan_rows target;
    size_t keep;    /* hits that a query keeps */
    sl_scan *scans; /* one a query */
    uint8_t *codes; /* sl_tile_code_bytes a query; NULL: another set holds the codes */
    uint32_t *ids;  /* sl_scan_hit_room(keep) places a query; so has `scores` */
    float *scores;
} sl_query_set;

/* Which partitions, or groups of partitions, each query chose. */
typedef struct sl_probe_choice {
    const sl_partitions *parts;
    size_t probes;    /* of a query */
    size_t wanted;    /* parts a query keeps to choose from: sl_bands_candidates; 0: none are chosen */
    uint32_t *chosen; /* a query's band prefixes, the nearest part's first; sl_probe_choice_room entries a query */
    uint32_t *counts; /* band prefixes that each query chose */
} sl_probe_choice;

/* One thread's scratch. */
typedef struct sl_tile_scan {
    const sl_kernels *kernels;
    sl_tile tile;
    sl_scan **queries;  /* queries that look at one part, those of most rows first */
    size_t *row_counts; /* the part's rows that each of them looks at */
    uint32_t *starts;   /* band prefix -> its first place in `pairs`, and one more */
    uint32_t *pairs;    /* numbers of queries, by band prefix, and so by part */
    uint32_t *words;    /* scratch of sl_bands_choose */
    uint64_t evaluations;
} sl_tile_scan;

/* Returns the bytes of a query's code in a tile's order. */
size_t sl_tile_code_bytes(const sl_scan_rows *target);

/* Returns the places for hits of a query that keeps `keep`. */
size_t sl_scan_hit_room(size_t keep);

/* Returns how many band prefixes sl_bands_choose may leave a query. */
size_t sl_probe_choice_room(const sl_probe_choice *choice);

/* Returns how many band prefixes all parts have. */
size_t sl_probe_choice_prefixes(const sl_probe_choice *choice);

/* Puts a query at place i of the set, without hits.
 * Parameters: query: its code over the set's rows. */
void sl_query_set_put(sl_query_set *set, size_t i, const sl_query_code *query);

/* Puts another set's query at place i of this set, without hits. The rows of both have the same codes. */
void sl_query_set_share(sl_query_set *set, size_t i, const sl_scan *query);

/* Scans a range of rows for the first `count` queries of a set. */
void sl_tile_scan_range(sl_tile_scan *tiles, sl_query_set *set, size_t count, sl_range range);

/* Chooses query i's band prefixes from its hits among the parts' centroids. */
void sl_tile_scan_choose(sl_tile_scan *tiles, sl_probe_choice *choice, size_t i, sl_scan *found);

/* A range of places in the queries' lists of band prefixes. */
typedef struct sl_choice_span {
    uint32_t from, to;
} sl_choice_span;

/* Scans the chosen band prefixes at these places for the first `count` queries of a set.
 * Parameters: n: number of rows. */
void sl_tile_scan_chosen(sl_tile_scan *tiles, sl_query_set *set, size_t count, size_t n, const sl_probe_choice *choice,
                         sl_choice_span places);

#endif
