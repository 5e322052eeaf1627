#include "cli/common/options.h"

#include "cli/common/report.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 32

_Static_assert(SL_MAX_CPUS == 8192, "expected_value() tells the number");

static int is_last(const option *option) {
    return !option->letter && !option->name;
}

/* The option as the user types it: "--threads" or "-k". Static storage, until the next call. */
static const char *option_text(const option *option) {
    static char text[64];
    if (option->name)
        snprintf(text, sizeof text, "--%s", option->name);
    else
        snprintf(text, sizeof text, "-%c", option->letter);
    return text;
}

/* Returns option i of the command, of its own table or of the shared one; NULL behind the last. */
static const option *option_at(const command *command, size_t i) {
    const option *option = command->options;
    while (i && !is_last(option)) {
        option++;
        i--;
    }
    if (!is_last(option)) return option;
    if (!command->shared) return NULL;
    for (option = command->shared; i && !is_last(option); i--)
        option++;
    return is_last(option) ? NULL : option;
}

static const option *find_name(const command *command, const char *name, size_t length) {
    const option *option;
    for (size_t i = 0; (option = option_at(command, i)); i++)
        if (option->name && strlen(option->name) == length && memcmp(option->name, name, length) == 0) return option;
    return NULL;
}

static const option *find_letter(const command *command, char letter) {
    const option *option;
    for (size_t i = 0; (option = option_at(command, i)); i++)
        if (option->letter && option->letter == letter) return option;
    return NULL;
}

static size_t number_of(const command *command, const option *option) {
    size_t number = 0;
    while (option_at(command, number) != option)
        number++;
    return number;
}

/* Reads a decimal number up to `stop`. Returns 0 if there is none, or it does not fit. */
static int parse_count(const char *text, char **stop, size_t *value) {
    if (!isdigit((unsigned char)*text)) return 0;
    errno = 0;
    unsigned long long number = strtoull(text, stop, 10);
    if (errno || number > SIZE_MAX) return 0;
    *value = (size_t)number;
    return 1;
}

/* Reads a whole number. 4e9 and 1.5e6 are whole numbers too. */
static int parse_whole(const char *text, size_t *value) {
    char *stop;
    if (parse_count(text, &stop, value) && !*stop) return 1;
    if (!isdigit((unsigned char)*text) || !strpbrk(text, "eE") || strpbrk(text, "xX")) return 0;
    double number = strtod(text, &stop);
    /* A double holds every whole number up to 2^53. */
    if (*stop || !(number <= 9007199254740992.0) || number != floor(number)) return 0;
    *value = (size_t)number;
    return 1;
}

/* Reads a whole number of 64 bits: decimal, or hexadecimal after 0x. */
static int parse_u64(const char *text, uint64_t *value) {
    const int hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hexadecimal ? text + 2 : text;
    char *stop;
    if (!(hexadecimal ? isxdigit((unsigned char)*digits) : isdigit((unsigned char)*digits))) return 0;
    errno = 0;
    unsigned long long number = strtoull(digits, &stop, hexadecimal ? 16 : 10);
    if (errno || *stop || number > UINT64_MAX) return 0;
    *value = number;
    return 1;
}

static int parse_bytes(const char *text, size_t *value) {
    static const char units[] = "KMGT";
    char *stop;
    if (!parse_count(text, &stop, value)) return 0;
    if (!*stop) return 1;
    const char *unit = strchr(units, toupper((unsigned char)*stop));
    if (!unit || stop[1]) return 0;
    unsigned shift = 10 * (unsigned)(unit - units + 1);
    if (*value > SIZE_MAX >> shift) return 0;
    *value <<= shift;
    return 1;
}

static int parse_word(const char *words, const char *text, int *value) {
    size_t length = strlen(text);
    for (int i = 0;; i++) {
        size_t word = strcspn(words, "|");
        if (word == length && memcmp(words, text, length) == 0) {
            *value = i;
            return 1;
        }
        if (!words[word]) return 0;
        words += word + 1;
    }
}

static int parse_counts(const char *text, count_list *list) {
    list->count = 0;
    for (char *stop;; text = stop + 1) {
        if (list->count == OPTION_LIST_MAX || !parse_count(text, &stop, &list->values[list->count])) return 0;
        list->count++;
        if (!*stop) return 1;
        if (*stop != ',') return 0;
    }
}

static int parse_fractions(const char *text, fraction_list *list) {
    list->count = 0;
    for (char *stop;; text = stop + 1) {
        if (list->count == OPTION_LIST_MAX || !(isdigit((unsigned char)*text) || *text == '.')) return 0;
        double value = strtod(text, &stop);
        if (stop == text || !(value > 0 && value <= 1)) return 0;
        list->values[list->count++] = value;
        if (!*stop) return 1;
        if (*stop != ',') return 0;
    }
}

