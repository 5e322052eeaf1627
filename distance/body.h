/*
 * The body of every kernel: the loops, once, over the lane operations of one tier. A tier's file defines these
 * operations and includes this file last. Everything is static, so that the linker can't mix code of two tiers.
 *
 *   LANE_ISA, LANE_TABLE      the tier and the name of its table
 *   LANE_8, LANE_16, LANE_F   elements of a register: bytes, 16-bit integers, floats
 *   LANE_ROWS, LANE_ROWS_I16  rows scored at once, 4 or 8, as registers allow: of I8 and F32, of I16
 *   V, F                      a register of integers, of floats; operators work on F
 *   Q8, R8                    a register of the query prepared for lane_row8, and the sum that lane_row8 adds to
 *   A8, A16                   sums of 8-bit and of 16-bit products, which no dim up to SL_MAX_DIM overflows
 *
 *   lane_load(p, bytes)       bytes of a register, the others zero; nothing behind them is touched
 *   lane_f32, lane_i16        (p, n) n elements, as floats, in the same way
 *   lane_query8, lane_row8    sum += row (unsigned) * query (signed); see lane_offset
 *   lane_low4, lane_high4     the lower and the upper four bits of each byte
 *   lane_row4                 run += four-bit numbers * query (signed)
 *   LANE_RUN4                 the tier has R4, a run of at most so many products, and the next two; in other tiers the
 *                             run is the sum itself
 *   lane_begin4(sum)          begins a run
 *   lane_end4(sum, run)       the sum with the run
 *   lane_offset               lane_row8's sum less this is dot - query->offset
 *   lane_sum4_i32, _f32       the four totals of four registers
 *   lane_dot_i8, _u8, _i16    sum += a * b
 *   lane_square_u16           sum += a * a of unsigned 16-bit integers
 *   lane_diff_i8, _u8, _i16   |a - b|, unsigned
 *   lane_total8(sum), lane_total16(sum, steps), lane_total_squares(sum, steps)
 *   lane_fma, lane_splat, lane_sum_f32
 *
 *   LANE_TILE                 registers of rows scanned at once, beside four queries
 *   lane_four(p)              four bytes, over and over; not for a tier with a LANE_F of 1
 *   lane_totals(sum, n, less) n * sum - less, of 32-bit lanes, as floats
 *   lane_above(a, b)          a bit for each lane in which a > b
 *
 *   LANE_APPEND               the tier has lane_append; in other tiers a plain loop replaces it
 *
 *   LANE_TRANSPOSE            the tier has lane_transpose(V[LANE_F]), of 32-bit lanes, and lane_store
 *
 *   LANE_GROUP                the tier has lane_group_i32(sums), the totals of LANE_F registers side by side, and
 *                             lane_finish, which makes scores of them; short rows come in such groups
 *
 *   LANE_CANDIDATES, LANE_GATHERS  the tier has the operations of candidates.h on sixteen scores, and on sixteen links;
 * in other tiers plain loops replace them
 */
#ifndef SL_DISTANCE_BODY_H
#define SL_DISTANCE_BODY_H

#include "distance/candidates.h"
#include "distance/lanes.h"
#include "distance/levels.h"

#include <float.h>
#include <math.h>

/* ---------------------------------------------------------------------------------------------------------------
 * One query against gathered rows
 * ------------------------------------------------------------------------------------------------------------- */

#ifndef LANE_RUN4
#define LANE_RUN4 (2u * SL_MAX_DIM)
typedef R8 R4;

static AI R4 lane_begin4(R8 sum) {
    return sum;
}

static AI R8 lane_end4(R8 sum, R4 run) {
    (void)sum;
    return run;
}

#endif

/* One row's sum. A kernel uses one member; the others cost nothing. */
typedef struct row_sum {
    R8 i8;
    A16 i16;
    F f32;
} row_sum;

typedef struct four_sums {
    row_sum a, b, c, d;
} four_sums;

static AI void step_i8(four_sums *sums, const uint8_t *const *row, const uint8_t *code, size_t k) {
    Q8 q = lane_query8(lane_load(code + k, LANE_8));
    sums->a.i8 = lane_row8(sums->a.i8, lane_load(row[0] + k, LANE_8), q);
    sums->b.i8 = lane_row8(sums->b.i8, lane_load(row[1] + k, LANE_8), q);
    sums->c.i8 = lane_row8(sums->c.i8, lane_load(row[2] + k, LANE_8), q);
    sums->d.i8 = lane_row8(sums->d.i8, lane_load(row[3] + k, LANE_8), q);
}

