/*
 * Products of many rows with many queries (kernels.h): packs a tile, scans it by lanes or by matrices, and keeps the
 * best hits. body.h includes this file after the loops that it needs.
 */
#ifndef SL_DISTANCE_TILE_H
#define SL_DISTANCE_TILE_H

/* Rows missing from the last register get a factor of NaN. Their scores are NaN and above nothing. */
static void tile_terms(sl_tile *tile, const sl_code_rows *rows) {
    const uint8_t *row = rows->base + (size_t)tile->first * rows->pitch;
    const size_t whole = (tile->rows + LANE_F - 1) / LANE_F * LANE_F;
    const int by_products = rows->differences == 0;
    for (size_t i = 0; i < whole; i++, row += rows->pitch) {
        int there = i < tile->rows;
        tile->factors[i] = !there ? NAN : by_products ? load_float(row + rows->factor) : 1;
        tile->biases[i] = there && by_products && rows->bias ? load_float(row + rows->bias) : 0;
    }
}

#ifndef LANE_TRANSPOSE

/* Copies four elements of a row at a time. */
static void tile_bytes(sl_tile *tile, const sl_code_rows *rows) {
    size_t half = tile->codes == SL_CODES_I4 ? tile->steps / 2 : tile->steps;
    for (size_t i = 0; i < tile->rows; i++) {
        const uint8_t *row = rows->base + (size_t)(tile->first + i) * rows->pitch;
        uint8_t *to = tile->bytes + i / LANE_F * LANE_F * 4 * tile->steps + i % LANE_F * 4;
        for (size_t k = 0; k < half; k++) {
            uint32_t four;
            memcpy(&four, row + 4 * k, sizeof four);
            uint32_t low = tile->codes == SL_CODES_I4 ? four & 0x0f0f0f0fu : four, high = four >> 4 & 0x0f0f0f0fu;
            memcpy(to + k * 4 * LANE_F, &low, sizeof low);
            if (tile->codes == SL_CODES_I4) memcpy(to + (half + k) * 4 * LANE_F, &high, sizeof high);
        }
    }
}

#else

/* Turns a register of each of LANE_F rows into registers that hold the same four elements of all rows. */
static void tile_bytes(sl_tile *tile, const sl_code_rows *rows) {
    size_t half = tile->codes == SL_CODES_I4 ? tile->steps / 2 : tile->steps;
    for (size_t group = 0; group < tile->rows; group += LANE_F) {
        const uint8_t *row = rows->base + (size_t)(tile->first + group) * rows->pitch;
        uint8_t *to = tile->bytes + group * 4 * tile->steps;
        size_t there = tile->rows - group < LANE_F ? tile->rows - group : LANE_F;
        for (size_t k = 0; k < half; k += LANE_F) {
            V block[LANE_F];
            for (size_t i = 0; i < LANE_F; i++)
                block[i] = lane_load(row + (i < there ? i : 0) * rows->pitch + 4 * k, LANE_8);
            lane_transpose(block);
            size_t most = half - k < LANE_F ? half - k : LANE_F;
            for (size_t j = 0; j < most; j++) {
                int narrow = tile->codes == SL_CODES_I4;
                lane_store(to + (k + j) * LANE_8, narrow ? lane_low4(block[j]) : block[j]);
                if (narrow) lane_store(to + (half + k + j) * LANE_8, lane_high4(block[j]));
            }
        }
    }
}

#endif

static void tile_pack(sl_tile *tile, const sl_code_rows *rows, uint32_t first, size_t n) {
    tile->first = first;
    tile->rows = n;
    tile_terms(tile, rows);
    tile_bytes(tile, rows);
}

#ifndef LANE_APPEND

/* Appends the lanes whose bits are set, with row numbers from `first` on. May write whole registers. */
static AI void lane_append(float *scores, uint32_t *ids, F score, uint32_t first, uint32_t bits) {
    float all[LANE_F];
    memcpy(all, &score, sizeof all);
    for (size_t count = 0; bits; bits &= bits - 1, count++) {
        uint32_t lane = (uint32_t)__builtin_ctz(bits);
        scores[count] = all[lane];
        ids[count] = first + lane;
    }
}

#endif

static AI void scan_append_hits(const sl_tile *tile, sl_scan *scan, size_t row, F totals) {
    F score = totals * lane_splat(scan->query.scale) * lane_f32(tile->factors + row, LANE_F);
    score += lane_f32(tile->biases + row, LANE_F) * lane_splat(scan->query.bias_scale);
    uint32_t better = lane_above(score, lane_splat(scan->least));
    if (__builtin_expect(better == 0, 1)) return;
    if (scan->rows < row + LANE_F) better &= scan->rows > row ? (1u << (scan->rows - row)) - 1 : 0;
    lane_append(scan->scores + scan->count, scan->ids + scan->count, score, tile->first + (uint32_t)row, better);
    scan->count += (uint32_t)__builtin_popcount(better);
}

