/* Encodes tables of floats as rows of codes: chooses a table's steps, a row's range, and its codes. */
#include "ranker/model/table_codes.h"

#include <float.h>
#include <math.h>

/* The search for the least error divides a row's range into this many steps, and keeps at least half of them. */
enum { RANGE_STEPS = 128, MIN_RANGE_STEPS = RANGE_STEPS / 2 };

/* The largest code of an element, and of a scale or an offset. */
static uint32_t top_code(sl_table_type type) {
    return type == SL_TABLE_I8 ? 255 : 15;
}

static uint32_t top_head(sl_table_type type) {
    return type == SL_TABLE_I8 ? 65535 : 255;
}

/* The codes of a row's scale and offset. */
typedef struct row_head {
    uint32_t scale, offset;
} row_head;

static void row_extremes(const float *row, size_t dim, float *least, float *most) {
    *least = *most = row[0];
    for (size_t i = 1; i < dim; i++) {
        *least = row[i] < *least ? row[i] : *least;
        *most = row[i] > *most ? row[i] : *most;
    }
}

/* ---- Steps of a table ---- */

const char *sl_table_codes_fault(const sl_table_codes *table) {
    if (table->type != SL_TABLE_F32 && table->type != SL_TABLE_I8 && table->type != SL_TABLE_I4)
        return "its type is none that a table has";
    if (!isfinite(table->scale_step) || !isfinite(table->offset_step) || !isfinite(table->offset))
        return "a scale or an offset is not finite";
    if (table->scale_step < 0 || table->offset_step < 0) return "a scale is negative";
    if (table->type == SL_TABLE_F32)
        return table->scale_step != 0 || table->offset_step != 0 || table->offset != 0 ? "it has scales without codes"
                                                                                       : NULL;
    double head = top_head((sl_table_type)table->type), code = top_code((sl_table_type)table->type);
    double largest = fabs((double)table->offset) + head * (double)table->offset_step;
    largest += head * (double)table->scale_step * code;
    return largest < (double)FLT_MAX / 2 ? NULL : "its largest weight is too large";
}

sl_status sl_table_codes_fit(const float *weights, size_t size, size_t dim, sl_table_type type, sl_table_codes *out) {
    float least = FLT_MAX, last = -FLT_MAX; /* the smallest and the largest of the rows' minima */
    double widest = 0, head = top_head(type);
    for (size_t r = 0; r < size; r++) {
        float low, high;
        row_extremes(weights + r * dim, dim, &low, &high);
        least = low < least ? low : least;
        last = low > last ? low : last;
        widest = fmax(widest, (double)high - (double)low);
    }
    sl_table_codes table = {.type = (uint32_t)type, .offset = size ? least : 0};
    if (size) table.offset_step = (float)(((double)last - (double)least) / head);
    /* A row's offset is up to a step below its smallest element. The factor makes up for rounding. */
    table.scale_step = (float)((widest + (double)table.offset_step) / top_code(type) / head * (1 + 1e-6));
    *out = table;
    const char *fault = sl_table_codes_fault(&table);
    return fault ? sl_fail(SL_EVALUE, "%s for codes; train the model again with smaller rates", fault) : SL_OK;
}

/* ---- Range of a row ---- */

static uint32_t clamp_head(double code, uint32_t top) {
    return code > 0 ? code < top ? (uint32_t)code : top : 0;
}

/* Returns the narrowest range with all elements from low to high. */
static row_head covering_range(const sl_table_codes *table, float low, float high) {
    uint32_t top = top_head((sl_table_type)table->type), levels = top_code((sl_table_type)table->type);
    row_head head = {0, 0};
    if (table->offset_step > 0)
        head.offset = clamp_head(floor(((double)low - (double)table->offset) / (double)table->offset_step), top);
    while (head.offset && sl_row_offset(table, head.offset) > low)
        head.offset--;
    double width = (double)high - (double)sl_row_offset(table, head.offset);
    if (table->scale_step > 0) head.scale = clamp_head(ceil(width / levels / (double)table->scale_step), top);
    while (table->scale_step > 0 && head.scale < top && (double)sl_row_scale(table, head.scale) * levels < width)
        head.scale++;
    return head;
}