static AI R4 run_row4(R4 run, V bytes, V low, V high) {
    return lane_row4(lane_row4(run, lane_low4(bytes), low), lane_high4(bytes), high);
}

static AI R8 step_row4(R8 sum, V bytes, V low, V high) {
    return lane_end4(sum, run_row4(lane_begin4(sum), bytes, low, high));
}

/* The lower halves of a row's bytes belong to the query's first `width` bytes, the upper halves to the next. */
static AI void step_i4(four_sums *sums, const uint8_t *const *row, const uint8_t *code, size_t width, size_t k) {
    V low = lane_load(code + k, LANE_8), high = lane_load(code + width + k, LANE_8);
    V a = lane_load(row[0] + k, LANE_8), b = lane_load(row[1] + k, LANE_8);
    V c = lane_load(row[2] + k, LANE_8), d = lane_load(row[3] + k, LANE_8);
    sums->a.i8 = step_row4(sums->a.i8, a, low, high);
    sums->b.i8 = step_row4(sums->b.i8, b, low, high);
    sums->c.i8 = step_row4(sums->c.i8, c, low, high);
    sums->d.i8 = step_row4(sums->d.i8, d, low, high);
}

static AI void step_i16(four_sums *sums, const uint8_t *const *row, const uint8_t *code, size_t k) {
    V q = lane_load(code + k, 2 * LANE_16);
    sums->a.i16 = lane_dot_i16(sums->a.i16, lane_load(row[0] + k, 2 * LANE_16), q);
    sums->b.i16 = lane_dot_i16(sums->b.i16, lane_load(row[1] + k, 2 * LANE_16), q);
    sums->c.i16 = lane_dot_i16(sums->c.i16, lane_load(row[2] + k, 2 * LANE_16), q);
    sums->d.i16 = lane_dot_i16(sums->d.i16, lane_load(row[3] + k, 2 * LANE_16), q);
}

static AI void step_f32(four_sums *sums, const uint8_t *const *row, const uint8_t *code, size_t k) {
    F q = lane_f32(code + k, LANE_F);
    sums->a.f32 = lane_fma(lane_f32(row[0] + k, LANE_F), q, sums->a.f32);
    sums->b.f32 = lane_fma(lane_f32(row[1] + k, LANE_F), q, sums->b.f32);
    sums->c.f32 = lane_fma(lane_f32(row[2] + k, LANE_F), q, sums->c.f32);
    sums->d.f32 = lane_fma(lane_f32(row[3] + k, LANE_F), q, sums->d.f32);
}

static AI F add_l2_f32(F sum, const uint8_t *row, F q, size_t n) {
    F difference = lane_f32(row, n) - q;
    return lane_fma(difference, difference, sum);
}

static AI A16 add_l2_i16(A16 sum, const uint8_t *row, V q, size_t n) {
    return lane_square_u16(sum, lane_diff_i16(lane_load(row, 2 * n), q));
}

/* Adds the squared differences of n elements, up to a register of them. */
static AI void step_l2(sl_codes codes, four_sums *sums, const uint8_t *const *row, const uint8_t *code, size_t k,
                       size_t n) {
    if (codes == SL_CODES_F32) {
        F q = lane_f32(code + k, n);
        sums->a.f32 = add_l2_f32(sums->a.f32, row[0] + k, q, n);
        sums->b.f32 = add_l2_f32(sums->b.f32, row[1] + k, q, n);
        sums->c.f32 = add_l2_f32(sums->c.f32, row[2] + k, q, n);
        sums->d.f32 = add_l2_f32(sums->d.f32, row[3] + k, q, n);
        return;
    }
    V q = lane_load(code + k, 2 * n);
    sums->a.i16 = add_l2_i16(sums->a.i16, row[0] + k, q, n);
    sums->b.i16 = add_l2_i16(sums->b.i16, row[1] + k, q, n);
    sums->c.i16 = add_l2_i16(sums->c.i16, row[2] + k, q, n);
    sums->d.i16 = add_l2_i16(sums->d.i16, row[3] + k, q, n);
}

static AI void step(sl_codes codes, four_sums *sums, const uint8_t *const *row, const uint8_t *code, size_t width,
                    size_t k) {
    if (codes == SL_CODES_I8)
        step_i8(sums, row, code, k);
    else if (codes == SL_CODES_I4)
        step_i4(sums, row, code, width, k);
    else if (codes == SL_CODES_I16)
        step_i16(sums, row, code, k);
    else
        step_f32(sums, row, code, k);
}

static AI size_t step_bytes(sl_codes codes) {
    return codes == SL_CODES_I8 || codes == SL_CODES_I4 ? LANE_8 : codes == SL_CODES_I16 ? 2 * LANE_16 : 4 * LANE_F;
}

