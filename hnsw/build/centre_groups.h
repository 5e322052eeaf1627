/* Groups of many centres. A row is compared with one centre of each group, and then with the centres of the groups
 * nearest to it alone: so an inverted file searches its lists. Heads of many groups are in groups too.
 * A row is then compared with up to 2,048 heads, and with some 576 centres on each level. */
#ifndef SL_HNSW_BUILD_CENTRE_GROUPS_H
#define SL_HNSW_BUILD_CENTRE_GROUPS_H

#include "hnsw/build/top_columns.h"

typedef struct sl_centre_groups sl_centre_groups;
struct sl_centre_groups {
    sl_allocator allocator;
    const sl_graph *graph;
    const sl_codec *codec; /* of the rows that centres are, with their base */
    const uint32_t *rows;  /* centre -> its row; NULL: centres are rows */
    size_t centres, threads;
    size_t count;            /* groups; 0: a row is compared with all centres */
    sl_centre_groups *heads; /* one centre of each group; NULL where count is 0 */
    sl_columns columns;      /* centres, group by group; a group begins with a tile */
    uint32_t *order;         /* a column's place -> its centre */
    uint32_t *tiles;         /* group -> its first tile, and one more */
    uint32_t *group_of;      /* centre -> its group */
    uint32_t *ends;          /* group -> end of its centres in `order` */
    uint32_t *head_rows;     /* group -> row of its head */
};

/* Makes room for so many centres, whose rows the codec has. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_centre_groups_init(sl_centre_groups *groups, const sl_graph *graph, const sl_codec *codec, size_t centres,
                                size_t threads);
void sl_centre_groups_free(sl_centre_groups *groups);
/* The most bytes that groups take. Their threads have scratch while centres are grouped. */
size_t sl_centre_groups_bytes(const sl_codec *codec, size_t centres, size_t threads);
/* Groups the centres as they are. Errors: SL_ENOMEM. */
sl_status sl_centre_groups_arrange(sl_centre_groups *groups);
/* Counts the comparisons of grouping so many centres, and of finding those near to so many rows. */
double sl_centre_groups_comparisons(size_t centres, double rows);

/* One thread's scratch. */
typedef struct sl_top_centres sl_top_centres;
struct sl_top_centres {
    sl_allocator allocator;
    sl_top_columns top;
    sl_top_centres *heads;  /* NULL: a row is compared with all centres */
    uint32_t *tile_queries; /* for each tile, a bit for each row */
    size_t tiles;
};

/* Makes room for SL_TOP_QUERIES rows that keep so many centres each, of these groups or fewer. The caller frees, also
 * on failure. Errors: SL_ENOMEM. */
sl_status sl_top_centres_init(sl_top_centres *top, const sl_centre_groups *groups, size_t keep);
size_t sl_top_centres_bytes(const sl_codec *codec, size_t centres, size_t keep);
void sl_top_centres_free(sl_top_centres *top);
/* Makes a query the one at `place`, below SL_TOP_QUERIES. */
void sl_top_centres_query(sl_top_centres *top, size_t place, const sl_query_code *query);
/* Finds centres that are near the first `count` queries. finds->finds has them as sl_top_columns_scan leaves them. */
void sl_top_centres_scan(sl_top_centres *top, const sl_centre_groups *groups, size_t count);

#endif
