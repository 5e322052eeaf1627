/*
 * The kernel table: everything that must be fast, once for each ISA tier.
 *
 * One body (body.h) holds the loops. A tier is a thin file that defines the lane operations and includes the body.
 * Integer results are exact. They are the same on every tier, for every value and every dim up to SL_MAX_DIM. Float
 * results agree with the scalar tier within dim * 2^-23 * sum|a_i b_i|.
 */
#ifndef SL_DISTANCE_KERNELS_H
#define SL_DISTANCE_KERNELS_H

#include "base/visited.h"

/* Kernels read rows in whole steps of this many bytes. The query is zero behind its last element, so no kernel over
 * rows has a tail. */
#define SL_ROW_STEP 64u

/*
 * Geometry of an array of code rows.
 *
 * A kernel reads `width` bytes of a row: the codes, and behind them anything readable, since the query is zero there.
 * F32 rows must be finite there, because 0 * NaN is NaN. A row has a float factor somewhere in its pitch. If `bias` is
 * not 0, a float bias follows the factor. SL_ROW_STEP bytes behind the last row are readable.
 */
typedef struct sl_code_rows {
    const uint8_t *base;
    size_t pitch;       /* bytes from row to row, a multiple of 4 */
    size_t size;        /* bytes that belong to a row: its pitch, or fewer if other data follows */
    size_t width;       /* bytes read of each, a multiple of SL_ROW_STEP */
    size_t factor;      /* byte offset of the factor in a row, a multiple of 4 */
    size_t bias;        /* byte offset of the bias, factor + 4, or 0: no bias */
    size_t differences; /* F32 and I16: elements of a row that is scored by squared differences, -|x - q|^2 / 2, without
                           factor and bias. 0: rows are scored by products */
} sl_code_rows;

/*
 * A query in the form of the row kernels. `code` is 64-byte aligned, has `width` bytes (2 * width for I4), and is zero
 * behind the last element.
 *
 *   I8    int8_t. Rows hold unsigned bytes: a signed code x is stored as x + 128, so that vpdpbusd takes the bytes as
 *         they are. `offset`, 128 * the sum of the query, takes out what the 128 adds, once a query.
 *
 *   I16   int16_t. Rows hold int16_t.
 *
 *   F32   float. Rows hold float.
 *
 *   I4    int8_t. The first `width` bytes belong to the lower halves of a row's bytes, the others to the upper halves.
 *         A number k in a row stands for 2k - 15, and `offset` is 15 * the sum of the query.
 */
typedef struct sl_query_code {
    const void *code;
    int64_t offset; /* I8 and I4; 0 for other codes */
    float scale;
    float bias_scale; /* weight of the rows' bias */
} sl_query_code;

/*
 * Scores n rows: out[i] = (dot(row ids[i], query) - offset) * scale * factor(row) + bias(row) * bias_scale. Larger is
 * nearer under every metric. An id may come twice.
 *
 * Rows with differences: out[i] = -|row ids[i] - query|^2 / 2. Vectors far from the origin have large products with
 * small differences, which floats round away. Float differences of near vectors are exact. I16 rows sum their squares
 * in integers. The relative error of the sum is at most dim * 2^-23. Tiles give the same bits on every tier.
 *
 * While row i is scored, row i + ahead is prefetched. An `ahead` of 0 prefetches nothing.
 */
typedef void sl_score_fn(const sl_code_rows *rows, const sl_query_code *query, const uint32_t *ids, size_t n,
                         size_t ahead, float *out);

/* The order in which links are loaded that other threads store. The address of a row depends on the link, which orders
 * the loads of both on every machine. The thread sanitizer sees no such dependency. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SL_LINK_ORDER __ATOMIC_ACQUIRE
#define SL_LINKS_NEED_ORDER
#endif
#endif
#ifndef SL_LINK_ORDER
#define SL_LINK_ORDER __ATOMIC_RELAXED
#endif
#define SL_NO_LINK 0xffffffffu /* ends a list of links; it is no id, since `count` is at most this */

/*
 * Finds the unvisited links of a list, up to its end: marks the links below `count` that are not marked yet, and writes
 * them to `found`, which has room for degree + 16. Skips links that are not below `count`. Returns how many it found.
 */
typedef size_t sl_unvisited_fn(sl_visited *visited, const uint32_t *links, size_t degree, size_t count,
                               uint32_t *found);

#define SL_BEST_SCORES 16u

/*
 * The candidates of a walk, in order of arrival.
 *
 * `scores`, `open` and `ids` have room for 32 more candidates, `tops` and `peaks` for 16 more than those need. Behind
 * the last candidate, `open` and `tops` are -INFINITY to the end of its sixteen. `peaks` are valid only above the
 * tier's threshold of candidates.
 */
typedef struct sl_candidates {
    float *scores, *open; /* `open`: the score, or -INFINITY once the candidate is expanded */
    float *tops;          /* the best of each 16 of `open` */
    float *peaks;         /* the best of each 16 of `tops` */
    uint32_t *ids;
    size_t count;
    float threshold;                   /* only scores above it are admitted */
    float best_scores[SL_BEST_SCORES]; /* so far, best first */
    size_t best_count;                 /* how many of them the walk uses; 0: none are kept */
} sl_candidates;

#define SL_NO_PLACE SIZE_MAX

