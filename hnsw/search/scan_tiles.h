/*
 * Many queries over the same rows. A part of the rows is read once for all queries that look at it, as products of a
 * tile of rows with these queries.
 * A tiles is given rows, queries in a tile's order, and the choices of the queries. It calls no searcher and knows no
 * batch call.
 */
#ifndef SL_HNSW_SEARCH_SCAN_TILES_H
#define SL_HNSW_SEARCH_SCAN_TILES_H

#include "hnsw/graph/index.h"

/* Code rows that lie one behind the other. */
typedef struct sl_scan_rows {
    const sl_code_rows *rows;
    sl_codes codes;
    size_t dim;
    const uint64_t *dead; /* a bit a row that is not to be found; NULL: there are none */
} sl_scan_rows;

/* Queries over a ground, and what each of them has found. */
typedef struct sl_query_set {
    sl_scan_rows ground;
    size_t keep;    /* rows that a query keeps */
    sl_scan *scans; /* one a query */
    uint8_t *codes; /* sl_tile_code_bytes a query; NULL where the scans use the codes of another set */
    uint32_t *ids;  /* sl_scan_hit_room(keep) places a query; so has `scores` */
    float *scores;
} sl_query_set;

/* Choices of queries among some parts. The parts are partitions, or groups of partitions. */
typedef struct sl_probe_choice {
    const sl_partitions *parts;
    size_t probes; /* of a query */
    size_t wanted; /* parts that a query keeps to choose from: sl_bands_candidates; 0: nothing is chosen */
    uint32_t
        *chosen; /* a query's band prefixes, that of the nearest part first; sl_probe_choice_room entries a query */
    uint32_t *counts; /* how many band prefixes a query chose */
} sl_probe_choice;

/* One thread's scratch. */
typedef struct sl_tile_scan {
    const sl_kernels *kernels;
    sl_tile tile;
    sl_scan **queries;  /* queries that look at one part, those that look at more of it first */
    size_t *row_counts; /* how many of the part's rows each of them looks at */
    uint32_t *starts;   /* band prefix -> its first place in `pairs`, and one more */
    uint32_t *pairs;    /* numbers of queries, by band prefix, and so by part */
    uint32_t *words;    /* scratch of sl_bands_choose */
    uint64_t evaluations;
} sl_tile_scan;

/* Bytes of a query's code in a tile's order. */
size_t sl_tile_code_bytes(const sl_scan_rows *ground);

/* Places for what a query finds that keeps so much. */
size_t sl_scan_hit_room(size_t keep);

/* Band prefixes that sl_bands_choose may leave a query. */
size_t sl_probe_choice_room(const sl_probe_choice *choice);

/* Numbers of all band prefixes of the parts. */
size_t sl_probe_choice_prefixes(const sl_probe_choice *choice);

/* Puts a query, by its code over the set's ground, at place i of the set. It has found nothing. */
void sl_query_set_put(sl_query_set *set, size_t i, const sl_query_code *query);

/* Puts a query of another set at place i of this one, whose ground has the same codes. It has found nothing. */
void sl_query_set_share(sl_query_set *set, size_t i, const sl_scan *query);

/* Lets the first `count` queries of a set look at all rows of a range. */
void sl_tile_scan_range(sl_tile_scan *tiles, sl_query_set *set, size_t count, sl_range range);

/* Makes band prefixes of the best that a query has found its choice, as query i. */
void sl_tile_scan_choose(sl_tile_scan *tiles, sl_probe_choice *choice, size_t i, sl_scan *found);

/* Places in the lists of band prefixes that queries chose, from `from` up to below `to`. */
typedef struct sl_choice_span {
    uint32_t from, to;
} sl_choice_span;

/* Lets the first `count` queries of a set look at what they chose, of the places given. The ground has n rows. */
void sl_tile_scan_chosen(sl_tile_scan *tiles, sl_query_set *set, size_t count, size_t n, const sl_probe_choice *choice,
                         sl_choice_span places);

#endif
