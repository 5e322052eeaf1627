/* Structs that grow: every parameter struct and every struct filled for the caller begins with size_t struct_size, the
 * size it had in the header the caller was compiled against. */
#ifndef SL_BASE_PARAMS_H
#define SL_BASE_PARAMS_H

#include "base/status.h"

/* Fills a caller's parameter struct of struct_size bytes from `mine`, our defaults, as far as either goes; what a newer
 * caller's struct has beyond ours is zeroed, which asks for nothing. */
void sl_params_defaults(void *out, size_t struct_size, const void *mine, size_t size);

/* `mine`, of `size` bytes, holds the defaults (its own _init has run); fields the caller's struct has replace them, so
 * that fields an older caller lacks keep their defaults. `given` NULL leaves all of them. `init` is what the caller
 * should have called, for the message: "sl_index_params_init". A caller's struct that is larger than ours is taken if
 * what we do not know in it is zero. mine->struct_size is `size` afterwards.
 * Errors: SL_EINVAL (struct_size was never set), SL_EUNSUPPORTED (asks for something newer than this library). */
sl_status sl_params_in(void *mine, size_t size, const void *given, const char *init);

/* SL_EINVAL where `out`, a struct for us to fill, is NULL or its struct_size was never set; `name` is its type's. For
 * calls that should fail before they work. */
sl_status sl_params_check_out(const void *out, const char *name);

/* Copies `mine` to the caller's struct as far as that goes, keeping its struct_size; what a newer caller's struct has
 * beyond ours is zeroed. `out` has passed sl_params_check_out. */
void sl_params_out(void *out, const void *mine, size_t size);

#endif