/* Returns the range nearest to low..high. */
static row_head nearest_range(const sl_table_codes *table, float low, float high) {
    uint32_t top = top_head((sl_table_type)table->type), levels = top_code((sl_table_type)table->type);
    row_head head = {0, 0};
    if (table->offset_step > 0)
        head.offset = clamp_head(((double)low - (double)table->offset) / (double)table->offset_step + 0.5, top);
    double width = (double)high - (double)sl_row_offset(table, head.offset);
    if (table->scale_step > 0) head.scale = clamp_head(width / levels / (double)table->scale_step + 0.5, top);
    return head;
}

/* A row's scale and offset as floats. If the inverse is 0, every element has code 0. */
typedef struct row_map {
    float scale, offset, inverse, top;
} row_map;

static row_map row_map_of(const sl_table_codes *table, row_head head) {
    row_map map = {.scale = sl_row_scale(table, head.scale),
                   .offset = sl_row_offset(table, head.offset),
                   .top = (float)top_code((sl_table_type)table->type)};
    if (map.scale >= FLT_MIN) map.inverse = 1 / map.scale;
    return map;
}

static inline int32_t code_of(const row_map *map, float x) {
    float code = (x - map->offset) * map->inverse;
    code = code > 0 ? code : 0;
    code = code < map->top ? code : map->top;
    return (int32_t)(code + 0.5f);
}

static float squared_error(const sl_table_codes *table, const float *row, size_t dim, row_head head) {
    row_map map = row_map_of(table, head);
    float sum = 0;
    for (size_t i = 0; i < dim; i++) {
        float error = map.offset + map.scale * (float)code_of(&map, row[i]) - row[i];
        sum += error * error;
    }
    return sum;
}

/* The greedy search of Guan et al. 2019 (arXiv 1911.02079). Each step cuts the end whose loss is smaller. It begins
 * with the whole range, and keeps the best range so far. */
static row_head greedy_range(const sl_table_codes *table, const float *row, size_t dim, float low, float high) {
    row_head best = covering_range(table, low, high);
    float least = squared_error(table, row, dim, best), step = (high - low) / RANGE_STEPS;
    for (size_t left = RANGE_STEPS; left > MIN_RANGE_STEPS; left--) {
        row_head by_low = nearest_range(table, low + step, high), by_high = nearest_range(table, low, high - step);
        float cut_low = squared_error(table, row, dim, by_low), cut_high = squared_error(table, row, dim, by_high);
        int lower = cut_low < cut_high;
        float error = lower ? cut_low : cut_high;
        if (lower)
            low += step;
        else
            high -= step;
        if (error >= least) continue;
        least = error;
        best = lower ? by_low : by_high;
    }
    return best;
}

/* ---- Codes of a row ---- */

static void write_row(const sl_table_codes *table, const float *row, size_t dim, row_head head, uint8_t *to) {
    row_map map = row_map_of(table, head);
    if (table->type == SL_TABLE_I8) {
        const uint16_t heads[2] = {(uint16_t)head.scale, (uint16_t)head.offset};
        memcpy(to, heads, sizeof heads);
        to += sizeof heads;
        for (size_t i = 0; i < dim; i++)
            to[i] = (uint8_t)code_of(&map, row[i]);
        return;
    }
    *to++ = (uint8_t)head.scale;
    *to++ = (uint8_t)head.offset;
    for (size_t i = 0; i < dim; i += 2) {
        int32_t pair = code_of(&map, row[i]);
        if (i + 1 < dim) pair |= code_of(&map, row[i + 1]) << 4;
        to[i / 2] = (uint8_t)pair;
    }
}

void sl_table_codes_encode(const sl_table_codes *table, const float *weights, size_t size, size_t dim,
                           sl_row_range range, uint8_t *rows) {
    size_t bytes = sl_row_bytes((sl_table_type)table->type, dim);
    for (size_t r = 0; r < size; r++) {
        const float *row = weights + r * dim;
        float low, high;
        row_extremes(row, dim, &low, &high);
        row_head head =
            range == SL_ROW_MSE ? greedy_range(table, row, dim, low, high) : covering_range(table, low, high);
        write_row(table, row, dim, head, rows + r * bytes);
    }
}
