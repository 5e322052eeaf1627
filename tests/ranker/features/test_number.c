/* Numbers as text, text as numbers, and vocabularies. */
#include "base/random.h"
#include "ranker/features/number.h"
#include "ranker/features/vocabulary.h"
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_number(const char *text) {
    double got, wanted = strtod(text, NULL);
    ck_assert_msg(sl_number_read(text, strlen(text), &got), "'%s' is not read", text);
    ck_assert_msg(memcmp(&got, &wanted, sizeof got) == 0, "'%s' is %.17g, not %.17g", text, got, wanted);
}

START_TEST(numbers_are_read_exactly) {
    static const char *const texts[] = {"0",
                                        "-0",
                                        "+5",
                                        "1",
                                        "007",
                                        "1.",
                                        ".5",
                                        "-.5e1",
                                        "1e22",
                                        "1e23",
                                        "123456789012345678",
                                        "9007199254740993",
                                        "2.2250738585072011e-308",
                                        "4.9e-324",
                                        "2.4703282292062327e-324",
                                        "1e-400",
                                        "1.7976931348623157e308",
                                        "0e999",
                                        "0.000000000000000000000000000000000001",
                                        "8.98846567431158e307",
                                        "3.14159265358979323846264338327950288",
                                        "1000000000000000000000000000000",
                                        "179769313486231570e291",
                                        "0.1",
                                        "0.3",
                                        "123456.789e-3",
                                        "1E5",
                                        "1e+5",
                                        "1e-4294967295",
                                        "0e4294967297",
                                        "1e-99999999999999999999",
                                        "1e000000000000000000005"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_number(texts[i]);
    char text[64];
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t bits = sl_random_at(1, i);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        snprintf(text, sizeof text, "%.*g", (int)(1 + sl_random_at(2, i) % 20), value);
        if (isfinite(strtod(text, NULL))) check_number(text);
        snprintf(text, sizeof text, "%.*f", (int)(i % 9), (double)(int64_t)bits / 1e9);
        check_number(text);
    }
}
END_TEST

START_TEST(other_texts_are_no_numbers) {
    static const char *const texts[] = {"1e4294967297",
                                        "1e-18446744073709551615e1",
                                        "1e99999999999999999999",
                                        "",
                                        " 5",
                                        "5 ",
                                        "1e400",
                                        "-1e400",
                                        "inf",
                                        "infinity",
                                        "0x10",
                                        "1e",
                                        "1e+",
                                        ".",
                                        "-",
                                        "+",
                                        "1,5",
                                        "1.2.3",
                                        "--1",
                                        "e5",
                                        "1_000",
                                        "na",
                                        "nann",
                                        "5\n"};
    double value;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(!sl_number_read(texts[i], strlen(texts[i]), &value), "'%s' is read", texts[i]);
    ck_assert(!sl_number_read("1\0", 2, &value));
    static const char *const nans[] = {"nan", "NaN", "NAN"};
    for (size_t i = 0; i < 3; i++)
        ck_assert(sl_number_read(nans[i], 3, &value) && isnan(value));
    char *digits = malloc(1000);
    memset(digits, '1', 1000);
    ck_assert(!sl_number_read(digits, 1000, &value));
    digits[500] = 'x';
    ck_assert(!sl_number_read(digits, 501, &value));
    free(digits);
}
END_TEST

/* Fills `out` with runs of `count` equal bytes, up to a count of 0. */
typedef struct run {
    size_t count;
    const char *text;
} run;

static size_t fill_runs(const run *runs, char *out) {
    size_t size = 0;
    for (; runs->count; runs++)
        for (size_t i = 0; i < runs->count; i++)
            for (const char *at = runs->text; *at; at++)
                out[size++] = *at;
    out[size] = '\0';
    return size;
}

