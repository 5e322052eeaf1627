#include "base/params.h"

#include <string.h>

/* No struct of the library is nearly as large. The caller never set a larger struct_size. */
#define LARGEST_STRUCT 4096u

static size_t struct_size_of(const void *given) {
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

static int plausible(size_t struct_size) {
    return struct_size > sizeof(size_t) && struct_size <= LARGEST_STRUCT;
}

sl_status sl_params_in(void *mine, size_t size, const void *given, const char *init) {
    if (!given) return SL_OK;
    size_t theirs = struct_size_of(given);
    if (!plausible(theirs)) return sl_fail(SL_EINVAL, "struct_size is %zu; call %s first", theirs, init);
    const unsigned char *bytes = given;
    for (size_t i = size; i < theirs; i++)
        if (bytes[i])
            return sl_fail(SL_EUNSUPPORTED,
                           "the struct filled by %s sets fields this library (%s) does not know; link a newer one",
                           init, sl_version());
    memcpy(mine, given, theirs < size ? theirs : size);
    memcpy(mine, &size, sizeof size);
    return SL_OK;
}

sl_status sl_params_check_out(const void *out, const char *name) {
    if (!out) return sl_fail(SL_EINVAL, "%s to fill is NULL", name);
    size_t theirs = struct_size_of(out);
    if (!plausible(theirs)) return sl_fail(SL_EINVAL, "struct_size is %zu; set it to sizeof(%s) first", theirs, name);
    return SL_OK;
}

void sl_params_out(void *out, const void *mine, size_t size) {
    size_t theirs = struct_size_of(out);
    unsigned char *to = out;
    const unsigned char *from = mine;
    size_t both = theirs < size ? theirs : size;
    memcpy(to + sizeof theirs, from + sizeof theirs, both - sizeof theirs);
    memset(to + both, 0, theirs - both);
}

void sl_params_defaults(void *out, size_t struct_size, const void *mine, size_t size) {
    if (!out || !plausible(struct_size)) return;
    memcpy(out, &struct_size, sizeof struct_size);
    sl_params_out(out, mine, size);
}
