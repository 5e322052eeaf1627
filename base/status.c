#define _POSIX_C_SOURCE 200809L
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[SL_ERROR_SIZE];

#define SL_X(name, number, text) [number] = "SL_" #name,
static const char *const status_names[] = {SL_STATUS_MAP(SL_X)};
#undef SL_X
#define SL_X(name, number, text) [number] = text,
static const char *const status_texts[] = {SL_STATUS_MAP(SL_X)};
#undef SL_X

static int known(sl_status status) {
    return (size_t)status < sizeof status_names / sizeof *status_names;
}

const char *sl_status_name(sl_status status) {
    return known(status) ? status_names[status] : "SL_?";
}

const char *sl_status_text(sl_status status) {
    return known(status) ? status_texts[status] : "unknown status";
}

const char *sl_last_error(void) {
    return last_error;
}

const char *sl_version(void) {
#define SL_STR_(x) #x
#define SL_STR(x)  SL_STR_(x)
    return SL_STR(SL_VERSION_MAJOR) "." SL_STR(SL_VERSION_MINOR) "." SL_STR(SL_VERSION_PATCH);
}

sl_status sl_fail(sl_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return status;
}

sl_status sl_fail_in(sl_status status, const char *format, ...) {
    char detail[SL_ERROR_SIZE];
    memcpy(detail, last_error, sizeof detail);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length + 3 < sizeof last_error)
        snprintf(last_error + length, sizeof last_error - (size_t)length, ": %s", detail);
    return status;
}

sl_status sl_fail_errno(const char *what, const char *path) {
    int error = errno;
    char text[128];
    /* The XSI form: strerror itself is not safe beside other threads. */
    if (strerror_r(error, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", error);
    return sl_fail(error == ENOSPC ? SL_ENOSPC : SL_EIO, "%s %s: %s", what, path, text);
}
