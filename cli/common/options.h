/* A command's table of options, which the parser and the manual page read. */
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

/* The value of --numa. */
typedef struct numa_choice {
    sl_numa_policy policy;
    size_t node;
} numa_choice;

/* The value of --clip. */
typedef struct clip_choice {
    sl_clip clip;
    double share;
} clip_choice;

typedef struct fraction_list {
    double values[OPTION_LIST_MAX];
    size_t count;
} fraction_list;

/* The value of --radius. Every number is a possible score, so a flag says whether it was given. */
typedef struct score_choice {
    int given;
    double value;
} score_choice;

/* Kind           field of the command's struct   given as */
typedef enum option_kind {
    OPTION_FLAG,     /* int                         nothing: the field becomes 1 */
    OPTION_TEXT,     /* const char *                any text */
    OPTION_COUNT,    /* size_t                      1000, or 4e9 */
    OPTION_CPUS,     /* size_t                      a number of threads, up to SL_MAX_CPUS */
    OPTION_U64,      /* uint64_t                    18446744073709551615, or 0xff */
    OPTION_BYTES,    /* size_t                      1000, 64K, 16M, 4G, 1T: powers of 1024 */
    OPTION_WORD,     /* int                         one of the words in `argument`; their order is their values */
    OPTION_COUNTS,   /* count_list                  16,32,64 */
    OPTION_REAL,     /* double                      0.25: 0 or more; a negative default means "not given" */
    OPTION_NUMA,     /* numa_choice                 interleave, bind:1, local */
    OPTION_CLIP,     /* clip_choice                 auto, minmax, mse, quantile, quantile:0.02 */
    OPTION_SCORE,    /* score_choice                0.25 or -3 */
    OPTION_FRACTIONS /* fraction_list               0.9,0.95: each above 0, up to 1 */
} option_kind;

/* One option of a command. The tables give the members in this order, without names. */
typedef struct option {
    char letter;      /* 0: none */
    const char *name; /* without dashes; NULL: only the letter; without both: end of the table */
    option_kind kind;
    const char *argument; /* "N", "FILE"; for OPTION_WORD the words, "ip|cosine|l2"; NULL for a flag */
    int required;
    size_t offset;
    const char *help;
} option;

#define OPTION_PROGRESS(type)                                                                                          \
    {                                                                                                                  \
        0, "progress", OPTION_FLAG, NULL, 0, offsetof(type, progress),                                                 \
            "Show progress on stderr, even if stderr is not a terminal."                                               \
    }
#define OPTION_JSON(type)                                                                                              \
    { 0, "json", OPTION_FLAG, NULL, 0, offsetof(type, json), "Print the result as one JSON object on stdout." }
#define WAIT_DEFAULT 60
#define OPTION_WAIT(type)                                                                                              \
    {                                                                                                                  \
        0, "wait", OPTION_COUNT, "SECONDS", 0, offsetof(type, wait),                                                   \
            "How long to wait while another process changes the file (default 60); 0: do not wait."                    \
    }
#define OPTION_THREADS(type, text)                                                                                     \
    { 0, "threads", OPTION_CPUS, "N", 0, offsetof(type, threads), text }
#define OPTION_PLACE_NODES(type)                                                                                       \
    {                                                                                                                  \
        0, "numa", OPTION_NUMA, "interleave|bind:N|local", 0, offsetof(type, numa),                                    \
            "Memory nodes for layer 0, on a machine with several: all of them in turn, node N, or the node of the "    \
            "thread that loads it. Each node that searches then has a copy of the upper layers, and the threads of a " \
            "batch are spread over the nodes. Layer 0 of a mapped file is read ahead and moved, except pages that "    \
            "other processes have mapped too. 'shortlist cpu' shows the nodes."                                        \
    }
#define OPTION_PREFAULT(type)                                                                                          \
    {                                                                                                                  \
        0, "prefault", OPTION_FLAG, NULL, 0, offsetof(type, prefault),                                                 \
            "For a mapped file: read layer 0 into memory first, so that no search waits for the disk."                 \
    }
#define OPTION_TIER(type)                                                                                              \
    {                                                                                                                  \
        0, "tier", OPTION_WORD, "auto|none|dram", 0, offsetof(type, tier),                                             \
            "For a mapped file: whether memory also gets a copy, made in the background, of the parts that every "     \
            "step of a search reads. These are the upper layers and the 4-bit rows of codes i4. auto (default) "       \
            "copies if the file lies in persistent memory, none never, dram always."                                   \
    }
#define OPTION_LOOKUP(type)                                                                                            \
    {                                                                                                                  \
        0, "index", OPTION_TEXT, "INDEX", 0, offsetof(type, index),                                                    \
            "The index that provides the vectors, by id, of vector features whose column holds ids."                   \
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
    /* Names, ended by NULL. All are required except "[LAST]". "[LAST...]" may come several times. */
    const char *const *operands;
    const option *options;
    const option *shared; /* more options, which another command has too; NULL: none. Offsets are of the same struct */
    /* Parses the arguments (argv[0] is the command's name) and works. Returns the exit status. */
    int (*run)(const command *self, int argc, char **argv);
};

typedef enum options_result { OPTIONS_RUN, OPTIONS_HELPED, OPTIONS_WRONG } options_result;

/* Most operands of a command, with every repetition of the last one. */
enum { OPERANDS_MAX = 64 };

/* Parses argv[1] and later into `values`, a struct that holds the defaults, and into `operands`, one entry per operand.
 * Entries without an operand do not change.
 * Returns: OPTIONS_HELPED after --help, whose page it printed. OPTIONS_WRONG for an argument that it did not understand
 * and reported. */
options_result options_parse(const command *command, int argc, char **argv, void *values, const char **operands);

/* Prints the command's page on stdout. */
void options_help(const command *command);

/* Prints one block of the page, indented and wrapped. */
void options_wrap(const char *text, int indent);

/* Begins a command's run: parses, and returns from the caller if no work is left. */
#define OPTIONS_PARSE(self, argc, argv, values, operands)                                                              \
    do {                                                                                                               \
        options_result options_result_ = options_parse(self, argc, argv, values, operands);                            \
        if (options_result_ == OPTIONS_HELPED) return report_stdout();                                                 \
        if (options_result_ == OPTIONS_WRONG) return EXIT_USAGE;                                                       \
    } while (0)

#endif
