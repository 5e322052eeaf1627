/* Checks of scores by differences: of gathered rows, and of tiles. */
#include "tests/distance/kernel_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 21, QUERIES = 9, MOST_ROWS = 261 };

static const size_t dims[] = {1,  2,  3,  4,  5,  7,   8,   9,   15,  16,  17,  31,
                              32, 33, 47, 64, 65, 100, 127, 128, 129, 300, 2049};
enum { DIMS = sizeof dims / sizeof *dims };

/* Rows and queries near one point. Any finite numbers lie behind the elements of a row. */
typedef struct scene {
    sl_codes codes;
    size_t dim, count;
    sl_code_rows rows;
    guarded memory;
    uint8_t *queries; /* QUERIES of `width` bytes */
} scene;

static size_t element_of(sl_codes codes) {
    return codes == SL_CODES_F32 ? sizeof(float) : sizeof(int16_t);
}

/* Draws an element near `about`; for I16 vectors any number, sometimes an extreme one. */
static void put_element(const scene *s, uint8_t *at, float about) {
    if (s->codes == SL_CODES_F32) {
        float value = about + random_float();
        memcpy(at, &value, sizeof value);
        return;
    }
    int16_t value = (int16_t)(random_bits() % 8 ? (int)(random_bits() % 65536) - 32768 : about > 0 ? 32767 : -32768);
    memcpy(at, &value, sizeof value);
}

static double element_at(const scene *s, const uint8_t *row, size_t i) {
    if (s->codes == SL_CODES_F32) {
        float value;
        memcpy(&value, row + 4 * i, sizeof value);
        return (double)value;
    }
    int16_t value;
    memcpy(&value, row + 2 * i, sizeof value);
    return value;
}

static scene scene_new(sl_codes codes, size_t dim, size_t count, float about) {
    const size_t element = element_of(codes), size = dim * element, width = (size + 63) / 64 * 64;
    scene s = {.codes = codes, .dim = dim, .count = count};
    s.rows = (sl_code_rows){.width = width, .factor = (size + 3) / 4 * 4, .differences = dim};
    s.rows.bias = s.rows.factor + 4;
    s.rows.pitch = s.rows.bias + 4 > width ? s.rows.bias + 4 : width;
    s.memory = guarded_new(count * s.rows.pitch + SL_ROW_STEP);
    s.queries = aligned_alloc(64, QUERIES * width);
    if (!s.queries) exit(1);
    uint8_t *base = s.memory.end - SL_ROW_STEP - count * s.rows.pitch;
    s.rows.base = base;
    for (uint8_t *at = base; at < s.memory.end; at++)
        *at = (uint8_t)(codes == SL_CODES_F32 ? 0x3f : random_bits());
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < dim; i++)
            put_element(&s, base + r * s.rows.pitch + i * element, about);
    memset(s.queries, 0, QUERIES * width);
    for (size_t q = 0; q < QUERIES; q++)
        for (size_t i = 0; i < dim; i++)
            put_element(&s, s.queries + q * width + i * element, about);
    return s;
}

static void scene_free(scene *s) {
    guarded_free(&s->memory);
    free(s->queries);
}

static sl_query_code query_of(const scene *s, size_t q) {
    return (sl_query_code){.code = s->queries + q * s->rows.width, .scale = 1, .bias_scale = 1};
}

static double true_score(const scene *s, size_t q, size_t row) {
    double sum = 0;
    for (size_t i = 0; i < s->dim; i++) {
        const double away =
            element_at(s, s->rows.base + row * s->rows.pitch, i) - element_at(s, s->queries + q * s->rows.width, i);
        sum += away * away;
    }
    return -sum / 2;
}

/* Integers are summed exactly, and rounded once. */
static int is_right(const scene *s, float score, double wanted) {
    if (s->codes == SL_CODES_I16) return score == (float)wanted;
    return fabs((double)score - wanted) <= ((double)s->dim + 4) * 0x1p-23 * fabs(wanted);
}

static void check_rows(const sl_kernels *kernels, const scene *s, size_t n, size_t ahead, check_count *count) {
    uint32_t ids[ROWS] = {0};
    float out[ROWS + 1];
    const size_t q = n % QUERIES;
    const sl_query_code query = query_of(s, q);
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint32_t)(random_bits() % s->count);
    out[n] = 12345;
    kernels->score[s->codes](&s->rows, &query, ids, n, ahead, out);
    expect(count, out[n] == 12345, "%s differences dim %zu n %zu: wrote behind", sl_isa_name(kernels->isa), s->dim, n);
    for (size_t i = 0; i < n; i++) {
        const double wanted = true_score(s, q, ids[i]);
        expect(count, is_right(s, out[i], wanted), "%s differences %s dim %zu n %zu row %u: %.9g, not %.9g",
               sl_isa_name(kernels->isa), sl_codes_name(s->codes), s->dim, n, ids[i], (double)out[i], wanted);
    }
}

