/* Runs the checks of the kernels as a program, for a real or emulated machine without a test library. Exit 0: all
 * passed; 1: some failed; 77: the tier asked for is missing. */
#include "tests/distance/kernel_checks.h"

#include <stdio.h>
#include <string.h>

static void run_checks(const sl_kernels *kernels, check_count *count) {
    check_pairs(kernels, count);
    for (int codes = SL_CODES_I8; codes <= SL_CODES_I4; codes++)
        check_scores(kernels, (sl_codes)codes, count);
    check_differences(kernels, count);
    check_far_rows(kernels, count);
    check_unseen(kernels, count);
    check_candidates(kernels, count);
    check_tiles(kernels, SL_CODES_I8, count);
    check_tiles(kernels, SL_CODES_I4, count);
    check_best(kernels, count);
    check_split_byte(kernels, count);
    check_level_sums(kernels, count);
    check_sign_bytes(kernels, count);
    check_refine(kernels, SL_REFINE_F32, count);
    check_refine(kernels, SL_REFINE_I16, count);
}

int main(int argc, char **argv) {
    check_count count = {0};
    int seen = 0;
    for (int isa = 0; isa < SL_ISA_COUNT; isa++) {
        const sl_kernels *kernels = sl_kernels_of((sl_isa)isa);
        if (!kernels || (argc > 1 && strcmp(argv[1], sl_isa_name(kernels->isa)) != 0)) continue;
        printf("%s\n", sl_isa_name(kernels->isa));
        run_checks(kernels, &count);
        seen++;
    }
    if (!seen) {
        printf("skipped: this machine lacks %s\n", argc > 1 ? argv[1] : "every tier");
        return 77;
    }
    check_conversions(&count);
    printf("%zu passed, %zu failed\n", count.passed, count.failed);
    if (count.failed) printf("first failure: %s\n", count.first);
    return count.failed != 0;
}
