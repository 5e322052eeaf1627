/* Exact sums: any order and any division give the same bits, and no term is lost beside others. */
#include "base/exact_sum.h"
#include "tests/support/check_main.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { COUNT = 30000 };
static double values[COUNT];

/* Fills `values` with numbers of all sizes, whose sum in doubles depends on the order. */
static void draw(double largest) {
    uint64_t state = 12345;
    for (size_t i = 0; i < COUNT; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double unit = (double)(state >> 11) / 9007199254740992.0 - 0.5;
        values[i] = unit * pow(largest, (double)(state >> 56) / 256 * 2 - 1);
    }
}

static int same(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

START_TEST(small_terms_survive_large_ones) {
    static const double terms[] = {1e300, 1, 1e-300, 0x1p-1074, -1e300, 3, 0x1p-1074, -0.0};
    sl_exact_sum sum = {.pending = 0};
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        sl_exact_add(&sum, terms[i]);
    ck_assert(sl_exact_value(&sum) == 4 + 1e-300);
    sl_exact_add(&sum, -4);
    ck_assert(sl_exact_value(&sum) == 1e-300);
    sl_exact_add(&sum, -1e-300);
    ck_assert(sl_exact_value(&sum) == 0x1p-1073);
    sl_exact_add(&sum, -0x1p-1073);
    ck_assert(sl_exact_value(&sum) == 0);
}
END_TEST

START_TEST(order_and_division_change_no_bit) {
    static const double sizes[] = {10, 1e20, 1e100};
    for (size_t s = 0; s < 3; s++) {
        sl_exact_sum up = {.pending = 0}, down = {.pending = 0}, parts[7];
        draw(sizes[s]);
        memset(parts, 0, sizeof parts);
        for (size_t i = 0; i < COUNT; i++) {
            sl_exact_add(&up, values[i]);
            sl_exact_add(&down, values[COUNT - 1 - i]);
            sl_exact_add(&parts[i * i % 7], values[i]);
        }
        for (size_t p = 1; p < 7; p++)
            sl_exact_merge(&parts[0], &parts[p]);
        ck_assert(same(sl_exact_value(&up), sl_exact_value(&down)));
        ck_assert(same(sl_exact_value(&up), sl_exact_value(&parts[0])));
        for (size_t i = 0; i < COUNT; i++)
            sl_exact_add(&up, -values[i]);
        ck_assert(sl_exact_value(&up) == 0);
    }
}
END_TEST

START_TEST(products_are_exact) {
    sl_exact_sum sum = {.pending = 0};
    for (size_t i = 0; i < 5000; i++) {
        const double a = 1 + (double)i * DBL_EPSILON, b = 3 + 2 * (double)i * DBL_EPSILON;
        sl_exact_add_product(&sum, a, b);
        /* a * b = 3 + 5 i e + 2 i^2 e^2, each term of which is a double. */
        sl_exact_add(&sum, -3);
        sl_exact_add(&sum, -5 * (double)i * DBL_EPSILON);
        sl_exact_add(&sum, -2 * (double)(i * i) * DBL_EPSILON * DBL_EPSILON);
        ck_assert(sl_exact_value(&sum) == 0);
    }
}
END_TEST

START_TEST(means_and_deviations) {
    sl_exact_sum sum = {.pending = 0}, squares = {.pending = 0};
    /* The spread is far below the numbers: formulas in doubles lose it. */
    for (size_t i = 0; i < 1000; i++) {
        const double x = 1e9 + (double)(i % 2);
        sl_exact_add(&sum, x);
        sl_exact_add_product(&squares, x, x);
    }
    ck_assert(sl_exact_mean(&sum, 1000) == 1e9 + 0.5);
    ck_assert_double_eq_tol(sl_exact_deviation(&sum, &squares, 1000), 250, 1e-9);
    sl_exact_sum large = {.pending = 0};
    for (size_t i = 0; i < 10; i++)
        sl_exact_add(&large, DBL_MAX);
    ck_assert(isinf(sl_exact_value(&large)));
    ck_assert(isfinite(sl_exact_mean(&large, 10)) && sl_exact_mean(&large, 10) > 0.999 * DBL_MAX);
    sl_exact_sum same_numbers = {.pending = 0}, same_squares = {.pending = 0};
    for (size_t i = 0; i < 999; i++) {
        sl_exact_add(&same_numbers, 0.1);
        sl_exact_add_product(&same_squares, 0.1, 0.1);
    }
    ck_assert_double_eq_tol(sl_exact_deviation(&same_numbers, &same_squares, 999), 0, 1e-28);
}
END_TEST

int main(void) {
    TCase *test = tcase_create("exact_sum");
    tcase_add_test(test, small_terms_survive_large_ones);
    tcase_add_test(test, order_and_division_change_no_bit);
    tcase_add_test(test, products_are_exact);
    tcase_add_test(test, means_and_deviations);
    return check_main("exact_sum", &test, 1);
}
