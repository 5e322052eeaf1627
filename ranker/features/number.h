/* Numbers and their texts, the same under every locale. */
#ifndef SL_RANKER_FEATURES_NUMBER_H
#define SL_RANKER_FEATURES_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define SL_NUMBER_TEXT 40u /* bytes that the text of any number fits into */
#define SL_DIGITS      20u /* bytes that the digits of 64 bits fit into */

/* Reads the whole text as a decimal number, correctly rounded. "nan" in any case is NaN.
 * Returns: false if the text is no such number (also with spaces around it, or in hexadecimal), or is too large to
 * be finite. */
int sl_number_read(const char *text, size_t size, double *out);

/* Tells whether the text is the decimal form that sl_integer_write gives: no plus, no zeros in front. */
int sl_integer_read(const char *text, size_t size, int64_t *out);

/* Reads the whole text as decimal digits. Returns: false if there is another character, or 2^64 or more. */
int sl_digits_read(const char *text, size_t size, uint64_t *out);

/* Write the text into `out`, of SL_NUMBER_TEXT bytes, without an ending NUL. Return its length. A float that is an
 * integer of 64 bits has the integer's text. Any other finite float has the shortest text that reads back as itself. */
size_t sl_integer_write(int64_t value, char *out);
size_t sl_digits_write(uint64_t value, char *out); /* SL_DIGITS bytes are enough */
size_t sl_number_write(double value, char *out);
size_t sl_number_write_f32(float value, char *out);

/* Tells whether a float is an integer of 64 bits. *out gets it. */
static inline int sl_number_is_integer(double value, int64_t *out) {
    if (!(value >= -0x1p63 && value < 0x1p63)) return 0;
    *out = (int64_t)value;
    return (double)*out == value;
}

#endif