/* The values that all rows of a call share. */
typedef struct score_plan {
    sl_code_rows rows;
    const uint8_t *code;
    size_t extent; /* bytes from a row's first to the last that is read */
    int straddles; /* rows don't begin on cache lines, so their last byte may be on one line more */
    int32_t offset;
    float scale, bias_scale;
} score_plan;

static AI score_plan plan_score(sl_codes codes, const sl_code_rows *rows, size_t width, const sl_query_code *query) {
    score_plan plan = {.rows = *rows, .code = query->code, .scale = query->scale, .bias_scale = query->bias_scale};
    plan.rows.width = width;
    plan.extent = width;
    if (plan.extent < rows->factor + 4) plan.extent = rows->factor + 4;
    if (rows->bias && plan.extent < rows->bias + 4) plan.extent = rows->bias + 4;
    plan.straddles = (((size_t)rows->base | rows->pitch) & 63) != 0;
    if (codes == SL_CODES_I8) plan.offset = lane_offset(query, width);
    if (codes == SL_CODES_I4) plan.offset = (int32_t)query->offset;
    return plan;
}

static AI const uint8_t *row_at(const score_plan *plan, uint32_t id) {
    return plan->rows.base + (size_t)id * plan->rows.pitch;
}

static AI void prefetch_rows(const score_plan *plan, const uint32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t *row = row_at(plan, ids[i]);
        sl_prefetch(row, plan->rows.width);
        if (plan->straddles || plan->extent > plan->rows.width) sl_prefetch(row + plan->extent - 1, 1);
    }
}

static AI f4 gather4(const uint8_t *const *row, size_t offset) {
    return (f4){load_float(row[0] + offset), load_float(row[1] + offset), load_float(row[2] + offset),
                load_float(row[3] + offset)};
}

static AI f4 totals(sl_codes codes, const four_sums *sums, const score_plan *plan) {
    size_t steps = plan->rows.width / step_bytes(codes);
    if (codes == SL_CODES_I8) {
        i4 total = lane_sum4_i32(sums->a.i8, sums->b.i8, sums->c.i8, sums->d.i8);
        return __builtin_convertvector(total - plan->offset, f4);
    }
    if (codes == SL_CODES_I4) {
        i4 total = lane_sum4_i32(sums->a.i8, sums->b.i8, sums->c.i8, sums->d.i8);
        return __builtin_convertvector(2 * total - plan->offset, f4);
    }
    if (codes == SL_CODES_I16)
        return (f4){(float)lane_total16(sums->a.i16, steps), (float)lane_total16(sums->b.i16, steps),
                    (float)lane_total16(sums->c.i16, steps), (float)lane_total16(sums->d.i16, steps)};
    return lane_sum4_f32(sums->a.f32, sums->b.f32, sums->c.f32, sums->d.f32);
}

/* Fuses nothing, so that integer codes give the same bits on every tier. */
static AI f4 finish(sl_codes codes, const four_sums *sums, const uint8_t *const *row, const score_plan *plan) {
    f4 score = totals(codes, sums, plan) * plan->scale * gather4(row, plan->rows.factor);
    if (plan->rows.bias) score += gather4(row, plan->rows.bias) * plan->bias_scale;
    return score;
}

static AI void score4(sl_codes codes, const score_plan *plan, const uint32_t *ids, f4 *out) {
    const uint8_t *row[4] = {row_at(plan, ids[0]), row_at(plan, ids[1]), row_at(plan, ids[2]), row_at(plan, ids[3])};
    four_sums sums = {0};
    size_t k = 0;
    do {
        step(codes, &sums, row, plan->code, plan->rows.width, k);
        k += step_bytes(codes);
    } while (k < plan->rows.width);
    *out = finish(codes, &sums, row, plan);
}

/* Scores twice four rows: enough independent sums to hide the latency of their instructions. */
static AI void score8(sl_codes codes, const score_plan *plan, const uint32_t *ids, f4 *out) {
    const uint8_t *row[8] = {row_at(plan, ids[0]), row_at(plan, ids[1]), row_at(plan, ids[2]), row_at(plan, ids[3]),
                             row_at(plan, ids[4]), row_at(plan, ids[5]), row_at(plan, ids[6]), row_at(plan, ids[7])};
    four_sums low = {0}, high = {0};
    size_t k = 0;
    do {
        step(codes, &low, row, plan->code, plan->rows.width, k);
        step(codes, &high, row + 4, plan->code, plan->rows.width, k);
        k += step_bytes(codes);
    } while (k < plan->rows.width);
    out[0] = finish(codes, &low, row, plan);
    out[1] = finish(codes, &high, row + 4, plan);
}

