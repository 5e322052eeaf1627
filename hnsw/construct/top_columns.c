#include "hnsw/construct/top_columns.h"

#include "distance/codec/encode.h"

#include <string.h>

/* A query keeps KEEP_ROOM times `keep` results, and at least KEEP_LEAST, before the worst are dropped. SPARE places are
 * for the kernels. */
enum { KEEP_ROOM = 2, KEEP_LEAST = 48, SPARE = 16 };
_Static_assert(SL_TOP_QUERIES == 32, "a bit of a word for each row");
_Static_assert(SL_COLUMNS_TILE <= SL_TILE_ROWS && SL_COLUMNS_TILE % 16 == 0, "a tile of whole registers");

static size_t tile_bytes(const sl_codec *codec) {
    return sl_round_up(SL_COLUMNS_TILE * 4 * sl_tile_steps(codec->codes, codec->dim), SL_CACHE_LINE);
}

size_t sl_columns_bytes(const sl_codec *codec, size_t room) {
    const size_t tiles = (room + SL_COLUMNS_TILE - 1) / SL_COLUMNS_TILE, terms = SL_COLUMNS_TILE * sizeof(float);
    return sl_round_up(sl_codec_rows_size(codec, SL_COLUMNS_TILE), SL_CACHE_LINE) +
           tiles * (tile_bytes(codec) + 2 * terms + sizeof(sl_tile));
}

sl_status sl_columns_init(sl_columns *columns, const sl_graph *graph, const sl_codec *codec, size_t room) {
    const size_t tiles = (room + SL_COLUMNS_TILE - 1) / SL_COLUMNS_TILE, bytes = tile_bytes(codec),
                 terms = SL_COLUMNS_TILE * sizeof(float);
    const size_t gathered = sl_codec_rows_size(codec, SL_COLUMNS_TILE);
    *columns = (sl_columns){.kernels = graph->kernels,
                            .codec = codec,
                            .allocator = graph->allocator,
                            .room = room,
                            .size = sl_columns_bytes(codec, room)};
    SL_TRY(sl_mem_alloc(&columns->allocator, columns->size, &columns->block));
    uint8_t *at = columns->block;
    columns->gathered = at;
    at += sl_round_up(gathered, SL_CACHE_LINE);
    columns->tile = (sl_tile *)(void *)(at + tiles * (bytes + 2 * terms));
    for (size_t t = 0; t < tiles; t++, at += bytes + 2 * terms) {
        sl_tile *tile = &columns->tile[t];
        tile->codes = codec->codes;
        tile->steps = sl_tile_steps(codec->codes, codec->dim);
        tile->bytes = at;
        tile->factors = (float *)(void *)(at + bytes);
        tile->biases = tile->factors + SL_COLUMNS_TILE;
        tile->ahead = tile->ahead_end = tile->bytes;
    }
    return SL_OK;
}

void sl_columns_free(sl_columns *columns) {
    sl_mem_free(&columns->allocator, columns->block, columns->size);
    columns->block = NULL;
}

void sl_columns_append(sl_columns *columns, const uint32_t *rows, size_t n) {
    const sl_code_rows *from = &columns->codec->rows;
    sl_code_rows gathered = *from;
    gathered.base = columns->gathered;
    for (size_t first = 0; first < n; first += SL_COLUMNS_TILE, columns->tiles++) {
        size_t count = n - first < SL_COLUMNS_TILE ? n - first : SL_COLUMNS_TILE;
        sl_tile *tile = &columns->tile[columns->tiles];
        for (size_t i = 0; i < count; i++)
            memcpy(columns->gathered + i * from->pitch, from->base + (rows ? rows[first + i] : first + i) * from->pitch,
                   from->pitch);
        columns->kernels->tile.pack(tile, &gathered, 0, count);
        tile->first = (uint32_t)(columns->n + first);
    }
    columns->n += n;
}

void sl_columns_pack(sl_columns *columns, const uint32_t *rows, size_t n) {
    columns->n = columns->tiles = 0;
    sl_columns_append(columns, rows, n);
}

static size_t code_bytes(const sl_codec *codec) {
    return sl_round_up(4 * sl_tile_steps(codec->codes, codec->dim), SL_ROW_STEP);
}