typedef struct tiling {
    sl_tile tile;
    guarded bytes;
    float terms[2 * SL_TILE_ROWS], scores[QUERIES][SL_TILE_ROWS + 16];
    uint32_t ids[QUERIES][SL_TILE_ROWS + 16];
    sl_scan scans[QUERIES];
} tiling;

/* Finds each row that scores above the least once, with its score. Rounding decides about rows close to the least. */
static size_t count_wrong(const scene *s, const sl_scan *scan, size_t q, uint32_t first) {
    size_t wrong = 0, at = 0;
    for (uint32_t row = first; row < first + scan->rows; row++) {
        const double wanted = true_score(s, q, row), rounding = ((double)s->dim + 4) * 0x1p-23 * fabs(wanted);
        const int found = at < scan->count && scan->ids[at] == row;
        wrong += found ? wanted + rounding <= (double)scan->least : wanted - rounding > (double)scan->least;
        if (found) wrong += !is_right(s, scan->scores[at++], wanted);
    }
    return wrong + (at != scan->count);
}

static void check_tile(const sl_kernels *kernels, const scene *s, tiling *t, uint32_t first, size_t rows, size_t n,
                       check_count *count) {
    sl_scan *turn[QUERIES];
    for (size_t q = 0; q < n; q++) {
        t->scans[q] = (sl_scan){.query = query_of(s, q),
                                .least = q % 2 ? (float)true_score(s, q, first) : -INFINITY,
                                .rows = (uint32_t)(rows - q % 3 * rows / 5),
                                .ids = t->ids[q],
                                .scores = t->scores[q]};
        turn[q] = &t->scans[q];
    }
    kernels->tile.pack(&t->tile, &s->rows, first, rows);
    kernels->tile.scan(&t->tile, turn, n);
    for (size_t q = 0; q < n; q++)
        expect(count, count_wrong(s, turn[q], q, first) == 0, "%s tile of differences dim %zu rows %zu query %zu",
               sl_isa_name(kernels->isa), s->dim, rows, q);
}

static void check_tiles_of(const sl_kernels *kernels, size_t dim, check_count *count) {
    static tiling t;
    scene s = scene_new(SL_CODES_F32, dim, MOST_ROWS, dim % 2 ? 0 : 1e6f);
    t.bytes = guarded_new(SL_TILE_ROWS * 4 * dim);
    t.tile = (sl_tile){.codes = SL_CODES_F32, .steps = sl_tile_steps(SL_CODES_F32, dim)};
    t.tile.bytes = t.bytes.end - SL_TILE_ROWS * 4 * dim;
    t.tile.factors = t.terms;
    t.tile.biases = t.terms + SL_TILE_ROWS;
    t.tile.ahead = t.tile.ahead_end = t.tile.bytes;
    for (size_t rows = 1; rows <= SL_TILE_ROWS; rows += rows < 40 ? 1 : 36)
        check_tile(kernels, &s, &t, (uint32_t)(rows % 5), rows, 1 + rows % QUERIES, count);
    check_tile(kernels, &s, &t, MOST_ROWS - SL_TILE_ROWS, SL_TILE_ROWS, QUERIES, count);
    guarded_free(&t.bytes);
    scene_free(&s);
}

void check_differences(const sl_kernels *kernels, check_count *count) {
    for (size_t d = 0; d < DIMS; d++) {
        for (int far = 0; far < 2; far++) {
            scene floats = scene_new(SL_CODES_F32, dims[d], ROWS, far ? -3e6f : 0);
            scene integers = scene_new(SL_CODES_I16, dims[d], ROWS, far ? 1 : -1);
            for (size_t n = 0; n <= ROWS; n++) {
                check_rows(kernels, &floats, n, n % 3 * 8, count);
                check_rows(kernels, &integers, n, n % 3 * 8, count);
            }
            scene_free(&floats);
            scene_free(&integers);
        }
        if (dims[d] <= 300) check_tiles_of(kernels, dims[d], count);
    }
}