/* Returns -|x - q|^2 / 2 of four rows. */
static AI f4 half_distances(sl_codes codes, const four_sums *sums, size_t steps) {
    if (codes == SL_CODES_F32) return -0.5f * lane_sum4_f32(sums->a.f32, sums->b.f32, sums->c.f32, sums->d.f32);
    return -0.5f * (f4){(float)lane_total_squares(sums->a.i16, steps), (float)lane_total_squares(sums->b.i16, steps),
                        (float)lane_total_squares(sums->c.i16, steps), (float)lane_total_squares(sums->d.i16, steps)};
}

/* Scores four or eight rows by differences. Unlike the query, a row is not zero behind its last element, so the last
 * step stops there. */
static AI void score_l2(sl_codes codes, const score_plan *plan, const uint32_t *ids, size_t count, f4 *out) {
    const size_t whole = codes == SL_CODES_F32 ? LANE_F : LANE_16;
    const uint8_t *row[8];
    size_t left = plan->rows.differences, k = 0, steps = 0;
    four_sums sums[2] = {0};
    for (size_t i = 0; i < count; i++)
        row[i] = row_at(plan, ids[i]);
    for (; left >= whole; left -= whole, k += step_bytes(codes), steps++)
        for (size_t four = 0; four < count / 4; four++)
            step_l2(codes, &sums[four], row + 4 * four, plan->code, k, whole);
    for (size_t four = 0; left && four < count / 4; four++)
        step_l2(codes, &sums[four], row + 4 * four, plan->code, k, left);
    steps += left != 0;
    for (size_t four = 0; four < count / 4; four++)
        out[four] = half_distances(codes, &sums[four], steps);
}

/* The arguments of sl_score_fn. */
typedef struct score_call {
    const sl_code_rows *rows;
    const sl_query_code *query;
    const uint32_t *ids;
    size_t n, ahead;
    float *out;
} score_call;

typedef enum row_score { BY_PRODUCTS, BY_DIFFERENCES } row_score;

/* `width` repeats rows->width; a constant unrolls the loops over it. */
static AI void score_rows(sl_codes codes, row_score by, size_t width, const score_call *call) {
    const size_t block = codes == SL_CODES_I16 ? LANE_ROWS_I16 : LANE_ROWS, n = call->n, ahead = call->ahead;
    const uint32_t *ids = call->ids;
    float *out = call->out;
    score_plan plan = plan_score(codes, call->rows, width, call->query);
    f4 scores[2];
    size_t i = 0;
    for (; n - i >= block; i += block) {
        size_t next = i + ahead;
        if (ahead && next < n) prefetch_rows(&plan, ids + next, n - next < block ? n - next : block);
        if (by == BY_DIFFERENCES)
            score_l2(codes, &plan, ids + i, block, scores);
        else if (block == 8)
            score8(codes, &plan, ids + i, scores);
        else
            score4(codes, &plan, ids + i, scores);
        memcpy(out + i, scores, block * sizeof *out);
    }
    while (i < n) {
        uint32_t last[4];
        size_t count = n - i < 4 ? n - i : 4;
        for (size_t j = 0; j < 4; j++)
            last[j] = ids[j < count ? i + j : n - 1];
        if (by == BY_DIFFERENCES)
            score_l2(codes, &plan, last, 4, scores);
        else
            score4(codes, &plan, last, scores);
        memcpy(out + i, scores, count * sizeof *out);
        i += count;
    }
}

#ifdef LANE_GROUP

/* The width up to which rows are scored in groups. */
#define LANE_SHORT 128u
_Static_assert(2 * LANE_SHORT / LANE_8 <= LANE_RUN4, "a short row is one run");

/* Sums one row. The query stays in registers if it takes few. */
static AI R8 sum_short(sl_codes codes, const score_plan *plan, const uint8_t *row) {
    const size_t width = plan->rows.width;
    R8 sum = {0};
    R4 run = lane_begin4(sum);
    for (size_t k = 0; k < width; k += LANE_8) {
        V bytes = lane_load(row + k, LANE_8), code = lane_load(plan->code + k, LANE_8);
        if (codes == SL_CODES_I8)
            sum = lane_row8(sum, bytes, lane_query8(code));
        else
            run = run_row4(run, bytes, code, lane_load(plan->code + width + k, LANE_8));
    }
    return codes == SL_CODES_I4 ? lane_end4(sum, run) : sum;
}

