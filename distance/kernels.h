/*
 * The kernel table: everything that must be fast, once for each ISA tier, bound once.
 *
 * One body (body.h) holds the loops; a tier is a thin file that defines the lane operations and includes it. Integer
 * results are exact and the same on every tier for every value and every dim up to SL_MAX_DIM; float results agree
 * with the scalar tier within dim * 2^-23 * sum|a_i b_i|.
 */
#ifndef SL_DISTANCE_KERNELS_H
#define SL_DISTANCE_KERNELS_H

#include "base/visited.h"

/* Rows are read in whole steps of this many bytes, and the query is zero behind its last element, so no kernel over
 * rows has a tail. */
#define SL_ROW_STEP 64u

/* Geometry of an array of code rows. A row is `width` bytes that the kernel reads (the codes, and behind them
 * anything readable: the query is zero there; F32 rows must be finite there, since 0 * NaN is NaN), and somewhere in
 * its pitch a float factor and, if bias is not 0, a float bias right behind it. Behind the last row SL_ROW_STEP bytes
 * are readable. */
typedef struct sl_code_rows {
    const uint8_t *base;
    size_t pitch;  /* bytes from row to row, a multiple of 4 */
    size_t size;   /* bytes of a row that are its own: all its pitch, or less, and what lies behind is not */
    size_t width;  /* bytes read of each, a multiple of SL_ROW_STEP */
    size_t factor; /* byte offset of the factor in a row, a multiple of 4 */
    size_t bias;   /* byte offset of the bias, factor + 4, or 0: no bias */
} sl_code_rows;

/* A query in the form the row kernels want. `code` is 64-byte aligned, `width` bytes (2 * width of I4), zero behind the
 * last element.
 *
 *   I8    int8_t; rows hold unsigned bytes (a signed code x is stored as x + 128), so that vpdpbusd takes them as they
 *         are, and `offset` takes out what the +128 added (128 * sum of the query), once a query
 *
 *   I16   int16_t; rows hold int16_t
 *
 *   F32   float; rows hold float
 *
 *   I4    int8_t, 2 * width bytes: the first width of them belong to the lower halves of a row's bytes, the others to
 *         the upper halves. Of a number k in a row 2k - 15 is meant, and `offset` is 15 * the sum of the query
 */
typedef struct sl_query_code {
    const void *code;
    int64_t offset; /* of I8 and I4; 0 otherwise */
    float scale;
    float bias_scale; /* what the rows' bias counts for */
} sl_query_code;

/* out[i] = (dot(row ids[i], query) - offset) * scale * factor(row) + bias(row) * bias_scale, for i < n: larger is
 * nearer whatever the metric. While row i is scored row i + ahead is prefetched; ahead 0 prefetches nothing. ids need
 * not differ. */
typedef void sl_score_fn(const sl_code_rows *rows, const sl_query_code *query, const uint32_t *ids, size_t n,
                         size_t ahead, float *out);

#define SL_NO_LINK 0xffffffffu /* ends a list of links; no id, since `count` is at most that */

/* Finds the links of a list, up to its end, that are below `count` and not marked as visited. The links are marked and
 * put at `found`, which has room for degree + 16. Links that are not below `count` are passed over. Returns how many
 * were found. */
typedef size_t sl_unseen_fn(sl_visited *visited, const uint32_t *links, size_t degree, size_t count, uint32_t *found);

#define SL_NEAR 16u

/* What a walk has come upon, in order of arrival. `scores`, `open` and `ids` have room for 32 more than are ever there,
 * and of what `tops` and `peaks` then need for 16 more. Behind the last, what `open` and `tops` have in the
 * same sixteen is -INFINITY; when `peaks` are true is the tier's own affair. */
typedef struct sl_candidates {
    float *scores, *open; /* `open` is -INFINITY where one is expanded */
    float *tops;          /* the best of each 16 of `open` */
    float *peaks;         /* the best of each 16 of `tops` */
    uint32_t *ids;
    size_t count;
    float floor;         /* what is not above it is not admitted */
    float near[SL_NEAR]; /* the scores of the best so far, best first */
    size_t near_count;   /* how many of them anybody asks for: of 0 none are noted */
} sl_candidates;

#define SL_NO_PLACE SIZE_MAX

typedef struct sl_candidate_kernels {
    /* None there or near, and any number admitted. */
    void (*empty)(sl_candidates *all);
    /* Appends what of n is above the floor. NaN is not. */
    void (*admit)(sl_candidates *all, const float *scores, const uint32_t *ids, size_t n);
    /* The place of the best that is open, which it no longer is; SL_NO_PLACE where none is. */
    size_t (*best)(sl_candidates *all);
    /* How many of n scores are no less than a bound. */
    size_t (*at_least)(const float *scores, size_t n, float bound);
    /* Leaves the `wanted` best, or more of the best up to `most`, in the order they were in; what is no better than all
     * these is not admitted from then on. Where there are no more than `most`, nothing changes. */
    void (*keep)(sl_candidates *all, uint32_t wanted, uint32_t most);
} sl_candidate_kernels;