static int parse_real(const char *text, double *value) {
    char *stop;
    if (!(isdigit((unsigned char)*text) || *text == '.')) return 0;
    *value = strtod(text, &stop);
    return stop != text && !*stop && isfinite(*value);
}

static int parse_score(const char *text, score_choice *choice) {
    choice->given = parse_real(text + (*text == '-'), &choice->value);
    if (*text == '-') choice->value = -choice->value;
    return choice->given;
}

static int parse_numa(const char *text, numa_choice *numa) {
    return sl_numa_parse(text, &numa->policy, &numa->node) == SL_OK;
}

static int parse_clip(const char *text, clip_choice *choice) {
    const char *quantile = sl_clip_name(SL_CLIP_QUANTILE);
    size_t length = strlen(quantile);
    for (int i = SL_CLIP_AUTO; i <= SL_CLIP_QUANTILE; i++) {
        choice->clip = (sl_clip)i;
        if (strcmp(text, sl_clip_name(choice->clip)) == 0) return 1;
    }
    return strncmp(text, quantile, length) == 0 && text[length] == ':' &&
           parse_real(text + length + 1, &choice->share) && choice->share <= 0.5;
}

static const char *expected_value(option_kind kind) {
    switch (kind) {
    case OPTION_NUMA:
        return "interleave, bind:N with the number of a memory node, or local";
    case OPTION_CLIP:
        return "auto, minmax, mse, or quantile:SHARE with a share of 0 to 0.5";
    case OPTION_COUNT:
        return "a whole number";
    case OPTION_U64:
        return "a whole number from 0 to 2^64 - 1, in decimal or as 0x and hexadecimal digits";
    case OPTION_CPUS:
        return "a whole number, 8192 at most";
    case OPTION_BYTES:
        return "a number of bytes, such as 4096, 512M or 16G";
    case OPTION_COUNTS:
        return "whole numbers parted by commas, at most 64 of them";
    case OPTION_REAL:
        return "a number, 0 or more";
    case OPTION_SCORE:
        return "a number";
    case OPTION_FRACTIONS:
        return "numbers above 0 and up to 1 parted by commas, at most 64 of them";
    default:
        return "a value";
    }
}

/* Stores the option's value. Returns 0 and reports a text that is not such a value. */
static int store_value(const option *option, const char *text, char *values) {
    void *field = values + option->offset;
    int fits = 1;
    switch (option->kind) {
    case OPTION_FLAG:
        *(int *)field = 1;
        break;
    case OPTION_TEXT:
        *(const char **)field = text;
        fits = *text != '\0';
        break;
    case OPTION_COUNT:
        fits = parse_whole(text, field);
        break;
    case OPTION_CPUS:
        fits = parse_whole(text, field) && *(size_t *)field <= SL_MAX_CPUS;
        break;
    case OPTION_U64:
        fits = parse_u64(text, field);
        break;
    case OPTION_BYTES:
        fits = parse_bytes(text, field);
        break;
    case OPTION_WORD:
        fits = parse_word(option->argument, text, field);
        break;
    case OPTION_COUNTS:
        fits = parse_counts(text, field);
        break;
    case OPTION_REAL:
        fits = parse_real(text, field);
        break;
    case OPTION_SCORE:
        fits = parse_score(text, field);
        break;
    case OPTION_NUMA:
        fits = parse_numa(text, field);
        break;
    case OPTION_CLIP:
        fits = parse_clip(text, field);
        break;
    case OPTION_FRACTIONS:
        fits = parse_fractions(text, field);
        break;
    }
    if (fits) return 1;
    if (option->kind == OPTION_WORD)
        (void)report_usage("%s is '%s'; it takes %s", option_text(option), text, option->argument);
    else
        (void)report_usage("%s is '%s'; it takes %s", option_text(option), text, expected_value(option->kind));
    return 0;
}

/* Finds the option at argv[*at] and its value. Moves *at to the last argument it used. Returns NULL and reports an
 * unknown option, a missing value, or a value for an option that takes none. */