/* Sums all rows step by step. The sums and the current step of the query are in registers. */
static AI void sum_steps4(const score_plan *plan, const uint8_t *const *row, R8 *sums) {
    const size_t width = plan->rows.width;
    R4 runs[LANE_F];
    for (size_t i = 0; i < LANE_F; i++)
        runs[i] = lane_begin4((R8){0});
#pragma GCC unroll 1
    for (size_t k = 0; k < width; k += LANE_8) {
        V low = lane_load(plan->code + k, LANE_8), high = lane_load(plan->code + width + k, LANE_8);
        for (size_t i = 0; i < LANE_F; i++)
            runs[i] = run_row4(runs[i], lane_load(row[i] + k, LANE_8), low, high);
    }
    for (size_t i = 0; i < LANE_F; i++)
        sums[i] = lane_end4((R8){0}, runs[i]);
}

/* Scores rows of a few steps. Adding lanes and finishing scores is most of the work, since there is little to
 * multiply. */
static AI void score_group(sl_codes codes, const score_plan *plan, const sl_query_code *query, const uint32_t *ids,
                           float *out) {
    const int by_steps = codes == SL_CODES_I4 && plan->rows.width > 2 * LANE_8;
    const uint8_t *row[LANE_F];
    R8 sums[LANE_F];
    for (size_t i = 0; i < LANE_F; i++) {
        row[i] = row_at(plan, ids[i]);
        if (!by_steps) sums[i] = sum_short(codes, plan, row[i]);
    }
    if (by_steps) sum_steps4(plan, row, sums);
    V totals = lane_group_i32(sums);
    if (codes == SL_CODES_I4) totals = M(add_epi32)(totals, totals);
    totals = M(sub_epi32)(totals, M(set1_epi32)(plan->offset));
    lane_finish(totals, &plan->rows, query, row, out);
}

static AI void score_short(sl_codes codes, size_t width, const score_call *call) {
    const size_t n = call->n, ahead = call->ahead;
    const uint32_t *ids = call->ids;
    float *out = call->out;
    score_plan plan = plan_score(codes, call->rows, width, call->query);
    size_t i = 0;
    for (; n - i >= LANE_F; i += LANE_F) {
        size_t next = i + ahead;
        if (ahead && next < n) prefetch_rows(&plan, ids + next, n - next < LANE_F ? n - next : LANE_F);
        score_group(codes, &plan, call->query, ids + i, out + i);
    }
    if (n - i > LANE_F / 2) {
        uint32_t last[LANE_F];
        float scores[LANE_F];
        for (size_t j = 0; j < LANE_F; j++)
            last[j] = ids[i + j < n ? i + j : n - 1];
        score_group(codes, &plan, call->query, last, scores);
        memcpy(out + i, scores, (n - i) * sizeof *out);
    } else if (i < n) {
        const score_call rest = {.rows = call->rows, .query = call->query, .ids = ids + i, .n = n - i, .out = out + i};
        score_rows(codes, BY_PRODUCTS, width, &rest);
    }
}

#else

static AI void score_short(sl_codes codes, size_t width, const score_call *call) {
    score_rows(codes, BY_PRODUCTS, width, call);
}

#endif

static void score_i8(const sl_code_rows *rows, const sl_query_code *query, const uint32_t *ids, size_t n, size_t ahead,
                     float *out) {
    const score_call call = {.rows = rows, .query = query, .ids = ids, .n = n, .ahead = ahead, .out = out};
    switch (rows->width) {
    case 64:
        score_short(SL_CODES_I8, 64, &call);
        break;
    case 128:
        score_short(SL_CODES_I8, 128, &call);
        break;
    case 192:
        score_rows(SL_CODES_I8, BY_PRODUCTS, 192, &call);
        break;
    case 256:
        score_rows(SL_CODES_I8, BY_PRODUCTS, 256, &call);
        break;
    default:
        score_rows(SL_CODES_I8, BY_PRODUCTS, rows->width, &call);
        break;
    }
}

static void score_i4(const sl_code_rows *rows, const sl_query_code *query, const uint32_t *ids, size_t n, size_t ahead,
                     float *out) {
    const score_call call = {.rows = rows, .query = query, .ids = ids, .n = n, .ahead = ahead, .out = out};
    switch (rows->width) {
    case 64:
        score_short(SL_CODES_I4, 64, &call);
        break;
    case 128:
        score_short(SL_CODES_I4, 128, &call);
        break;
    default:
        score_rows(SL_CODES_I4, BY_PRODUCTS, rows->width, &call);
        break;
    }
}