typedef struct sl_candidate_kernels {
    /* Empties the pool. It admits any score then. */
    void (*empty)(sl_candidates *all);
    /* Appends each of n scores that is above the threshold. NaN never is. */
    void (*admit)(sl_candidates *all, const float *scores, const uint32_t *ids, size_t n);
    /* Closes the best open candidate and returns its place; SL_NO_PLACE if none is open. */
    size_t (*best)(sl_candidates *all);
    /* Returns how many of n scores are at least `bound`. */
    size_t (*at_least)(const float *scores, size_t n, float bound);
    /* Keeps the `wanted` best, up to `most` of them, in their order. If there are at most `most`, nothing changes. From
     * then on, admits no score that is no better than all of these. */
    void (*keep)(sl_candidates *all, uint32_t wanted, uint32_t most);
} sl_candidate_kernels;

/*
 * Products of many rows with many queries.
 *
 * A tile holds consecutive rows side by side: of I8 or I4 codes, or of F32 codes with differences. A group is as many
 * rows as a register holds sums. The tile holds the first four bytes of each row of a group, then the next four: a step
 * has four elements of I8 or I4, and one of F32. So the sums in a register need not be added to one another. For
 * I4 the elements in lower halves of bytes come first.
 */
#define SL_TILE_ROWS 256u /* a multiple of the rows that any tier takes at once */

typedef struct sl_tile {
    sl_codes codes;
    size_t steps;            /* steps of four bytes: sl_tile_steps */
    size_t rows;             /* at most SL_TILE_ROWS */
    uint32_t first;          /* number of its first row; the other rows follow */
    uint8_t *bytes;          /* SL_TILE_ROWS * 4 * steps, aligned to 64 */
    float *factors, *biases; /* SL_TILE_ROWS each */
    /* The memory that the caller reads after this tile. Scanning prefetches it a line at a time. Equal pointers:
     * none. */
    const uint8_t *ahead, *ahead_end;
} sl_tile;

static inline size_t sl_tile_steps(sl_codes codes, size_t dim) {
    if (codes == SL_CODES_F32) return dim;
    return codes == SL_CODES_I4 ? 2 * ((dim + 7) / 8) : (dim + 3) / 4;
}

/* A query and its hits: numbers and scores of rows that score above `least`. The caller provides room for a tile's hits
 * and 16 more. */
typedef struct sl_scan {
    sl_query_code query; /* the code is in the order of tiles, and zero up to a multiple of 64 bytes */
    float least;
    uint32_t rows; /* rows of the tile to scan, from its first */
    uint32_t count;
    uint32_t *ids;
    float *scores;
} sl_scan;

typedef struct sl_tile_kernels {
    /* Fills a tile with rows first to first + n - 1. */
    void (*pack)(sl_tile *tile, const sl_code_rows *rows, uint32_t first, size_t n);
    /* Scans the tile for n different scans. No scan covers more rows than the tile has. */
    void (*scan)(sl_tile *tile, sl_scan *const *scans, size_t n);
    /* Keeps the `keep` best hits, or up to a quarter more, in their order. From then on, takes no row that is no better
     * than all of these. `exact`: keeps more than `keep` only if several hits share the last score. */
    void (*best)(sl_scan *scan, uint32_t keep, int exact);
} sl_tile_kernels;

/* Re-ranking: scores a row of one type against a float query of dim elements. Rows need no alignment, and nothing
 * behind dim is read. An element of the row counts as element * scale. */
typedef struct sl_refine_kernels {
    float (*dot)(const void *row, const float *query, size_t dim, float scale);
    float (*l2)(const void *row, const float *query, size_t dim, float scale);
    /* Returns the dot product. *row_norm2 gets the row's product with itself, from the same pass over the row. */
    float (*dot_norm)(const void *row, const float *query, size_t dim, float scale, float *row_norm2);
} sl_refine_kernels;

typedef struct sl_kernels {
    sl_isa isa;
    sl_score_fn *score[4]; /* by sl_codes */
    sl_unvisited_fn *unvisited;
    sl_candidate_kernels walk;
    sl_tile_kernels tile;

    /* Splits n > 0 elements of x into bytes and a rest. Writes to `code` the nearest multiples of a unit, -127 to 127
     * of them, and leaves the rest in x. *sum gets the sum of the code. Returns the unit, which is 0 if x is zero or
     * not finite. */
    float (*split_byte)(float *x, size_t n, int8_t *code, int32_t *sum);

    /* Writes n unsigned bytes minus 128 to `code` and returns their sum. */
    int32_t (*sign_bytes)(const uint8_t *bytes, size_t n, int8_t *code);

    /* Sums the products of n elements of x with their levels (levels.h) at one step of 4-bit codes, and the squares of
     * the levels. All tiers add in the same order. */
    void (*level_sums)(const float *x, size_t n, float inverse, double *products, double *squares);

    /* Two raw vectors of any alignment. Nothing behind dim is read. */
    int64_t (*dot_i8)(const int8_t *a, const int8_t *b, size_t dim);
    int64_t (*l2_i8)(const int8_t *a, const int8_t *b, size_t dim);
    int64_t (*dot_u8)(const uint8_t *a, const uint8_t *b, size_t dim);
    int64_t (*l2_u8)(const uint8_t *a, const uint8_t *b, size_t dim);
    int64_t (*dot_i16)(const int16_t *a, const int16_t *b, size_t dim);
    int64_t (*l2_i16)(const int16_t *a, const int16_t *b, size_t dim);

    sl_refine_kernels refine[4]; /* by sl_refine: F32 and I16; rows of BF16 become floats first (encode.h) */
} sl_kernels;

/* Returns the table of a tier, or NULL if this build or machine lacks the tier. */
const sl_kernels *sl_kernels_of(sl_isa isa);

/* Returns the table of the tier in use, sl_cpu_tier(). */
const sl_kernels *sl_kernels_best(void);

#endif
