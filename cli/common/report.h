/* The end of a command: its exit status, and one line on stderr with the fault, its place and the remedy. */
#ifndef CLI_COMMON_REPORT_H
#define CLI_COMMON_REPORT_H

#include <shortlist.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The name in front of each line: "shortlist build". Static storage. */
void report_command(const char *name);

/* Keeps failures in `message`, of `size` bytes, from here on, in place of printing them. For a process whose parent
 * reports for it. */
void report_keep(char *message, size_t size);

/* Prints the line and returns EXIT_FAILED, so that a failure is one statement: return report_failure("..."). */
int report_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line of the same form about a possible fault, although the work is done. */
void report_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the line for a wrong command line, points to --help, and returns EXIT_USAGE. */
int report_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports a failing call of the library by its message. `subject`, the call's file, stands in front and may be NULL.
 * A cancelled call is reported as an interruption. */
int report_status(const char *subject, sl_status status);

/* Reports the same for a call that had the rows of a file from `first` on. The message then names the file's rows. */
int report_rows(const char *file, size_t first, sl_status status);

/* Reports "interrupted", by Ctrl-C or a signal. */
int report_interrupted(void);

/* Ends the output on stdout. Returns EXIT_DONE, or reports the failure to write it. */
int report_stdout(void);

/* The log callback that SHORTLIST_LOG asks for, or NULL. *log_ctx is its context. */
sl_log_fn report_log(void **log_ctx);
/* Returns EXIT_USAGE if SHORTLIST_LOG holds none of its words. */
int report_log_install(void);

#endif