static void score_i16(const sl_code_rows *rows, const sl_query_code *query, const uint32_t *ids, size_t n, size_t ahead,
                      float *out) {
    const score_call call = {.rows = rows, .query = query, .ids = ids, .n = n, .ahead = ahead, .out = out};
    if (rows->differences)
        score_rows(SL_CODES_I16, BY_DIFFERENCES, rows->width, &call);
    else
        score_rows(SL_CODES_I16, BY_PRODUCTS, rows->width, &call);
}

static void score_f32(const sl_code_rows *rows, const sl_query_code *query, const uint32_t *ids, size_t n, size_t ahead,
                      float *out) {
    const score_call call = {.rows = rows, .query = query, .ids = ids, .n = n, .ahead = ahead, .out = out};
    if (rows->differences)
        score_rows(SL_CODES_F32, BY_DIFFERENCES, rows->width, &call);
    else
        score_rows(SL_CODES_F32, BY_PRODUCTS, rows->width, &call);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The best of many scores
 * ------------------------------------------------------------------------------------------------------------- */

/* A bound that the best scores reach, and how many scores equal to it are among them. */
typedef struct sl_bound {
    float least;
    uint32_t kept, alike;
} sl_bound;

static AI uint32_t count_above(const float *scores, uint32_t n, float bound) {
    return bound == INFINITY ? 0 : count_from(scores, n, nextafterf(bound, INFINITY));
}

/* Finds the bound by halving the range of the scores, until between `wanted` and `most` scores reach it or no number
 * lies between. A pass over some hundred scores costs a few dozen instructions, and no branch depends on a comparison
 * of scores. */
static sl_bound bound_of_best(const float *scores, uint32_t n, uint32_t wanted, uint32_t most) {
    uint32_t from = n;
    if (n <= most) return (sl_bound){-INFINITY, n, n};
    float low, high;
    range_of(scores, n, &low, &high);
    if (most == 1) return (sl_bound){high, 1, 1};
    /* No number lies halfway between a number and infinity. */
    float top = high;
    if (high > FLT_MAX) high = FLT_MAX;
    /* Too many scores reach `low`, and too few reach `high`, unless `high` is the best score. */
    for (float middle; from > most && (middle = low / 2 + high / 2) > low && middle < high;) {
        uint32_t count = count_from(scores, n, middle);
        if (count >= wanted) {
            low = middle;
            from = count;
        } else {
            high = middle;
        }
    }
    if (from <= most) return (sl_bound){low, from, from};
    /* The scores around the bound are equal: keep all better ones, then any of these. */
    if (count_from(scores, n, high) >= wanted) low = high;
    if (count_from(scores, n, top) >= wanted) low = top;
    uint32_t better = count_above(scores, n, low);
    return (sl_bound){low, most, better < most ? most - better : 0};
}

#include "distance/tile.h"

/* ---------------------------------------------------------------------------------------------------------------
 * Candidates of a walk
 * ------------------------------------------------------------------------------------------------------------- */

static size_t at_least(const float *scores, size_t n, float bound) {
    return count_from(scores, (uint32_t)n, bound);
}

static void keep_candidates(sl_candidates *all, uint32_t wanted, uint32_t most) {
    sl_bound bound = bound_of_best(all->scores, (uint32_t)all->count, wanted, most);
    if (bound.kept == all->count) return;
    all->count = lane_keep_above(all->scores, all->open, all->ids, all->count, bound.least, bound.alike);
    all->threshold = bound.least;
    lane_tops(all);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Integers, one to one
 * ------------------------------------------------------------------------------------------------------------- */

typedef enum pair_kernel { DOT_I8, L2_I8, DOT_U8, L2_U8, DOT_I16, L2_I16 } pair_kernel;

typedef struct pair_sum {
    A8 s8;
    A16 s16;
} pair_sum;

static AI int is_wide(pair_kernel kernel) {
    return kernel == DOT_I16 || kernel == L2_I16;
}

static AI pair_sum pair_step(pair_kernel kernel, pair_sum sum, V a, V b) {
    if (kernel == L2_I8) a = b = lane_diff_i8(a, b);
    if (kernel == L2_U8) a = b = lane_diff_u8(a, b);
    if (kernel == DOT_I8)
        sum.s8 = lane_dot_i8(sum.s8, a, b);
    else if (kernel == DOT_I16)
        sum.s16 = lane_dot_i16(sum.s16, a, b);
    else if (kernel == L2_I16)
        sum.s16 = lane_square_u16(sum.s16, lane_diff_i16(a, b));
    else
        sum.s8 = lane_dot_u8(sum.s8, a, b);
    return sum;
}

static AI int64_t pair_total(pair_kernel kernel, pair_sum sum, size_t steps) {
    if (kernel == L2_I16) return lane_total_squares(sum.s16, steps);
    return is_wide(kernel) ? lane_total16(sum.s16, steps) : lane_total8(sum.s8);
}

static AI int64_t pair(pair_kernel kernel, const void *a, const void *b, size_t dim) {
    const uint8_t *x = a, *y = b;
    const size_t lane = is_wide(kernel) ? 2 * LANE_16 : LANE_8;
    size_t size = is_wide(kernel) ? 2 * dim : dim;
    pair_sum even = {0}, odd = {0};
    size_t even_steps = 0, odd_steps = 0;
    for (; size >= 2 * lane; size -= 2 * lane, x += 2 * lane, y += 2 * lane) {
        even = pair_step(kernel, even, lane_load(x, lane), lane_load(y, lane));
        odd = pair_step(kernel, odd, lane_load(x + lane, lane), lane_load(y + lane, lane));
        even_steps++, odd_steps++;
    }
    if (size >= lane) {
        even = pair_step(kernel, even, lane_load(x, lane), lane_load(y, lane));
        even_steps++, size -= lane, x += lane, y += lane;
    }
    if (size) {
        odd = pair_step(kernel, odd, lane_load(x, size), lane_load(y, size));
        odd_steps++;
    }
    return pair_total(kernel, even, even_steps) + pair_total(kernel, odd, odd_steps);
}

#define PAIR_KERNEL(name, kernel, type)                                                                                \
    static int64_t name(const type *a, const type *b, size_t dim) {                                                    \
        return pair(kernel, a, b, dim);                                                                                \
    }
PAIR_KERNEL(dot_i8, DOT_I8, int8_t)
PAIR_KERNEL(l2_i8, L2_I8, int8_t)
PAIR_KERNEL(dot_u8, DOT_U8, uint8_t)
PAIR_KERNEL(l2_u8, L2_U8, uint8_t)
PAIR_KERNEL(dot_i16, DOT_I16, int16_t)
PAIR_KERNEL(l2_i16, L2_I16, int16_t)

/* ---------------------------------------------------------------------------------------------------------------
 * Floats, one to one
 * ------------------------------------------------------------------------------------------------------------- */

typedef enum refine_kernel { REFINE_DOT, REFINE_L2, REFINE_DOT_NORM } refine_kernel;

typedef struct refine_sum {
    F sum, norm;
} refine_sum;

static AI F refine_load(sl_refine type, const uint8_t *row, size_t n) {
    return type == SL_REFINE_F32 ? lane_f32(row, n) : lane_i16(row, n);
}

static AI refine_sum refine_step(sl_refine type, refine_kernel kernel, refine_sum sum, const uint8_t *row,
                                 const float *query, size_t n, F scale) {
    F x = refine_load(type, row, n), q = lane_f32(query, n);
    if (kernel == REFINE_L2) {
        F difference = q - x * scale;
        sum.sum = lane_fma(difference, difference, sum.sum);
    } else {
        sum.sum = lane_fma(x, q, sum.sum);
        if (kernel == REFINE_DOT_NORM) sum.norm = lane_fma(x, x, sum.norm);
    }
    return sum;
}

/* Four sums side by side hide the latency of a fused multiply-add. */
static AI float refine(sl_refine type, refine_kernel kernel, const void *row, const float *query, size_t dim,
                       float scale, float *row_norm2) {
    const size_t lane = type == SL_REFINE_F32 ? 4 * LANE_F : 2 * LANE_F;
    const uint8_t *x = row;
    F s = lane_splat(scale);
    refine_sum a = {0}, b = {0}, c = {0}, d = {0};
    for (; dim >= 4 * LANE_F; dim -= 4 * LANE_F, x += 4 * lane, query += 4 * LANE_F) {
        a = refine_step(type, kernel, a, x, query, LANE_F, s);
        b = refine_step(type, kernel, b, x + lane, query + LANE_F, LANE_F, s);
        c = refine_step(type, kernel, c, x + 2 * lane, query + 2 * LANE_F, LANE_F, s);
        d = refine_step(type, kernel, d, x + 3 * lane, query + 3 * LANE_F, LANE_F, s);
    }
    for (; dim >= LANE_F; dim -= LANE_F, x += lane, query += LANE_F)
        a = refine_step(type, kernel, a, x, query, LANE_F, s);
    if (dim) b = refine_step(type, kernel, b, x, query, dim, s);
    float sum = lane_sum_f32((a.sum + b.sum) + (c.sum + d.sum));
    if (kernel == REFINE_L2) return sum;
    if (kernel == REFINE_DOT_NORM) *row_norm2 = lane_sum_f32((a.norm + b.norm) + (c.norm + d.norm)) * scale * scale;
    return sum * scale;
}

#define REFINE_KERNELS(suffix, type)                                                                                   \
    static float refine_dot_##suffix(const void *row, const float *query, size_t dim, float scale) {                   \
        return refine(type, REFINE_DOT, row, query, dim, scale, NULL);                                                 \
    }                                                                                                                  \
    static float refine_l2_##suffix(const void *row, const float *query, size_t dim, float scale) {                    \
        return refine(type, REFINE_L2, row, query, dim, scale, NULL);                                                  \
    }                                                                                                                  \
    static float refine_dot_norm_##suffix(const void *row, const float *query, size_t dim, float scale,                \
                                          float *row_norm2) {                                                          \
        return refine(type, REFINE_DOT_NORM, row, query, dim, scale, row_norm2);                                       \
    }
