#include "cli/common/report.h"

#include "cli/common/progress.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *program_name = "shortlist";
static const char *command_name; /* NULL: no command */

void report_program(const char *name) {
    program_name = name;
}

const char *report_program_name(void) {
    return program_name;
}

void report_command(const char *name) {
    command_name = name;
}

static char *kept; /* NULL: failures are printed */
static size_t kept_size;
static int warns = 1;

void report_keep(char *message, size_t size, int prints_warnings) {
    kept = message;
    kept_size = size;
    warns = prints_warnings;
}

static void print_line(const char *mark, const char *format, va_list arguments, int point_to_help) {
    char line[8192];
    int used = vsnprintf(line, sizeof line, format, arguments);
    size_t at = used > 0 && (size_t)used < sizeof line ? (size_t)used : strlen(line);
    const char *space = command_name ? " " : "", *name = command_name ? command_name : "";
    if (point_to_help) snprintf(line + at, sizeof line - at, "; see '%s%s%s --help'", program_name, space, name);
    const int is_warning = *mark != '\0';
    if (kept && !is_warning) {
        snprintf(kept, kept_size, "%s", line);
        return;
    }
    if (is_warning && !warns) return;
    progress_clear();
    fprintf(stderr, "%s%s%s: %s%s\n", program_name, space, name, mark, line);
}

int report_failure(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments, 0);
    va_end(arguments);
    return EXIT_FAILED;
}

void report_warning(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line("warning: ", format, arguments, 0);
    va_end(arguments);
}

int report_usage(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments, 1);
    va_end(arguments);
    return EXIT_USAGE;
}

int report_interrupted(void) {
    return report_failure("interrupted; nothing was written");
}

/* Length of the word at `text` if a row's number follows it, of a base or of queries. */
static size_t row_word(const char *text) {
    static const char *const words[] = {"row ", "query "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(text, words[i], length) == 0 && isdigit((unsigned char)text[length])) return length;
    }
    return 0;
}

/* Copies `message` and adds `first` to its row numbers. */
static void shift_rows(const char *message, size_t first, char *out, size_t size) {
    size_t used = 0;
    while (*message && used + 1 < size) {
        size_t word = row_word(message);
        if (word) {
            char *end;
            unsigned long long row = strtoull(message + word, &end, 10);
            int length = snprintf(out + used, size - used, "row %llu", row + first);
            used += length > 0 ? (size_t)length : 0;
            message = end;
        } else
            out[used++] = *message++;
    }
    out[used < size ? used : size - 1] = '\0';
}

int report_rows(const char *file, size_t first, sl_status status) {
    if (status == SL_ECANCELED) return report_interrupted();
    const char *message = sl_last_error();
    if (!*message) message = sl_status_text(status);
    char shifted[1024];
    shift_rows(message, first, shifted, sizeof shifted);
    /* The library's message names the file if the library had the path. */
    if (!file || strstr(shifted, file)) return report_failure("%s", shifted);
    return report_failure("%s: %s", file, shifted);
}

int report_status(const char *subject, sl_status status) {
    return report_rows(subject, 0, status);
}

int report_stdout(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_DONE;
    return report_failure("cannot write to standard output: %s", strerror(errno));
}

static const char *const log_words[] = {"error", "warn", "info", "debug"};
static int log_level = -1;

static void log_line(void *ctx, sl_log_level level, const char *message) {
    (void)ctx;
    if ((int)level > log_level) return;
    progress_clear();
    fprintf(stderr, "%s: %s: %s\n", program_name, log_words[level], message);
}

int report_log_install(void) {
    const char *word = getenv("SHORTLIST_LOG");
    if (!word || !*word) return EXIT_DONE;
    for (int level = 0; level < (int)(sizeof log_words / sizeof *log_words); level++)
        if (strcmp(word, log_words[level]) == 0) log_level = level;
    if (log_level >= 0) return EXIT_DONE;
    return report_usage("the environment's SHORTLIST_LOG is '%s'; it takes error, warn, info or debug", word);
}

sl_log_fn report_log(void **log_ctx) {
    *log_ctx = NULL;
    return log_level >= 0 ? log_line : NULL;
}
