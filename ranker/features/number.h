/* Converts numbers to text and back, the same under every locale. */
#ifndef SL_RANKER_FEATURES_NUMBER_H
#define SL_RANKER_FEATURES_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define SL_NUMBER_TEXT 40u /* enough bytes for the text of any number */
#define SL_DIGITS      20u /* enough bytes for the digits of 64 bits */

/* Reads the whole text as a decimal number, correctly rounded. "nan" in any case is NaN.
 * Returns: false if the text is not a decimal number (spaces around it and hexadecimal are refused), or if the value
 * overflows to infinity. */
int sl_number_read(const char *text, size_t size, double *out);

/* Reads an integer. Returns: false if sl_integer_write would not write this very text (a plus, leading zeros). */
int sl_integer_read(const char *text, size_t size, int64_t *out);

/* Reads the whole text as decimal digits. Returns: false if it has another character, or is 2^64 or more. */
int sl_digits_read(const char *text, size_t size, uint64_t *out);

/* Write the text into `out`, of SL_NUMBER_TEXT bytes, without an ending NUL. Return its length. A float whose value is
 * an integer of 64 bits gets the integer's text. Another finite float gets the shortest text that reads back as the
 * same float. */
size_t sl_integer_write(int64_t value, char *out);
size_t sl_digits_write(uint64_t value, char *out); /* SL_DIGITS bytes are enough */
size_t sl_number_write(double value, char *out);
size_t sl_number_write_f32(float value, char *out);

/* Returns whether a float's value is an integer of 64 bits. *out gets the integer. */
static inline int sl_number_is_integer(double value, int64_t *out) {
    if (!(value >= -0x1p63 && value < 0x1p63)) return 0;
    *out = (int64_t)value;
    return (double)*out == value;
}

#endif