/* Fuses nothing and adds elements one after another, so that tiles give the same bits on every tier. */
static AI F tile_add_l2(F sum, F row, F element) {
    F difference = row - element;
    return sum + difference * difference;
}

#if LANE_F == 1

/* A row's elements are contiguous here. */
static AI void scan_row(sl_codes codes, const sl_tile *tile, size_t row, sl_scan *scan, int32_t offset) {
    const uint8_t *bytes = tile->bytes + row * 4 * tile->steps, *code = scan->query.code;
    R8 sum = 0;
    for (size_t i = 0; i < 4 * tile->steps; i++)
        sum = codes == SL_CODES_I4 ? lane_row4(sum, bytes[i], code[i]) : lane_row8(sum, bytes[i], lane_query8(code[i]));
    scan_append_hits(tile, scan, row, lane_totals(sum, codes == SL_CODES_I4 ? 2 : 1, offset));
}

static AI void scan_row_l2(const sl_tile *tile, size_t row, sl_scan *scan) {
    const uint8_t *bytes = tile->bytes + row * 4 * tile->steps, *code = scan->query.code;
    float sum = 0;
    for (size_t k = 0; k < tile->steps; k++)
        sum = tile_add_l2(sum, load_float(bytes + 4 * k), load_float(code + 4 * k));
    scan_append_hits(tile, scan, row, -0.5f * sum);
}

static AI void tile_scan_codes(sl_codes codes, sl_tile *tile, sl_scan *const *scans, size_t n) {
    for (size_t q = 0; q < n; q++) {
        int32_t offset = codes == SL_CODES_F32 ? 0 : lane_offset(&scans[q]->query, 4 * tile->steps);
        for (size_t row = 0; row < tile->rows; row++) {
            sl_prefetch(tile->ahead, 1);
            tile->ahead += tile->ahead < tile->ahead_end ? SL_CACHE_LINE : 0;
            if (codes == SL_CODES_F32)
                scan_row_l2(tile, row, scans[q]);
            else
                scan_row(codes, tile, row, scans[q], offset);
        }
    }
}

#else

/* Scans `wide` registers of F32 rows with differences, as scan_block does. */
static AI void scan_block_l2(size_t wide, size_t queries, sl_tile *tile, size_t row, sl_scan *const *scans) {
    F sums[LANE_TILE][4];
    const uint8_t *bytes = tile->bytes + row * 4 * tile->steps, *code[4];
    const uint8_t *ahead = tile->ahead, *const ahead_end = tile->ahead_end;
    for (size_t i = 0; i < wide; i++)
        for (size_t q = 0; q < queries; q++)
            sums[i][q] = lane_splat(0);
    for (size_t q = 0; q < queries; q++)
        code[q] = scans[q]->query.code;
    for (size_t k = 0; k < tile->steps; k++) {
        sl_prefetch(ahead, 1);
        ahead += ahead < ahead_end ? SL_CACHE_LINE : 0;
        for (size_t q = 0; q < queries; q++) {
            F element = lane_splat(load_float(code[q] + 4 * k));
            for (size_t i = 0; i < wide; i++)
                sums[i][q] =
                    tile_add_l2(sums[i][q], lane_f32(bytes + (i * tile->steps + k) * LANE_F * 4, LANE_F), element);
        }
    }
    tile->ahead = ahead;
#pragma GCC unroll 4
    for (size_t q = 0; q < queries; q++)
#pragma GCC unroll 4
        for (size_t i = 0; i < wide; i++)
            scan_append_hits(tile, scans[q], row + i * LANE_F, sums[i][q] * lane_splat(-0.5f));
}

