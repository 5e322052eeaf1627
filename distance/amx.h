/*
 * Products of matrices by AMX-INT8. A matrix register has up to 16 rows of 64 bytes.
 *
 *   TDPBSUD   adds products of the queries' signed bytes with unsigned bytes to a matrix of sums, which has a row for
 *             each query and a column for each row of codes. It reads the bytes of a tile in their order: four elements
 *             of each of 16 rows, then their next four.
 *
 * It adds in 32 bits without saturation, like vpdpbusd, so the bounds of x86.h hold. Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 1, chapter 18.
 */
#ifndef SL_DISTANCE_AMX_H
#define SL_DISTANCE_AMX_H

#include "distance/x86.h"

#define LANE_MATRIX 16u /* queries of a matrix */

/* Steps of four elements that a register holds of each query, and of each of 16 rows. */
enum { MATRIX_STEPS = 16, MATRIX_BYTES = 4 * MATRIX_STEPS };

/* Registers: sums of four groups of rows; whole blocks of steps; the rest of the steps. */
enum { OF_SUMS = 0, OF_QUERIES = 4, OF_ROWS = 5, OF_LAST_QUERIES = 6, OF_LAST_ROWS = 7 };
_Static_assert(LANE_TILE == OF_QUERIES, "sums of each group of rows");

/* LDTILECFG reads this struct. A register without rows is not used. */
typedef struct matrix_shapes {
    uint8_t palette, start[15];
    uint16_t bytes[16]; /* of a row of each register */
    uint8_t rows[16];
} matrix_shapes;
_Static_assert(sizeof(matrix_shapes) == 64, "as the instruction reads it");

/* Keeps the compiler from moving stores past loads of matrices: gcc's intrinsics don't name the memory that they
 * read. */
static AI void matrix_fence(void) {
    __asm__ volatile("" ::: "memory");
}

static AI void matrix_shape(matrix_shapes *shapes, size_t which, size_t rows, size_t bytes) {
    shapes->rows[which] = (uint8_t)(bytes ? rows : 0);
    shapes->bytes[which] = (uint16_t)(rows ? bytes : 0);
}

/* Shapes the registers for this many queries and steps. matrix_end must follow. */
static AI void matrix_begin(size_t queries, size_t steps) {
    const size_t rest = steps % MATRIX_STEPS;
    matrix_shapes shapes = {.palette = 1};
    for (size_t i = 0; i < LANE_TILE; i++)
        matrix_shape(&shapes, OF_SUMS + i, queries, MATRIX_BYTES);
    matrix_shape(&shapes, OF_QUERIES, queries, MATRIX_BYTES);
    matrix_shape(&shapes, OF_ROWS, MATRIX_STEPS, MATRIX_BYTES);
    matrix_shape(&shapes, OF_LAST_QUERIES, queries, 4 * rest);
    matrix_shape(&shapes, OF_LAST_ROWS, rest, MATRIX_BYTES);
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes)); /* gcc's intrinsic names the first eight bytes alone */
}

static AI void matrix_end(void) {
    _tile_release();
}

/* Macros, because the numbers of registers are parts of instructions. Both continue matrix_add at step k. */
#define MATRIX_GROUP(i, of_rows, of_queries)                                                                           \
    if (wide > (i)) {                                                                                                  \
        _tile_loadd(of_rows, rows + (i)*group + k * LANE_8, MATRIX_BYTES);                                             \
        _tile_dpbsud(i, of_queries, of_rows);                                                                          \
    }

#define MATRIX_BLOCK(of_rows, of_queries)                                                                              \
    do {                                                                                                               \
        _tile_loadd(of_queries, queries + 4 * k, pitch);                                                               \
        MATRIX_GROUP(0, of_rows, of_queries)                                                                           \
        MATRIX_GROUP(1, of_rows, of_queries)                                                                           \
        MATRIX_GROUP(2, of_rows, of_queries)                                                                           \
        MATRIX_GROUP(3, of_rows, of_queries)                                                                           \
    } while (0)
_Static_assert(OF_ROWS == 5 && OF_QUERIES == 4 && OF_LAST_ROWS == 7 && OF_LAST_QUERIES == 6, "as matrix_add has them");

static AI void matrix_zero(void) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/* Adds the products of `wide` groups of rows with the queries of matrix_begin, over some steps: whole blocks, and at
 * the end of all steps the rest. `group`: bytes from group to group. `queries`: their codes over these steps, `pitch`
 * bytes apart. */
static AI void matrix_add(const uint8_t *rows, size_t wide, size_t group, size_t steps, const uint8_t *queries,
                          size_t pitch) {
    size_t k = 0;
    matrix_fence();
    for (; k + MATRIX_STEPS <= steps; k += MATRIX_STEPS)
        MATRIX_BLOCK(5, 4);
    if (k < steps) MATRIX_BLOCK(7, 6);
    matrix_fence();
}

/* Stores the sums of `wide` groups. */
static AI void matrix_store(size_t wide, int32_t (*sums)[LANE_MATRIX][LANE_F]) {
    _tile_stored(0, sums[0], MATRIX_BYTES);
    if (wide > 1) _tile_stored(1, sums[1], MATRIX_BYTES);
    if (wide > 2) _tile_stored(2, sums[2], MATRIX_BYTES);
    if (wide > 3) _tile_stored(3, sums[3], MATRIX_BYTES);
}

#endif