/* Products of many rows with many queries. A tile holds consecutive rows of I8 or I4 codes side by side: of a group of
 * `group` rows, as many as a register holds sums, the first four elements of each, then the next four, so that a
 * register's sums need not be added to one another. Of I4 the elements in lower halves of bytes come first. */
#define SL_TILE_ROWS 256u /* a multiple of what any tier takes at once */

typedef struct sl_tile {
    sl_codes codes;
    size_t steps;            /* of four elements: sl_tile_steps */
    size_t rows;             /* up to SL_TILE_ROWS */
    uint32_t first;          /* number of its first row; the others follow */
    uint8_t *bytes;          /* SL_TILE_ROWS * 4 * steps, aligned to 64 */
    float *factors, *biases; /* SL_TILE_ROWS each */
    /* What is read after this tile, which scanning asks for a line at a time; the same where nothing is. */
    const uint8_t *ahead, *ahead_end;
} sl_tile;

static inline size_t sl_tile_steps(sl_codes codes, size_t dim) {
    return codes == SL_CODES_I4 ? 2 * ((dim + 7) / 8) : (dim + 3) / 4;
}

/* A query and what it has found: numbers and scores of rows that score above `least`. The caller sees to it that there
 * is room for a tile's and 16 more. */
typedef struct sl_scan {
    sl_query_code query; /* the code's elements in a tile's order, zero up to a multiple of 64 */
    float least;
    uint32_t rows; /* of the tile, the first so many are looked at */
    uint32_t count;
    uint32_t *ids;
    float *scores;
} sl_scan;

/* NULL in the scalar tier, for which there is nothing to gain. */
typedef struct sl_tile_kernels {
    /* Fills a tile with rows first to first + n - 1. */
    void (*pack)(sl_tile *tile, const sl_code_rows *rows, uint32_t first, size_t n);
    /* The scans are different ones, and none of them looks at more rows than the tile has. */
    void (*scan)(sl_tile *tile, sl_scan *const *scans, size_t n);
    /* Leaves the `keep` best of what was found, or a quarter more, in the order they were in; what is no better than
     * all these is not taken from then on. `exact`: no more than `keep`, but where several score as the last of them
     * do, as without it. */
    void (*best)(sl_scan *scan, uint32_t keep, int exact);
} sl_tile_kernels;

/* Re-ranking: a row of one type against a float query, dim elements, no alignment asked, nothing read behind dim. The
 * row's elements count as element * scale. */
typedef struct sl_refine_kernels {
    float (*dot)(const void *row, const float *query, size_t dim, float scale);
    float (*l2)(const void *row, const float *query, size_t dim, float scale);
    /* Both sums of a cosine in one pass over the row: returns the dot product, *row_norm2 gets the row's own. */
    float (*dot_norm)(const void *row, const float *query, size_t dim, float scale, float *row_norm2);
} sl_refine_kernels;

typedef struct sl_kernels {
    sl_isa isa;
    sl_score_fn *score[4]; /* by sl_codes */
    sl_unseen_fn *unseen;
    sl_candidate_kernels walk;
    sl_tile_kernels tile;

    /* Of n > 0 elements of x the nearest multiples of a unit, -127 to 127 of them, in `code`, and what they leave over
     * in x. Returns the unit, 0 where x is zero or not finite; *sum gets the sum of the code. */
    float (*take_byte)(float *x, size_t n, int8_t *code, int32_t *sum);

    /* One to one on raw vectors of any alignment; nothing is read behind dim. */
    int64_t (*dot_i8)(const int8_t *a, const int8_t *b, size_t dim);
    int64_t (*l2_i8)(const int8_t *a, const int8_t *b, size_t dim);
    int64_t (*dot_u8)(const uint8_t *a, const uint8_t *b, size_t dim);
    int64_t (*l2_u8)(const uint8_t *a, const uint8_t *b, size_t dim);
    int64_t (*dot_i16)(const int16_t *a, const int16_t *b, size_t dim);
    int64_t (*l2_i16)(const int16_t *a, const int16_t *b, size_t dim);

    sl_refine_kernels refine[4]; /* by sl_refine: F32 and I16; rows of BF16 become floats first (codec.h) */
} sl_kernels;

/* The table of one tier; NULL where this build or machine lacks it. */
const sl_kernels *sl_kernels_of(sl_isa isa);

/* The table of the tier in use, sl_cpu_tier(). */
const sl_kernels *sl_kernels_best(void);

#endif
