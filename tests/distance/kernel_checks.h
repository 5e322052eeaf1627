/* Checks one tier's kernels against plain loops, without a test library, so that the checks also run cross-compiled. */
#ifndef SL_TESTS_KERNEL_CHECKS_H
#define SL_TESTS_KERNEL_CHECKS_H

#include "distance/kernels.h"

typedef struct check_count {
    size_t passed, failed;
    char first[256]; /* the first failure */
} check_count;

/* Integers one to one: every dim, unaligned, against a guard page, random and extreme values. */
void check_pairs(const sl_kernels *kernels, check_count *count);
/* Checks one query against gathered rows, by codes: dims, geometries, counts, repeated ids, prefetch distances. */
void check_scores(const sl_kernels *kernels, sl_codes codes, check_count *count);
/* Scores by differences, of gathered rows and of tiles: dims, counts, sizes, vectors far from the origin. */
void check_differences(const sl_kernels *kernels, check_count *count);
/* Rows that lie more than 4 and 8 GiB from the first. */
void check_far_rows(const sl_kernels *kernels, check_count *count);
/* Checks which links are unvisited: list ends of every kind, ids twice, full tables, against a guard page. */
void check_unseen(const sl_kernels *kernels, check_count *count);
/* A walk's candidates: any scores, turns of every size; takes the best and drops the worst in between. */
void check_candidates(const sl_kernels *kernels, check_count *count);
/* Tiles of rows of I8 or I4 codes against several queries: dims, tile sizes, geometries, thresholds, rows whose factors
 * are no numbers. Tiles give all that the tier's scores say, and nothing else. */
void check_tiles(const sl_kernels *kernels, sl_codes codes, check_count *count);
/* The best hits: any scores, equal ones, extreme numbers. */
void check_best(const sl_kernels *kernels, check_count *count);
/* A query's bytes and rest: dims, magnitudes, zeros, NaN and infinity. */
void check_split_byte(const sl_kernels *kernels, check_count *count);
/* Sums over the levels of 4-bit codes, and unsigned bytes made signed: lengths, and numbers far out of range. */
void check_level_sums(const sl_kernels *kernels, check_count *count);
void check_sign_bytes(const sl_kernels *kernels, check_count *count);
/* Floats one to one, by row type. */
void check_refine(const sl_kernels *kernels, sl_refine type, check_count *count);
/* sl_to_float, sl_from_float and sl_convert over every 16-bit value. */
void check_conversions(check_count *count);

/* The avxvnni tier's file, built with AVX-512VL's form of its two instructions, for machines without AVX-VNNI. NULL if
 * this machine can't run them. */
const sl_kernels *avxvnni_by_evex(void);

#endif