/* Scans `wide` registers of rows, up to LANE_TILE, for up to four queries: each load serves several products. */
static AI void scan_block(sl_codes codes, size_t wide, size_t queries, sl_tile *tile, size_t row, sl_scan *const *scans,
                          const int32_t *offsets) {
    R8 sums[LANE_TILE][4];
    R4 runs[LANE_TILE][4];
    if (codes == SL_CODES_F32) {
        scan_block_l2(wide, queries, tile, row, scans);
        return;
    }
    for (size_t i = 0; i < wide; i++)
        for (size_t q = 0; q < queries; q++)
            sums[i][q] = (R8){0};
    const uint8_t *bytes = tile->bytes + row * 4 * tile->steps, *code[4];
    for (size_t q = 0; q < queries; q++)
        code[q] = scans[q]->query.code;
    const uint8_t *ahead = tile->ahead, *const ahead_end = tile->ahead_end;
    for (size_t k = 0; k < tile->steps;) {
        size_t left = tile->steps - k, end = tile->steps;
        if (codes == SL_CODES_I4 && LANE_RUN4 < SL_MAX_DIM && left > LANE_RUN4) end = k + LANE_RUN4;
        for (size_t i = 0; i < wide; i++)
            for (size_t q = 0; q < queries; q++)
                runs[i][q] = lane_begin4(sums[i][q]);
        do {
            V rows[LANE_TILE];
            sl_prefetch(ahead, 1);
            ahead += ahead < ahead_end ? SL_CACHE_LINE : 0;
            for (size_t i = 0; i < wide; i++)
                rows[i] = lane_load(bytes + (i * tile->steps + k) * LANE_F * 4, LANE_F * 4);
            for (size_t q = 0; q < queries; q++) {
                V four = lane_four(code[q] + 4 * k);
                for (size_t i = 0; i < wide; i++) {
                    if (codes == SL_CODES_I4)
                        runs[i][q] = lane_row4(runs[i][q], rows[i], four);
                    else
                        sums[i][q] = lane_row8(sums[i][q], rows[i], lane_query8(four));
                }
            }
        } while (++k < end);
        for (size_t i = 0; codes == SL_CODES_I4 && i < wide; i++)
            for (size_t q = 0; q < queries; q++)
                sums[i][q] = lane_end4(sums[i][q], runs[i][q]);
    }
    tile->ahead = ahead;
#pragma GCC unroll 4
    for (size_t q = 0; q < queries; q++)
#pragma GCC unroll 4
        for (size_t i = 0; i < wide; i++)
            scan_append_hits(tile, scans[q], row + i * LANE_F,
                             lane_totals(sums[i][q], codes == SL_CODES_I4 ? 2 : 1, offsets[q]));
}

/* Each width has a loop of its own: a small partition, or the end of any, has too few rows for a wide loop. */
static AI void scan_few(sl_codes codes, size_t queries, sl_tile *tile, sl_scan *const *scans) {
    int32_t offsets[4];
    for (size_t q = 0; q < queries && codes != SL_CODES_F32; q++)
        offsets[q] = codes == SL_CODES_I8 ? lane_offset(&scans[q]->query, (4 * tile->steps + 63) / 64 * 64)
                                          : (int32_t)scans[q]->query.offset;
    for (size_t row = 0; row < tile->rows; row += LANE_TILE * LANE_F) {
        size_t left = tile->rows - row;
        if (left <= LANE_F)
            scan_block(codes, 1, queries, tile, row, scans, offsets);
        else if (left <= 2 * LANE_F || LANE_TILE == 2)
            scan_block(codes, 2, queries, tile, row, scans, offsets);
        else if (left <= 3 * LANE_F)
            scan_block(codes, 3, queries, tile, row, scans, offsets);
        else
            scan_block(codes, LANE_TILE, queries, tile, row, scans, offsets);
    }
}

#ifdef LANE_MATRIX

/* Fewer queries, or rows of fewer steps, are scanned without matrices: shaping and storing registers takes longer than
 * multiplying a short row. */
enum { LEAST_QUERIES = 8, LEAST_STEPS = 48 };
/* Steps of a panel, which holds queries side by side. It must fit the small stack of a thread. */
enum { PANEL_STEPS = 4 * MATRIX_STEPS };

typedef int32_t matrix_sums[LANE_TILE][LANE_MATRIX][LANE_F];

/* Queries from `first` on, LANE_MATRIX at most, beside LANE_TILE groups of rows from `row` on. */
typedef struct matrix_part {
    size_t first, queries, row, wide;
} matrix_part;

static AI void append_part_hits(sl_codes codes, const sl_tile *tile, sl_scan *const *scans, matrix_part part,
                                matrix_sums sums) {
    for (size_t q = 0; q < part.queries; q++) {
        sl_scan *scan = scans[part.first + q];
        const int32_t offset = (int32_t)scan->query.offset;
        for (size_t i = 0; i < part.wide; i++)
            scan_append_hits(tile, scan, part.row + i * LANE_F,
                             lane_totals((R8)lane_load(sums[i][q], LANE_8), codes == SL_CODES_I4 ? 2 : 1, offset));
    }
}