/* Numbers of any length read as the C library reads them. */
START_TEST(long_numbers_are_read_exactly) {
    static const run texts[][6] = {
        {{100000, "0"}},
        {{1, "-0."}, {100000, "0"}},
        {{1, "0."}, {100000, "0"}, {1, "1"}},
        {{100000, "0"}, {1, "5"}},
        {{1, "-"}, {100000, "0"}, {1, "12.5e1"}},
        {{1, "0."}, {100000, "0"}, {1, "25e100001"}},
        {{1, "1"}, {100000, "0"}, {1, "e-100000"}},
        {{1, "0."}, {1000000, "0"}, {1, "3e1000001"}},
        {{1, "1."}, {100000, "3"}},
        {{1, "."}, {100000, "9"}},
        {{300, "7"}, {1, "."}, {700, "7"}},
        /* The middle between two doubles, and slightly above it. */
        {{1, "9007199254740993"}, {1, "."}, {5000, "0"}},
        {{1, "9007199254740993"}, {1, "."}, {5000, "0"}, {1, "1"}},
        {{1, "9007199254740993"}, {5000, "0"}, {1, "1e-5001"}},
        {{1, "0."}, {400, "0"}, {1, "1"}},
    };
    char *text = malloc(2000000);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        (void)fill_runs(texts[i], text);
        check_number(text);
    }
    static const run endless[] = {{1, "1"}, {100000, "0"}, {0, NULL}}, none[] = {{600, "0"}, {1, "x"}, {0, NULL}};
    double value;
    ck_assert(!sl_number_read(text, fill_runs(endless, text), &value));
    ck_assert(!sl_number_read(text, fill_runs(none, text), &value));
    free(text);
}
END_TEST

START_TEST(integers_and_floats_as_text) {
    static const int64_t integers[] = {0, 1, -1, 10, -10, 1234567890123, INT64_MAX, INT64_MIN, INT64_MAX - 1};
    char text[SL_NUMBER_TEXT], wanted[SL_NUMBER_TEXT];
    int64_t back;
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        size_t size = sl_integer_write(integers[i], text);
        snprintf(wanted, sizeof wanted, "%lld", (long long)integers[i]);
        ck_assert_uint_eq(size, strlen(wanted));
        ck_assert_mem_eq(text, wanted, size);
        ck_assert(sl_integer_read(text, size, &back) && back == integers[i]);
    }
    static const char *const others[] = {"",
                                         "-",
                                         "01",
                                         "-0",
                                         "+1",
                                         "1.0",
                                         "9223372036854775808",
                                         "1 ",
                                         "00",
                                         "-01",
                                         "a",
                                         "99999999999999999999",
                                         "-9223372036854775809"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!sl_integer_read(others[i], strlen(others[i]), &back), "'%s' is read", others[i]);
    static const struct {
        double value;
        const char *text;
    } floats[] = {{0.5, "0.5"},
                  {-0.0, "0"},
                  {3, "3"},
                  {0.1, "0.1"},
                  {1e300, "1e+300"},
                  {1.0 / 3, "0.3333333333333333"},
                  {-2.5e-7, "-2.5e-07"},
                  {1e15, "1000000000000000"}};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        size_t size = sl_number_write(floats[i].value, text);
        ck_assert_msg(size == strlen(floats[i].text) && memcmp(text, floats[i].text, size) == 0, "%.*s", (int)size,
                      text);
    }
    ck_assert_uint_eq(sl_number_write_f32(0.1f, text), 3);
    ck_assert_mem_eq(text, "0.1", 3);
    ck_assert_uint_eq(sl_number_write_f32(16777216, text), 8);
}
END_TEST

/* An installed locale with a decimal comma changes nothing. */
START_TEST(locales_change_nothing) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C"};
    size_t i = 0;
    while (!setlocale(LC_ALL, names[i]))
        i++;
    double value;
    char text[SL_NUMBER_TEXT];
    ck_assert(sl_number_read("0.12345678901234567890", 22, &value));
    ck_assert_double_eq(value, 0.12345678901234567890);
    ck_assert_uint_eq(sl_number_write(0.25, text), 4);
    ck_assert_mem_eq(text, "0.25", 4);
    setlocale(LC_ALL, "C");
}
END_TEST

