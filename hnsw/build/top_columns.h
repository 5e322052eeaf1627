/*
 * The best of many rows for each of many others, by products of tiles (distance/kernels.h).
 * Columns are packed once. Any number of threads then ask for the columns nearest to their own rows. All rows are of
 * one codec, of codes I8, or F32 with differences.
 */
#ifndef SL_HNSW_BUILD_TOP_COLUMNS_H
#define SL_HNSW_BUILD_TOP_COLUMNS_H

#include "hnsw/graph/index.h"

/* Rows that go together, and columns of a tile. Every column of the first tile is found, since nothing is better: a
 * small tile keeps them few. */
enum { SL_TOP_QUERIES = 32, SL_COLUMNS_TILE = 64 };

/* Packed columns. Threads: one packs, any number read. */
typedef struct sl_columns {
    const sl_kernels *kernels;
    const sl_codec *codec; /* its base has the rows */
    sl_allocator allocator;
    size_t room, n, tiles;
    sl_tile *tile;
    uint8_t *gathered; /* rows of a tile, one behind the other */
    void *block;
    size_t size;
} sl_columns;

/* One thread's rows, and the columns that each has found. */
typedef struct sl_top_columns {
    const sl_codec *codec;
    sl_allocator allocator;
    size_t keep;
    sl_scan scans[SL_TOP_QUERIES]; /* ids are places of columns */
    uint8_t *codes;                /* code_step bytes a query */
    size_t code_step;
    void *buffer, *block;
    size_t size;
} sl_top_columns;

/* Bytes that sl_columns_init and sl_top_columns_init allocate. */
size_t sl_columns_bytes(const sl_codec *codec, size_t room);
size_t sl_top_columns_bytes(const sl_codec *codec, size_t keep);

/* Makes room for so many columns. Errors: SL_ENOMEM. */
sl_status sl_columns_init(sl_columns *columns, const sl_graph *graph, const sl_codec *codec, size_t room);
void sl_columns_free(sl_columns *columns);
/* Packs rows as columns 0 to n - 1. `rows`: their numbers; NULL: the first n. */
void sl_columns_pack(sl_columns *columns, const uint32_t *rows, size_t n);
/* Packs rows as further columns, from a new tile on. */
void sl_columns_append(sl_columns *columns, const uint32_t *rows, size_t n);

/* Makes room for SL_TOP_QUERIES rows that keep so many columns each. Errors: SL_ENOMEM. */
sl_status sl_top_columns_init(sl_top_columns *top, const sl_graph *graph, const sl_codec *codec, size_t keep);
void sl_top_columns_free(sl_top_columns *top);
/* Makes a query the one at `place`, below SL_TOP_QUERIES. Columns that score no more than `least` are not found. */
void sl_top_columns_query(sl_top_columns *top, size_t place, const sl_query_code *query, float least);
/* Finds the `keep` best columns for each of the first `count` queries, in no order. Columns that score as the last of
 * them may come too, up to a quarter more; the first of equals come first. The result depends on queries and columns
 * alone. `asked`: for each tile a bit for each query that looks at its columns; NULL: all look at all. */
void sl_top_columns_scan(sl_top_columns *top, const sl_columns *columns, size_t count, const uint32_t *tile_queries);
/* Finds the `keep` best columns for each of `count` rows, up to SL_TOP_QUERIES, in the
 * same way. `least`: scores that those of each row must exceed; NULL: any. */
void sl_top_columns_of_rows(sl_top_columns *top, const sl_columns *columns, const uint32_t *rows, size_t count,
                            const float *least);

#endif
