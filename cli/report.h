/* How a command ends: its exit status, and one line on stderr saying what, where and what to do. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <shortlist.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The name that stands in front of each line: "shortlist build". Static storage. */
void report_command(const char *name);

/* From here on failures are not printed but kept in `message`, of `size` bytes: for a process that has another one
 * speak for it. */
void report_keep(char *message, size_t size);

/* Prints the line and returns EXIT_FAILED, so that a failure is one statement: return report_failure("..."). */
int report_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same line, of what may be wrong though the work is done. */
void report_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a wrong command line; points to --help and returns EXIT_USAGE. */
int report_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A failing call of the library, from its message; `subject`, the file it was about, stands in front and may be NULL.
 * A cancelled call is reported as an interruption. */
int report_status(const char *subject, sl_status status);

/* The same for a call that was given the rows of a file from `first` on: the rows its message names are then those of
 * the file. */
int report_rows(const char *file, size_t first, sl_status status);

/* "interrupted", by Ctrl-C or a signal. */
int report_interrupted(void);

/* Ends the output on stdout: EXIT_DONE, or the failure to write it. */
int report_stdout(void);

/* What SHORTLIST_LOG asks for: the callback to give to the library, or NULL. *log_ctx is its context. */
sl_log_fn report_log(void **log_ctx);
/* EXIT_USAGE where SHORTLIST_LOG holds none of its words. */
int report_log_install(void);

#endif
