/* A command's table of options: their parsing, and the manual page made from them. */
#ifndef CLI_COMMON_OPTIONS_H
#define CLI_COMMON_OPTIONS_H

#include <shortlist.h>

#include <stddef.h>
#include <stdint.h>

#define OPTION_LIST_MAX 64

typedef struct count_list {
    size_t values[OPTION_LIST_MAX];
    size_t count;
} count_list;

/* The choice of --numa. */
typedef struct numa_choice {
    sl_numa_policy policy;
    size_t node;
} numa_choice;

/* The choice of --clip. */
typedef struct clip_choice {
    sl_clip clip;
    double share;
} clip_choice;

typedef struct fraction_list {
    double values[OPTION_LIST_MAX];
    size_t count;
} fraction_list;

/* Kind           field of the command's struct   given as */
/* A score, of which any number may be one. */
typedef struct score_choice {
    int given;
    double value;
} score_choice;

typedef enum option_kind {
    OPTION_FLAG,     /* int                         nothing: the field becomes 1 */
    OPTION_TEXT,     /* const char *                any text */
    OPTION_COUNT,    /* size_t                      1000, or 4e9 */
    OPTION_CPUS,     /* size_t                      a number of threads, up to SL_MAX_CPUS */
    OPTION_U64,      /* uint64_t                    18446744073709551615, or 0xff */
    OPTION_BYTES,    /* size_t                      1000, 64K, 16M, 4G, 1T: powers of 1024 */
    OPTION_WORD,     /* int                         one of the words in `argument`; their order is their values */
    OPTION_COUNTS,   /* count_list                  16,32,64 */
    OPTION_REAL,     /* double                      0.25: 0 or more, negative where it is not given */
    OPTION_NUMA,     /* numa_choice                 interleave, bind:1, local */
    OPTION_CLIP,     /* clip_choice                 auto, minmax, mse, quantile, quantile:0.02 */
    OPTION_SCORE,    /* score_choice                0.25 or -3 */
    OPTION_FRACTIONS /* fraction_list               0.9,0.95: each above 0, up to 1 */
} option_kind;

typedef struct option {
    char letter;      /* 0: none */
    const char *name; /* without its dashes; NULL: only the letter; both absent: end of the table */
    option_kind kind;
    const char *argument; /* "N", "FILE"; of OPTION_WORD its words, "ip|cosine|l2"; NULL for a flag */
    int required;
    size_t offset;
    const char *help;
} option;

#define OPTION_PROGRESS(type)                                                                                          \
    {                                                                                                                  \
        0, "progress", OPTION_FLAG, NULL, 0, offsetof(type, progress),                                                 \
            "Tell on stderr how far the work is, even where stderr is not a terminal."                                 \
    }
#define OPTION_JSON(type)                                                                                              \
    { 0, "json", OPTION_FLAG, NULL, 0, offsetof(type, json), "Print the result as one JSON object on stdout." }
#define WAIT_DEFAULT 60
#define OPTION_WAIT(type)                                                                                              \
    {                                                                                                                  \
        0, "wait", OPTION_COUNT, "SECONDS", 0, offsetof(type, wait),                                                   \
            "How long to wait for another that is changing the file (default 60); 0 does not wait."                    \
    }
#define OPTION_THREADS(type, text)                                                                                     \
    { 0, "threads", OPTION_CPUS, "N", 0, offsetof(type, threads), text }
#define OPTION_PLACE_NODES(type)                                                                                       \
    {                                                                                                                  \
        0, "numa", OPTION_NUMA, "interleave|bind:N|local", 0, offsetof(type, numa),                                    \
            "On which memory nodes layer 0 comes to lie, of a machine that has several: in turns on all of them, on "  \
            "node N, or on that of the thread that puts it there. Each node that searches then has a copy of the "     \
            "upper layers, and the threads of a batch are spread over the nodes. Of a mapped file layer 0 is read "    \
            "ahead and moved, but for what other processes have mapped too. 'shortlist cpu' shows the nodes."          \
    }
#define OPTION_PREFAULT(type)                                                                                          \
    {                                                                                                                  \
        0, "prefault", OPTION_FLAG, NULL, 0, offsetof(type, prefault),                                                 \
            "For a mapped file: read layer 0 into memory first, so that no search waits for the disk."                 \
    }
#define OPTION_TIER(type)                                                                                              \
    {                                                                                                                  \
        0, "tier", OPTION_WORD, "auto|none|dram", 0, offsetof(type, tier),                                             \
            "For a mapped file: whether parts of it are also copied into memory, in the background. The parts are "    \
            "those that every step of a search reads: the upper layers and the 4-bit rows of codes i4. auto "          \
            "(default) copies where the file lies in persistent memory, none never, dram always."                      \
    }
#define OPTION_LOOKUP(type)                                                                                            \
    {                                                                                                                  \
        0, "index", OPTION_TEXT, "INDEX", 0, offsetof(type, index),                                                    \
            "The index that vectors are taken from, by id, for vector features whose column holds ids."                \
    }
#define OPTION_LAST                                                                                                    \
    { 0, NULL, OPTION_FLAG, NULL, 0, 0, NULL }

typedef struct command command;
struct command {
    const char *name;
    const char *summary; /* half a line: "build an index from a file of vectors" */
    const char *synopsis;
    const char *description; /* paragraphs, each ended by a newline; wrapped when printed */
    const char *examples;    /* lines, printed as they stand */
    /* Their names, ended by NULL. All are required but "[LAST]"; "[LAST...]" may come several times. */
    const char *const *operands;
    const option *options;
    /* Parses its arguments (argv[0] is the command's name) and works; returns the exit status. */
    int (*run)(const command *self, int argc, char **argv);
};

typedef enum options_result { OPTIONS_RUN, OPTIONS_HELPED, OPTIONS_WRONG } options_result;

/* The most operands of a command, one that comes several times included. */
enum { OPERANDS_MAX = 64 };

/* Parses argv[1] on into `values`, a struct that holds the defaults, and into `operands`, one entry an operand.
 * Entries without an operand stay as they are.
 * --help prints the page: OPTIONS_HELPED. An argument that is not understood is reported: OPTIONS_WRONG. */
options_result options_parse(const command *command, int argc, char **argv, void *values, const char **operands);

/* Prints the command's page on stdout. */
void options_help(const command *command);

/* Prints one block of the page, indented and wrapped. */
void options_wrap(const char *text, int indent);

/* Starts a command's run: parses, and returns from the caller if there is nothing more to do. */
#define OPTIONS_PARSE(self, argc, argv, values, operands)                                                              \
    do {                                                                                                               \
        options_result options_result_ = options_parse(self, argc, argv, values, operands);                            \
        if (options_result_ == OPTIONS_HELPED) return report_stdout();                                                 \
        if (options_result_ == OPTIONS_WRONG) return EXIT_USAGE;                                                       \
    } while (0)

#endif
