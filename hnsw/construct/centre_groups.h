/*
 * Groups of many centres, so that a row is compared with some centres, not all. An inverted file searches its lists in
 * the same way.
 *
 * A row is first compared with the head of each group, then with the centres of the nearest groups. If there are many
 * heads, they're grouped in turn. So a row is compared with up to 2,048 heads, and with some 576 centres on each level.
 */
#ifndef SL_HNSW_CONSTRUCT_CENTRE_GROUPS_H
#define SL_HNSW_CONSTRUCT_CENTRE_GROUPS_H

#include "hnsw/construct/top_columns.h"

typedef struct sl_centre_groups sl_centre_groups;
struct sl_centre_groups {
    sl_allocator allocator;
    const sl_graph *graph;
    const sl_codec *codec; /* codec of the centres' rows; its base points to them */
    const uint32_t *rows;  /* centre -> its row; NULL: centre i is row i */
    size_t centres, threads;
    size_t count;            /* groups; 0: a row is compared with all centres */
    sl_centre_groups *heads; /* the heads, one centre of each group, grouped in turn; NULL if count is 0 */
    sl_columns columns;      /* centres, group by group; each group begins a tile */
    uint32_t *order;         /* place of a column -> its centre */
    uint32_t *tiles;         /* group -> its first tile; one more entry for the end */
    uint32_t *group_of;      /* centre -> its group */
    uint32_t *ends;          /* group -> end of its centres in `order` */
    uint32_t *head_rows;     /* group -> row of its head */
};

/* Allocates room for groups of `centres` centres, whose rows lie at the codec's base. The caller frees, also on
 * failure. Errors: SL_ENOMEM. */
sl_status sl_centre_groups_init(sl_centre_groups *groups, const sl_graph *graph, const sl_codec *codec, size_t centres,
                                size_t threads);
void sl_centre_groups_free(sl_centre_groups *groups);
/* The most bytes that groups take, including the threads' scratch while they group the centres. */
size_t sl_centre_groups_bytes(const sl_codec *codec, size_t centres, size_t threads);
/* Groups the centres by the rows that they have now. Errors: SL_ENOMEM. */
sl_status sl_centre_groups_arrange(sl_centre_groups *groups);
/* Number of comparisons that group the centres and then find the nearest centres of `rows` rows. */
double sl_centre_groups_comparisons(size_t centres, double rows);

/* One thread's queries, and the nearest centres of each. */
typedef struct sl_top_centres sl_top_centres;
struct sl_top_centres {
    sl_allocator allocator;
    sl_top_columns best;
    sl_top_centres *heads;  /* NULL: a row is compared with all centres */
    uint32_t *tile_queries; /* for each tile, one bit per query that scans it */
    size_t tiles;
};

/* Allocates room for SL_TOP_QUERIES queries that keep `keep` centres each. The scratch serves these groups, and any
 * groups of no more centres. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_top_centres_init(sl_top_centres *top, const sl_centre_groups *groups, size_t keep);
size_t sl_top_centres_bytes(const sl_codec *codec, size_t centres, size_t keep);
void sl_top_centres_free(sl_top_centres *top);
/* Sets query number `place`, below SL_TOP_QUERIES. */
void sl_top_centres_query(sl_top_centres *top, size_t place, const sl_query_code *query);
/* Finds the nearest centres of each of the first `count` queries, among the centres of the groups nearest to it. They
 * come in top->best, as sl_top_columns_scan leaves columns there, but ids are numbers of centres. */
void sl_top_centres_scan(sl_top_centres *top, const sl_centre_groups *groups, size_t count);

#endif
