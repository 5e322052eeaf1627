/* Statuses, and the message that each thread keeps for its last one. Every failing path of the library ends in sl_fail
 * or passes a failure on. */
#ifndef SL_BASE_STATUS_H
#define SL_BASE_STATUS_H

#include <shortlist.h>

#define SL_ERROR_SIZE 512

/* Sets the thread's message and returns `status`, so that a failure takes one line: return sl_fail(SL_EINVAL,
 * "..."). */
sl_status sl_fail(sl_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " in front of the thread's message. A caller that knows the file or the row uses this. */
sl_status sl_fail_in(sl_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns SL_EIO, SL_ENOSPC or SL_ENOMEM, chosen by errno, with the message "what path: strerror; remedy". */
sl_status sl_fail_errno(const char *what, const char *path);

/* Passes a failure on. */
#define SL_TRY(expression)                                                                                             \
    do {                                                                                                               \
        sl_status sl_try_ = (expression);                                                                              \
        if (sl_try_ != SL_OK) return sl_try_;                                                                          \
    } while (0)

/* Passes a failure on in a function that frees everything at one label. The function has a variable `status`. */
#define SL_TRY_GOTO(expression, label)                                                                                 \
    do {                                                                                                               \
        status = (expression);                                                                                         \
        if (status != SL_OK) goto label;                                                                               \
    } while (0)

#endif
