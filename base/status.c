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
    if (length >= 0 && (size_t)length + 3 < sizeof last_error) {
        size_t room = sizeof last_error - (size_t)length;
        snprintf(last_error + length, room, ": %.*s", (int)(room - 3), detail);
    }
    return status;
}

static const struct {
    int error;
    sl_status status;
    const char *remedy;
} system_errors[] = {
    {ENOSPC, SL_ENOSPC, "free space or choose another folder"},
    {EDQUOT, SL_ENOSPC, "free space within the quota or choose another folder"},
    {ENOMEM, SL_ENOMEM, "free memory or raise its limit"},
    {ENOENT, SL_EIO, "check the path and that its folder exists"},
    {ENOTDIR, SL_EIO, "check the path"},
    {EISDIR, SL_EIO, "name a file in it"},
    {ELOOP, SL_EIO, "name the file itself, not a link to it"},
    {ENAMETOOLONG, SL_EIO, "choose a shorter name"},
    {EBUSY, SL_EIO, "let its user finish or choose another place"},
    {ETXTBSY, SL_EIO, "let its user finish or choose another place"},
    {EACCES, SL_EIO, "get permission or choose another place"},
    {EPERM, SL_EIO, "get permission or choose another place"},
    {EROFS, SL_EIO, "choose a place that can be written to"},
    {EFBIG, SL_EIO, "raise the limit of file sizes or choose another file system"},
    {EMFILE, SL_EIO, "close files or raise the limit of open ones"},
    {ENFILE, SL_EIO, "close files or raise the limit of open ones"},
};

sl_status sl_fail_errno(const char *what, const char *path) {
    int error = errno;
    sl_status status = SL_EIO;
    const char *remedy = "check the device and try again";
    for (size_t i = 0; i < sizeof system_errors / sizeof *system_errors; i++) {
        if (system_errors[i].error != error) continue;
        status = system_errors[i].status;
        remedy = system_errors[i].remedy;
    }
    char text[128];
    /* The XSI form of strerror_r. strerror is not thread-safe. */
    if (strerror_r(error, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", error);
    return sl_fail(status, "%s %s: %s; %s", what, path, text, remedy);
}