static const option *match_option(const command *command, int argc, char **argv, int *at, const char **value) {
    const char *argument = argv[*at];
    const option *option;
    const char *attached = NULL;
    if (argument[1] == '-') {
        size_t length = strcspn(argument + 2, "=");
        option = find_name(command, argument + 2, length);
        if (argument[2 + length]) attached = argument + 2 + length + 1;
    } else {
        option = find_letter(command, argument[1]);
        if (argument[2]) attached = argument + 2;
    }
    if (!option) {
        (void)report_usage("unknown option '%s'", argument);
        return NULL;
    }
    *value = attached;
    if (option->kind == OPTION_FLAG) {
        if (!attached) return option;
        (void)report_usage("%s takes no value", option_text(option));
        return NULL;
    }
    if (!attached && *at + 1 < argc) *value = argv[++*at];
    if (*value) return option;
    (void)report_usage("%s misses its value %s", option_text(option), option->argument);
    return NULL;
}

static size_t operand_names(const command *command) {
    size_t count = 0;
    while (command->operands[count])
        count++;
    return count;
}

static int is_repeated(const char *name) {
    return *name == '[' && strstr(name, "...") != NULL;
}

/* Returns whether the command takes another operand after `count` of them. */
static int takes_operand(const command *command, size_t count) {
    const size_t names = operand_names(command);
    return count < names || (names && count < OPERANDS_MAX && is_repeated(command->operands[names - 1]));
}

static options_result check_complete(const command *command, const int *given, size_t operands) {
    const option *option;
    for (size_t i = 0; (option = option_at(command, i)); i++) {
        if (!option->required || given[i]) continue;
        (void)report_usage("%s %s is missing", option_text(option), option->argument);
        return OPTIONS_WRONG;
    }
    if (operands >= operand_names(command)) return OPTIONS_RUN;
    const char *missing = command->operands[operands];
    if (*missing == '[') return OPTIONS_RUN;
    (void)report_usage("%s is missing", missing);
    return OPTIONS_WRONG;
}

static int asks_for_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return 1;
    return 0;
}

options_result options_parse(const command *command, int argc, char **argv, void *values, const char **operands) {
    int given[OPTIONS_MAX] = {0};
    size_t operand_count = 0;
    int options_over = 0;
    if (asks_for_help(argc, argv)) {
        options_help(command);
        return OPTIONS_HELPED;
    }
    for (int at = 1; at < argc; at++) {
        if (!options_over && strcmp(argv[at], "--") == 0) {
            options_over = 1;
        } else if (options_over || argv[at][0] != '-' || !argv[at][1]) {
            if (!takes_operand(command, operand_count)) {
                (void)report_usage("'%s' is one argument too many", argv[at]);
                return OPTIONS_WRONG;
            }
            operands[operand_count++] = argv[at];
        } else {
            const char *value;
            const option *option = match_option(command, argc, argv, &at, &value);
            if (!option || !store_value(option, value, values)) return OPTIONS_WRONG;
            given[number_of(command, option)] = 1;
        }
    }
    return check_complete(command, given, operand_count);
}

#define PAGE_WIDTH 79

void options_wrap(const char *text, int indent) {
    int column = 0;
    while (*text) {
        if (*text == '\n') {
            /* A newline ends a paragraph. Another paragraph follows after an empty line. */
            fputs(text[1] ? "\n\n" : "\n", stdout);
            column = 0;
            text++;
            continue;
        }
        size_t length = strcspn(text, " \n");
        if (column && column + 1 + (int)length > PAGE_WIDTH) {
            putchar('\n');
            column = 0;
        }
        if (column)
            column += printf(" %.*s", (int)length, text);
        else
            column = printf("%*s%.*s", indent, "", (int)length, text);
        text += length;
        while (*text == ' ')
            text++;
    }
    if (column) putchar('\n');
}

static void print_option(const option *option) {
    printf("       ");
    if (option->letter) printf("-%c", option->letter);
    if (option->letter && option->name) printf(", ");
    if (option->name) printf("--%s", option->name);
    if (option->argument) printf(" %s", option->argument);
    printf("%s\n", option->required ? "   (required)" : "");
    options_wrap(option->help, 15);
    putchar('\n');
}

void options_help(const command *command) {
    printf("NAME\n       %s %s - %s\n\nSYNOPSIS\n", report_program_name(), command->name, command->summary);
    options_wrap(command->synopsis, 7);
    printf("\nDESCRIPTION\n");
    options_wrap(command->description, 7);
    printf("\nOPTIONS\n");
    const option *option;
    for (size_t i = 0; (option = option_at(command, i)); i++)
        print_option(option);
    printf("       -h, --help\n");
    options_wrap("Print this page.", 15);
    printf("\nEXIT STATUS\n");
    options_wrap(
        "0 done; 1 failed, with one line on stderr that says what, where and what to do; 2 the command line was "
        "not understood.\n",
        7);
    printf("\nEXAMPLES\n");
    for (const char *line = command->examples; *line;) {
        size_t length = strcspn(line, "\n");
        printf("       %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}
