#define _GNU_SOURCE
#include "ranker/features/number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two doubles, or a double and the middle between two, differ within this many digits. */
#define MOST_DIGITS 800u

/* The powers of ten that a double holds exactly. */
static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
#define EXACT_POWER  22
#define EXACT_DIGITS 15

/* A decimal number: digits * 10^exponent. */
typedef struct decimal {
    int negative;
    uint64_t digits; /* the first 18; not used if there are more */
    size_t count;    /* digits, counted from the first that is not 0 */
    int exponent;
} decimal;

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Reads digits from *at on. Returns their number. */
static size_t read_digits(const char **at, const char *end, decimal *number) {
    const char *start = *at;
    for (; *at < end && is_digit(**at); ++*at) {
        number->count += number->count || **at != '0';
        if (number->count <= 18) number->digits = 10 * number->digits + (uint64_t)(**at - '0');
    }
    return (size_t)(*at - start);
}

static int read_exponent(const char **at, const char *end, decimal *number) {
    int negative = 0, value = 0;
    ++*at;
    if (*at < end && (**at == '-' || **at == '+')) negative = *(*at)++ == '-';
    const char *start = *at;
    for (; *at < end && is_digit(**at); ++*at)
        if (value < 100000000) value = 10 * value + (**at - '0');
    number->exponent += negative ? -value : value;
    return *at > start;
}

/* Splits the text into sign, digits and exponent. Returns false if it is not a decimal number. */
static int read_decimal(const char *text, size_t size, decimal *number) {
    const char *at = text, *end = text + size;
    *number = (decimal){0};
    if (at < end && (*at == '-' || *at == '+')) number->negative = *at++ == '-';
    size_t whole = read_digits(&at, end, number), part = 0;
    if (at < end && *at == '.') {
        at++;
        part = read_digits(&at, end, number);
        number->exponent = -(int)part;
    }
    if (whole + part == 0) return 0;
    if (at < end && (*at == 'e' || *at == 'E') && !read_exponent(&at, end, number)) return 0;
    return at == end;
}

static int is_nan_text(const char *text, size_t size) {
    return size == 3 && (text[0] | 32) == 'n' && (text[1] | 32) == 'a' && (text[2] | 32) == 'n';
}

/* Writes the significant digits without a point, and the exponent. If digits are left out and one of them is not 0, a 1
 * stands for all of them. */
static void write_digits(const char *text, const decimal *number, char *out, size_t size) {
    size_t kept = 0, seen = 0;
    int rest = 0;
    for (; seen < number->count; text++) {
        if (!is_digit(*text) || (!seen && *text == '0')) continue;
        if (kept < MOST_DIGITS)
            out[kept++] = *text;
        else
            rest |= *text != '0';
        seen++;
    }
    const long left_out = (long)(number->count - kept);
    if (rest) out[kept++] = '1';
    snprintf(out + kept, size - kept, "e%ld", number->exponent + left_out - (rest != 0));
}

/* The C library's strtod rounds correctly. It runs in the "C" locale, which newlocale gives without an allocation. */
static double read_by_strtod(const char *text, const decimal *number) {
    char digits[MOST_DIGITS + 32];
    write_digits(text, number, digits, sizeof digits);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c) return (double)NAN;
    double value = strtod_l(digits, NULL, c);
    freelocale(c);
    return number->negative ? -value : value;
}

int sl_number_read(const char *text, size_t size, double *out) {
    if (is_nan_text(text, size)) {
        *out = (double)NAN;
        return 1;
    }
    decimal number;
    if (!read_decimal(text, size, &number)) return 0;
    /* Up to 15 digits are exact, and a power of ten up to 10^22 too. One operation on both then rounds correctly
     * (Clinger 1990). */
    if (!number.count) number.exponent = 0;
    if (number.count <= EXACT_DIGITS && number.exponent >= -EXACT_POWER && number.exponent <= EXACT_POWER) {
        double value = (double)number.digits;
        value = number.exponent < 0 ? value / exact_powers[-number.exponent] : value * exact_powers[number.exponent];
        *out = number.negative ? -value : value;
        return 1;
    }
    double value = read_by_strtod(text, &number);
    if (!isfinite(value)) return 0;
    *out = value;
    return 1;
}

int sl_integer_read(const char *text, size_t size, int64_t *out) {
    size_t at = size > 0 && text[0] == '-';
    if (size == at || size - at > 19) return 0;
    if (text[at] == '0' && size > 1) return 0;
    uint64_t value = 0;
    for (size_t i = at; i < size; i++) {
        if (!is_digit(text[i])) return 0;
        value = 10 * value + (uint64_t)(text[i] - '0');
    }
    if (value > (uint64_t)INT64_MAX + at) return 0;
    *out = at ? (int64_t)(0 - value) : (int64_t)value;
    return 1;
}

int sl_digits_read(const char *text, size_t size, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        if (!is_digit(text[i])) return 0;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return 0;
    }
    *out = value;
    return size > 0;
}

size_t sl_digits_write(uint64_t value, char *out) {
    char reversed[SL_DIGITS];
    size_t count = 0, length = 0;
    do {
        reversed[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count)
        out[length++] = reversed[--count];
    return length;
}

size_t sl_integer_write(int64_t value, char *out) {
    if (value >= 0) return sl_digits_write((uint64_t)value, out);
    out[0] = '-';
    return 1 + sl_digits_write(0 - (uint64_t)value, out + 1);
}

/* printf writes the locale's decimal point, which can have several bytes. Replaces each run of bytes that no number has
 * by one point. */
static size_t replace_point(char *text, size_t length) {
    size_t to = 0;
    for (size_t i = 0; i < length; i++) {
        int own = is_digit(text[i]) || text[i] == '-' || text[i] == '+' || text[i] == 'e';
        if (own)
            text[to++] = text[i];
        else if (to == 0 || text[to - 1] != '.')
            text[to++] = '.';
    }
    return to;
}

size_t sl_number_write(double value, char *out) {
    int64_t integer;
    if (sl_number_is_integer(value, &integer)) return sl_integer_write(integer, out);
    for (int digits = 15;; digits++) {
        size_t length = replace_point(out, (size_t)snprintf(out, SL_NUMBER_TEXT, "%.*g", digits, value));
        double back;
        if (digits == 17 || (sl_number_read(out, length, &back) && back == value)) return length;
    }
}

size_t sl_number_write_f32(float value, char *out) {
    int64_t integer;
    if (sl_number_is_integer((double)value, &integer)) return sl_integer_write(integer, out);
    for (int digits = 6;; digits++) {
        size_t length = replace_point(out, (size_t)snprintf(out, SL_NUMBER_TEXT, "%.*g", digits, (double)value));
        double back;
        if (digits == 9 || (sl_number_read(out, length, &back) && (float)back == value)) return length;
    }
}
