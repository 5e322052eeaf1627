/* Structs that grow from release to release. Every parameter struct, and every struct that is filled for the caller,
 * begins with size_t struct_size: its size in the header that the caller was compiled against. */
#ifndef SL_BASE_PARAMS_H
#define SL_BASE_PARAMS_H

#include "base/status.h"

/* Fills a caller's parameter struct of struct_size bytes with the defaults of `mine`, as far as both reach. The part of
 * a newer caller's struct beyond ours is zeroed: zero asks for nothing. */
void sl_params_defaults(void *out, size_t struct_size, const void *mine, size_t size);

/*
 * Replaces the defaults of `mine` by the fields of the caller's struct.
 *
 * An older caller's struct lacks fields; these keep their defaults. A newer caller's struct is taken if the part that
 * we do not know is zero. Afterwards mine->struct_size is `size`.
 *
 * Parameters:
 *   mine   `size` bytes that hold the defaults: its own _init has run
 *   given  the caller's struct; NULL leaves all defaults
 *   init   the function that the caller should have called, for the message: "sl_index_params_init"
 *
 * Errors: SL_EINVAL (struct_size was never set), SL_EUNSUPPORTED (asks for something newer than this library).
 */
sl_status sl_params_in(void *mine, size_t size, const void *given, const char *init);

/* Tests a struct that the library is to fill, before the work begins. `name` is the name of its type. Errors: SL_EINVAL
 * if `out` is NULL or its struct_size was never set. */
sl_status sl_params_check_out(const void *out, const char *name);

/* Copies `mine` to the caller's struct, which keeps its struct_size. The part of a newer caller's struct beyond ours is
 * zeroed. `out` has passed sl_params_check_out. */
void sl_params_out(void *out, const void *mine, size_t size);

#endif