static AI void prefetch_ahead(sl_tile *tile, size_t lines) {
    for (; lines > 0 && tile->ahead < tile->ahead_end; lines--, tile->ahead += SL_CACHE_LINE)
        sl_prefetch(tile->ahead, 1);
}

/* Multiplies a part of the tile by its queries, panel by panel. */
static AI void multiply_part(const sl_tile *tile, sl_scan *const *scans, matrix_part part) {
    _Alignas(64) uint8_t panel[LANE_MATRIX * 4 * PANEL_STEPS];
    const size_t group = tile->steps * LANE_8;
    const uint8_t *rows = tile->bytes + part.row * 4 * tile->steps;
    matrix_zero();
    for (size_t k = 0; k < tile->steps; k += PANEL_STEPS) {
        const size_t steps = tile->steps - k < PANEL_STEPS ? tile->steps - k : PANEL_STEPS;
        const size_t bytes = (4 * steps + SL_ROW_STEP - 1) / SL_ROW_STEP * SL_ROW_STEP;
        for (size_t q = 0; q < part.queries; q++) {
            const uint8_t *code = (const uint8_t *)scans[part.first + q]->query.code + 4 * k;
            for (size_t at = 0; at < bytes; at += LANE_8)
                lane_store(panel + q * bytes + at, lane_load(code + at, LANE_8));
        }
        matrix_add(rows + k * LANE_8, part.wide, group, steps, panel, bytes);
    }
}

/* Scans the tile for n queries. Appends the hits of one part while the processor makes the sums of the next. */
static void scan_matrices(sl_codes codes, sl_tile *tile, sl_scan *const *scans, size_t n) {
    _Alignas(64) matrix_sums sums;
    matrix_part part = {0}, before = {0};
    matrix_begin(n < LANE_MATRIX ? n : LANE_MATRIX, tile->steps);
    for (; part.first < n; part.first += LANE_MATRIX) {
        part.queries = n - part.first < LANE_MATRIX ? n - part.first : LANE_MATRIX;
        for (part.row = 0; part.row < tile->rows; part.row += LANE_TILE * LANE_F) {
            const size_t groups = (tile->rows - part.row + LANE_F - 1) / LANE_F;
            part.wide = groups < LANE_TILE ? groups : LANE_TILE;
            prefetch_ahead(tile, part.wide * tile->steps);
            multiply_part(tile, scans, part);
            append_part_hits(codes, tile, scans, before, sums);
            matrix_store(part.wide, sums);
            before = part;
        }
    }
    matrix_end();
    append_part_hits(codes, tile, scans, before, sums);
}

/* Returns whether matrices are worth their shaping. */
static AI int matrices_serve(const sl_tile *tile, size_t n) {
    return tile->codes != SL_CODES_F32 && n >= LEAST_QUERIES && tile->steps >= LEAST_STEPS;
}

#endif

/* Each number of queries has a loop of its own too: a partition ends with one query as often as with four. */
static AI void tile_scan_codes(sl_codes codes, sl_tile *tile, sl_scan *const *scans, size_t n) {
    size_t q = 0;
#ifdef LANE_MATRIX
    if (matrices_serve(tile, n)) {
        scan_matrices(codes, tile, scans, n);
        return;
    }
#endif
    for (; n - q >= 4; q += 4)
        scan_few(codes, 4, tile, scans + q);
    if (n - q == 3)
        scan_few(codes, 3, tile, scans + q);
    else if (n - q == 2)
        scan_few(codes, 2, tile, scans + q);
    else if (n - q == 1)
        scan_few(codes, 1, tile, scans + q);
}

#endif

static void tile_best(sl_scan *scan, uint32_t keep, int exact) {
    const uint32_t most = keep + keep / 4;
    sl_bound bound = bound_of_best(scan->scores, scan->count, keep, exact ? keep : most);
    /* Choosing among equal scores would depend on their order. */
    if (exact && bound.kept < scan->count && count_from(scan->scores, scan->count, bound.least) > keep)
        bound = bound_of_best(scan->scores, scan->count, keep, most);
    if (bound.kept == scan->count) return;
    scan->count = (uint32_t)lane_keep_above(scan->scores, NULL, scan->ids, scan->count, bound.least, bound.alike);
    scan->least = bound.least;
}

static void tile_scan(sl_tile *tile, sl_scan *const *scans, size_t n) {
    if (n == 0) return;
    if (tile->codes == SL_CODES_I4)
        tile_scan_codes(SL_CODES_I4, tile, scans, n);
    else if (tile->codes == SL_CODES_F32)
        tile_scan_codes(SL_CODES_F32, tile, scans, n);
    else
        tile_scan_codes(SL_CODES_I8, tile, scans, n);
}

#endif