REFINE_KERNELS(f32, SL_REFINE_F32)
REFINE_KERNELS(i16, SL_REFINE_I16)
#define REFINE_ENTRY(suffix)                                                                                           \
    { refine_dot_##suffix, refine_l2_##suffix, refine_dot_norm_##suffix }

/* ---------------------------------------------------------------------------------------------------------------
 * Queries
 * ------------------------------------------------------------------------------------------------------------- */

static float split_byte(float *restrict x, size_t n, int8_t *restrict code, int32_t *sum) {
    float unit = largest_of(x, n) / 127, inverse = 1 / unit;
    if (!isfinite(unit) || !isfinite(inverse)) unit = inverse = 0;
    int32_t total = 0;
    for (size_t i = 0; i < n; i++) {
        /* The lower bits hold the nearest integer, ties to even; compilers vectorise this. */
        float shifted = x[i] * inverse + 0x1.8p23f;
        uint32_t bits;
        memcpy(&bits, &shifted, sizeof bits);
        code[i] = (int8_t)(uint8_t)bits;
        total += code[i];
        x[i] -= (shifted - 0x1.8p23f) * unit;
    }
    *sum = total;
    return unit;
}

static int32_t sign_bytes(const uint8_t *restrict bytes, size_t n, int8_t *restrict code) {
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        code[i] = (int8_t)(bytes[i] ^ 0x80u);
        sum += code[i];
    }
    return sum;
}

