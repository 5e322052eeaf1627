/* A command's exit status, and its one line on stderr with fault, place and remedy. */
#ifndef CLI_COMMON_REPORT_H
#define CLI_COMMON_REPORT_H

#include <shortlist.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The names in front of each line: "shortlist build". Static storage. The program is "shortlist" at first. */
void report_program(const char *name);
const char *report_program_name(void);
void report_command(const char *name);

/* From now on keeps failures in `message`, of `size` bytes, and does not print them. For a process whose parent reports
 * for it. `warns`: warnings are still printed; else they are dropped. */
void report_keep(char *message, size_t size, int warns);

/* Prints the line and returns EXIT_FAILED, so one statement is enough: return report_failure("..."). */
int report_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a warning in the same form. The command's work still succeeds. */
void report_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the line for a wrong command line, points to --help, and returns EXIT_USAGE. */
int report_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports a failed call of the library with its message. `subject`, the call's file, stands in front; it may be NULL. A
 * cancelled call is reported as an interruption. */
int report_status(const char *subject, sl_status status);

/* Reports a failed call that got the rows of a file from `first` on. The message then names the file's rows. */
int report_rows(const char *file, size_t first, sl_status status);

/* Reports "interrupted", by Ctrl-C or a signal. */
int report_interrupted(void);

/* Flushes stdout. Returns EXIT_DONE, or reports that writing failed. */
int report_stdout(void);

/* The log callback for SHORTLIST_LOG, or NULL. *log_ctx is its context. */
sl_log_fn report_log(void **log_ctx);
/* Reads SHORTLIST_LOG. Returns EXIT_USAGE for an unknown word. */
int report_log_install(void);

#endif
