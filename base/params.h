/* Structs that grow from release to release. Every parameter struct, and every struct that the library fills, begins
 * with size_t struct_size: its size in the header that the caller was compiled against. */
#ifndef SL_BASE_PARAMS_H
#define SL_BASE_PARAMS_H

#include "base/status.h"

/* Fills a caller's parameter struct of struct_size bytes with the defaults of `mine`, as far as both reach. Zeroes the
 * part of a newer caller's struct beyond ours, since zero asks for nothing. */
void sl_params_defaults(void *out, size_t struct_size, const void *mine, size_t size);

/*
 * Replaces the defaults of `mine` by the fields of the caller's struct.
 *
 * Fields that an older caller's struct lacks keep their defaults. A newer caller's struct is accepted if the part that
 * we don't know is zero. Afterwards mine->struct_size is `size`.
 *
 * Parameters:
 *   mine   `size` bytes of defaults: its own _init has run
 *   given  the caller's struct; NULL leaves all defaults
 *   init   the function that the caller should have called, for the message: "sl_index_params_init"
 *
 * Errors: SL_EINVAL (struct_size was never set), SL_EUNSUPPORTED (the struct asks for something newer than this
 * library).
 */
sl_status sl_params_in(void *mine, size_t size, const void *given, const char *init);

/* Checks a struct that the library will fill, before the work begins. `name` is its type's name.
 * Errors: SL_EINVAL if `out` is NULL or its struct_size was never set. */
sl_status sl_params_check_out(const void *out, const char *name);

/* Copies `mine` to the caller's struct, which keeps its struct_size. Zeroes the part of a newer caller's struct beyond
 * ours. `out` has passed sl_params_check_out. */
void sl_params_out(void *out, const void *mine, size_t size);

#endif