/* Elements summed side by side, and elements summed in single precision. */
enum { LEVEL_LANES = 16, LEVEL_BLOCK = 256 };

static AI void add_levels(const float *restrict x, size_t n, float inverse, float *restrict products,
                          float *restrict squares) {
    for (size_t lane = 0; lane < n; lane++) {
        float level = sl_level_at(sl_level_number(x[lane], inverse));
        products[lane] += x[lane] * level;
        squares[lane] += level * level;
    }
}

static void level_sums(const float *x, size_t n, float inverse, double *products, double *squares) {
    *products = *squares = 0;
    for (size_t done = 0; done < n; done += LEVEL_BLOCK) {
        const size_t end = n - done < LEVEL_BLOCK ? n : done + LEVEL_BLOCK;
        float product[LEVEL_LANES] = {0}, square[LEVEL_LANES] = {0};
        size_t i = done;
        for (; i + LEVEL_LANES <= end; i += LEVEL_LANES)
            add_levels(x + i, LEVEL_LANES, inverse, product, square);
        add_levels(x + i, end - i, inverse, product, square);
        for (size_t lane = 0; lane < LEVEL_LANES; lane++) {
            *products += (double)product[lane];
            *squares += (double)square[lane];
        }
    }
}

const sl_kernels LANE_TABLE = {
    .isa = LANE_ISA,
    .score =
        {[SL_CODES_I8] = score_i8, [SL_CODES_I16] = score_i16, [SL_CODES_F32] = score_f32, [SL_CODES_I4] = score_i4},
    .unvisited = unvisited,
    .walk = {.empty = empty_candidates,
             .admit = admit_candidates,
             .best = best_open_candidate,
             .at_least = at_least,
             .keep = keep_candidates},
    .tile = {tile_pack, tile_scan, tile_best},
    .split_byte = split_byte,
    .level_sums = level_sums,
    .sign_bytes = sign_bytes,
    .dot_i8 = dot_i8,
    .l2_i8 = l2_i8,
    .dot_u8 = dot_u8,
    .l2_u8 = l2_u8,
    .dot_i16 = dot_i16,
    .l2_i16 = l2_i16,
    .refine = {[SL_REFINE_F32] = REFINE_ENTRY(f32), [SL_REFINE_I16] = REFINE_ENTRY(i16)},
};

#endif
