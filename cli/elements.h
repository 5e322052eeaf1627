/* Element types a vector file may hold, and their conversion. */
#ifndef CLI_ELEMENTS_H
#define CLI_ELEMENTS_H

#include <shortlist.h>

#include <stddef.h>
#include <stdint.h>

typedef enum element {
    ELEMENT_F32,
    ELEMENT_F16,
    ELEMENT_I8,
    ELEMENT_U8,
    ELEMENT_I16,
    ELEMENT_I32,
    ELEMENT_U64,
    ELEMENT_F64,
    ELEMENT_U16,
    ELEMENT_U32,
    ELEMENT_I64
} element;

/* The first seven, in their order: those a file can be converted to. */
#define ELEMENT_TARGETS "f32|f16|i8|u8|i16|i32|u64"

const char *element_name(element type);
size_t element_size(element type);
int element_is_float(element type);

/* The type in which the library takes vectors of this one: itself, or f32 for those it does not know. */
sl_dtype element_dtype(element type);
/* The other way round, for the types the command reads. */
element element_of_dtype(sl_dtype dtype);

/* n elements from one type to another; from and to do not overlap. Returns n, or the number of the first element that
 * `to_type` cannot hold: out of its range, finite and overflowing to infinity, or, unless `round` is set, not whole
 * (floats to integers) or not kept exactly (integers to floats). Between floating-point types values are rounded to
 * nearest, and NaN and infinity pass. */
size_t elements_convert(const void *from, element from_type, void *to, element to_type, size_t n, int round);

/* One element in decimal, for a message. */
void element_print(const void *from, element type, char *out, size_t size);

/* n elements of `size` bytes from the other byte order, in place. */
void elements_swap(void *data, size_t size, size_t n);

#endif
