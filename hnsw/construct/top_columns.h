/*
 * The top-k of stored rows (columns) for each of many other rows (queries), by products of tiles (distance/kernels.h).
 *
 * One thread packs the columns. Any number of threads then scan them for their own queries. All rows have one codec:
 * I8, or F32 scored by differences.
 */
#ifndef SL_HNSW_CONSTRUCT_TOP_COLUMNS_H
#define SL_HNSW_CONSTRUCT_TOP_COLUMNS_H

#include "hnsw/graph/index.h"

/* Queries of one scan, and columns of a tile. There is no threshold for the first tile, so all its columns get into the
 * result. A small tile keeps them few. */
enum { SL_TOP_QUERIES = 32, SL_COLUMNS_TILE = 64 };

/* Packed columns. Threads: one packs, any number read. */
typedef struct sl_columns {
    const sl_kernels *kernels;
    const sl_codec *codec; /* its base points to the rows */
    sl_allocator allocator;
    size_t room, n, tiles;
    sl_tile *tile;
    uint8_t *gathered; /* rows of a tile, one after another */
    void *block;
    size_t size;
} sl_columns;

/* One thread's queries, and the top-k columns of each. */
typedef struct sl_top_columns {
    const sl_codec *codec;
    sl_allocator allocator;
    size_t keep;
    sl_scan scans[SL_TOP_QUERIES]; /* ids are numbers of columns */
    uint8_t *codes;                /* code_step bytes per query */
    size_t code_step;
    void *buffer, *block;
    size_t size;
} sl_top_columns;

/* Bytes that sl_columns_init and sl_top_columns_init allocate. */
size_t sl_columns_bytes(const sl_codec *codec, size_t room);
size_t sl_top_columns_bytes(const sl_codec *codec, size_t keep);

/* Allocates room for `room` columns. Errors: SL_ENOMEM. */
sl_status sl_columns_init(sl_columns *columns, const sl_graph *graph, const sl_codec *codec, size_t room);
void sl_columns_free(sl_columns *columns);
/* Packs rows as columns 0 to n - 1. `rows`: their numbers; NULL: rows 0 to n - 1. */
void sl_columns_pack(sl_columns *columns, const uint32_t *rows, size_t n);
/* Packs rows as further columns, which begin a new tile. */
void sl_columns_append(sl_columns *columns, const uint32_t *rows, size_t n);

/* Allocates room for SL_TOP_QUERIES queries that keep `keep` columns each. Errors: SL_ENOMEM. */
sl_status sl_top_columns_init(sl_top_columns *top, const sl_graph *graph, const sl_codec *codec, size_t keep);
void sl_top_columns_free(sl_top_columns *top);
/* Sets query number `place`, below SL_TOP_QUERIES. Only columns that score more than `least` are found. */
void sl_top_columns_query(sl_top_columns *top, size_t place, const sl_query_code *query, float least);
/*
 * Finds the `keep` best columns of each of the first `count` queries, in no order.
 *
 * If columns tie with the last one kept, up to a quarter more are kept. Among equal scores, lower columns win. The
 * result depends on queries and columns alone.
 *
 * `tile_queries`: for each tile, one bit per query that scans it; NULL: all queries scan all tiles.
 */
void sl_top_columns_scan(sl_top_columns *top, const sl_columns *columns, size_t count, const uint32_t *tile_queries);
/* Does the same for `count` stored rows as queries, up to SL_TOP_QUERIES. `least`: for each row, the score that columns
 * must exceed; NULL: none. */
void sl_top_columns_of_rows(sl_top_columns *top, const sl_columns *columns, const uint32_t *rows, size_t count,
                            const float *least);

#endif
