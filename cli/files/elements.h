/* Element types of vector files, and their conversion. */
#ifndef CLI_FILES_ELEMENTS_H
#define CLI_FILES_ELEMENTS_H

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

/* The first seven types, in order: the types that a file can be converted to. */
#define ELEMENT_TARGETS "f32|f16|i8|u8|i16|i32|u64"

const char *element_name(element type);
size_t element_size(element type);
int element_is_float(element type);

/* The library's type for vectors of this type: the same type, or f32 if the library lacks it. */
sl_dtype element_dtype(element type);
/* The element type for a type of the library that the command reads. */
element element_of_dtype(sl_dtype dtype);

/* Converts n elements. from and to do not overlap. Rounds to nearest between floating-point types. NaN and infinity
 * pass.
 * Returns: n, or the number of the first element that `to_type` cannot hold: one out of range, or a finite one that
 * becomes infinite. Without `round`, also a float that is not whole (to integers), or an integer that would be rounded
 * (to floats). */
size_t elements_convert(const void *from, element from_type, void *to, element to_type, size_t n, int round);

/* Prints one element in decimal, for a message. */
void element_print(const void *from, element type, char *out, size_t size);

/* Swaps the byte order of n elements of `size` bytes, in place. */
void elements_swap(void *data, size_t size, size_t n);

#endif