static size_t most_kept(size_t keep) {
    return sl_larger(KEEP_ROOM * keep, KEEP_LEAST);
}

static size_t top_room(size_t keep) {
    return most_kept(keep) + SL_COLUMNS_TILE + SPARE;
}

/* Bytes of a query, and of the ids or the scores of its results. */
static size_t query_bytes(const sl_codec *codec) {
    return sl_round_up(sl_query_size(codec), SL_CACHE_LINE) + SL_ROW_STEP;
}

static size_t top_bytes(size_t keep) {
    return sl_round_up(top_room(keep) * sizeof(uint32_t), SL_CACHE_LINE);
}

size_t sl_top_columns_bytes(const sl_codec *codec, size_t keep) {
    return query_bytes(codec) + SL_TOP_QUERIES * (code_bytes(codec) + 2 * top_bytes(keep));
}

sl_status sl_top_columns_init(sl_top_columns *top, const sl_graph *graph, const sl_codec *codec, size_t keep) {
    const size_t query = query_bytes(codec), code = code_bytes(codec), found = top_bytes(keep);
    *top = (sl_top_columns){.codec = codec,
                            .allocator = graph->allocator,
                            .keep = keep,
                            .code_step = code,
                            .size = sl_top_columns_bytes(codec, keep)};
    SL_TRY(sl_mem_alloc(&top->allocator, top->size, &top->block));
    uint8_t *at = top->block;
    top->buffer = at;
    top->codes = at + query;
    at += query + SL_TOP_QUERIES * code;
    for (size_t i = 0; i < SL_TOP_QUERIES; i++, at += 2 * found) {
        top->scans[i].ids = (uint32_t *)(void *)at;
        top->scans[i].scores = (float *)(void *)(at + found);
    }
    return SL_OK;
}

void sl_top_columns_free(sl_top_columns *top) {
    sl_mem_free(&top->allocator, top->block, top->size);
    top->block = NULL;
}

void sl_top_columns_query(sl_top_columns *top, size_t place, const sl_query_code *query, float least) {
    const size_t bytes = top->code_step, width = sl_query_size(top->codec);
    sl_scan *scan = &top->scans[place];
    uint8_t *code = top->codes + place * bytes;
    memset(code, 0, bytes);
    memcpy(code, query->code, bytes < width ? bytes : width);
    scan->query = *query;
    scan->query.code = code;
    scan->least = least;
    scan->count = 0;
}

/* Scans a tile for the queries whose bits are set. */
static void scan_tile(sl_top_columns *top, const sl_columns *columns, size_t t, uint32_t queries) {
    const sl_tile_kernels *kernels = &columns->kernels->tile;
    sl_scan *scans[SL_TOP_QUERIES] = {NULL};
    size_t count = 0;
    sl_tile tile = columns->tile[t];
    for (; queries; queries &= queries - 1) {
        scans[count] = &top->scans[__builtin_ctz(queries)];
        scans[count++]->rows = (uint32_t)tile.rows;
    }
    kernels->scan(&tile, scans, count);
    for (size_t i = 0; i < count; i++)
        if (scans[i]->count > most_kept(top->keep)) kernels->best(scans[i], (uint32_t)top->keep, 0);
}

void sl_top_columns_scan(sl_top_columns *top, const sl_columns *columns, size_t count, const uint32_t *tile_queries) {
    const uint32_t all = UINT32_MAX >> (SL_TOP_QUERIES - count);
    if (!count) return;
    for (size_t t = 0; t < columns->tiles; t++)
        if (!tile_queries || tile_queries[t]) scan_tile(top, columns, t, tile_queries ? tile_queries[t] : all);
    for (size_t i = 0; i < count; i++)
        columns->kernels->tile.best(&top->scans[i], (uint32_t)top->keep, 1);
}

void sl_top_columns_of_rows(sl_top_columns *top, const sl_columns *columns, const uint32_t *rows, size_t count,
                            const float *least) {
    const sl_code_rows *from = &top->codec->rows;
    for (size_t i = 0; i < count; i++) {
        sl_query_code query;
        sl_row_as_query(top->codec, from->base + (size_t)rows[i] * from->pitch, top->buffer, &query);
        sl_top_columns_query(top, i, &query, least ? least[i] : -INFINITY);
    }
    sl_top_columns_scan(top, columns, count, NULL);
}