/* ---- Vocabularies ---- */

START_TEST(vocabularies) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_vocabulary *v;
    size_t number;
    char text[32];
    ck_ok(sl_vocabulary_create(&allocator, &v));
    for (int64_t i = 0; i < 5000; i++) {
        size_t size = i % 2 ? sl_integer_write(i - 2500, text) : (size_t)snprintf(text, sizeof text, "v%d", (int)i);
        ck_ok(sl_vocabulary_add(v, text, size, SIZE_MAX, &number));
        ck_assert_uint_eq(number, (size_t)i);
    }
    for (int64_t i = 0; i < 5000; i++) {
        size_t size = i % 2 ? sl_integer_write(i - 2500, text) : (size_t)snprintf(text, sizeof text, "v%d", (int)i);
        ck_assert_uint_eq(sl_vocabulary_find(v, text, size), (size_t)i);
        ck_ok(sl_vocabulary_add(v, text, size, 0, &number));
        ck_assert_uint_eq(number, (size_t)i);
        ck_assert_uint_eq(sl_vocabulary_find_integer(v, i - 2500), i % 2 ? (size_t)i : SIZE_MAX);
    }
    ck_assert_uint_eq(sl_vocabulary_find(v, "v1", 2), SIZE_MAX);
    ck_ok(sl_vocabulary_add(v, "new", 3, 5000, &number));
    ck_assert_uint_eq(number, SIZE_MAX);
    ck_assert_uint_eq(sl_vocabulary_count(v), 5000);
    ck_assert_uint_gt(sl_vocabulary_bytes(v), 5000 * 8);
    sl_vocabulary_free(v);
    /* docs/FORMAT.md: XXH3, 64 bits, seed 0. */
    ck_assert_uint_eq(sl_text_hash("", 0), 0x2d06800538d394c2u);
}
END_TEST

/* Long texts that differ after an entry's bytes only. */
START_TEST(long_texts_are_told_apart) {
    enum { TRIED = 1 << 14, FIRST_MASK = 63 };
    sl_allocator allocator = sl_allocator_of(NULL);
    static uint64_t hashes[TRIED];
    char one[32], other[32];
    size_t pairs = 0;
    for (int i = 0; i < TRIED; i++) {
        int size = snprintf(one, sizeof one, "a long text, number %05d", i);
        hashes[i] = sl_text_hash(one, (size_t)size);
        for (int j = 0; j < i; j++) {
            if (hashes[i] >> 48 != hashes[j] >> 48 || ((hashes[i] ^ hashes[j]) & FIRST_MASK)) continue;
            sl_vocabulary *v;
            size_t number;
            snprintf(other, sizeof other, "a long text, number %05d", j);
            ck_ok(sl_vocabulary_create(&allocator, &v));
            ck_ok(sl_vocabulary_add(v, one, (size_t)size, SIZE_MAX, &number));
            ck_assert_uint_eq(sl_vocabulary_find(v, one, (size_t)size), 0);
            ck_assert_uint_eq(sl_vocabulary_find(v, other, (size_t)size), SIZE_MAX);
            ck_ok(sl_vocabulary_add(v, other, (size_t)size, SIZE_MAX, &number));
            ck_assert_uint_eq(number, 1);
            sl_vocabulary_free(v);
            pairs++;
        }
    }
    ck_assert_uint_gt(pairs, 0);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("numbers")};
    tcase_add_test(cases[0], numbers_are_read_exactly);
    tcase_add_test(cases[0], other_texts_are_no_numbers);
    tcase_add_test(cases[0], long_numbers_are_read_exactly);
    tcase_add_test(cases[0], integers_and_floats_as_text);
    tcase_add_test(cases[0], locales_change_nothing);
    tcase_add_test(cases[0], vocabularies);
    tcase_add_test(cases[0], long_texts_are_told_apart);
    return check_main("number", cases, 1);
}
