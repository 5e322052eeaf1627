/* Adds the vectors of a file to an index, all at once. */
#ifndef CLI_INDEX_ADD_VECTORS_H
#define CLI_INDEX_ADD_VECTORS_H

#include "cli/files/base_copy.h"

#include <shortlist.h>

typedef struct adding {
    sl_index *index;
    vectors *base;
    element type;        /* type in which the base is read */
    const uint64_t *ids; /* one id a row, or NULL */
    /* One a row, or NULL: to be freed by adding_free. */
    uint64_t *tags, *keys;
    size_t threads;
    sl_builder builder;
    int progress; /* --progress */
    /* Reports that rows were refused. Returns an exit status. */
    int (*refused)(void *ctx, sl_status status);
    void *refused_ctx;
    const char *output;        /* the index file: a base that is unpacked into a file lies beside it */
    const void *mapped;        /* all rows as they lie in the base, or NULL: they are base_copy */
    size_t in_memory, in_file; /* bytes of unpacked rows */
    size_t at_once;            /* bytes that are unpacked at once */
    base_copy copy;
    double read_s, add_s;    /* time of the adding */
    double link_s, number_s; /* parts of add_s: see sl_add_times */
} adding;

/* Maps the base if it can. Else it chooses memory or a file. `most`: bytes in memory, 256 MB at most; 0: 256 MB.
 * Returns an exit status. */
int adding_prepare(adding *adding, const char *output, size_t most);
/* Bytes of memory that the command holds while it adds: ids, words and rows. */
size_t adding_bytes(const adding *adding);

/* Paths of files of one whole number a row; NULL: none. */
typedef struct adding_words {
    const char *tags, *keys;
} adding_words;

#define OPTION_TAGS(type)                                                                                              \
    {                                                                                                                  \
        0, "tags", OPTION_TEXT, "FILE", 0, offsetof(type, words.tags),                                                 \
            "One tag word of 64 bits a vector: a .npy or .ibin file of one column of whole numbers. 'shortlist "       \
            "search' finds vectors by masks of tags."                                                                  \
    }
#define OPTION_KEYS(type)                                                                                              \
    {                                                                                                                  \
        0, "keys", OPTION_TEXT, "FILE", 0, offsetof(type, words.keys),                                                 \
            "One key of 64 bits a vector, such as a price or a time: a file as of --tags. 'shortlist search' finds "   \
            "vectors by a range of keys."                                                                              \
    }

/* Refuses an output that is one of the files read. Returns an exit status. */
int adding_check_output(const char *output, const char *base_path, const char *ids, const adding_words *words);

/* Reads the tags and keys of the rows of the base, which lies at base_path. Returns an exit status. */
int adding_read_words(adding *adding, const char *base_path, const adding_words *words);

/* Frees the rows, the tags and the keys, and closes the base. */
void adding_free(adding *adding);

/* Adds all rows; `what` is the stage's name: "building". Returns an exit status. */
int adding_run(adding *adding, const char *what);

#endif
