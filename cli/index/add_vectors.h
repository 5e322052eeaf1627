/* Adds all vectors of a file to an index in one call. */
#ifndef CLI_INDEX_ADD_VECTORS_H
#define CLI_INDEX_ADD_VECTORS_H

#include "cli/files/base_copy.h"

#include <shortlist.h>

/* A base to add to an index, and how to add it. */
typedef struct addition {
    sl_index *index;
    vectors *base;
    element type;        /* type to read the base in */
    const uint64_t *ids; /* one id per row, or NULL */
    /* One per row, or NULL; addition_free frees them. */
    uint64_t *tags, *keys;
    size_t threads;
    sl_builder builder;
    sl_replace replace;
    int progress; /* --progress */
    /* Gets the progress of the add, with a progress (progress.h) as its context; NULL: progress_step. */
    sl_progress_fn step;
    /* Reports rows that the library refused. Returns an exit status. */
    int (*refused)(void *ctx, sl_status status);
    void *refused_ctx;
    const char *output;        /* the index file, beside which a base is unpacked */
    const void *mapped;        /* all rows in the mapped base; NULL: in base_copy */
    size_t in_memory, in_file; /* bytes of unpacked rows */
    size_t at_once;            /* bytes to unpack at a time */
    base_copy copy;
    double read_s, add_s;    /* seconds of reading and of adding */
    double link_s, number_s; /* parts of add_s: see sl_add_times */
} addition;

/* Maps the base if possible. Otherwise chooses memory or a file for it. `most`: bytes in memory, 256 MB at most; 0: 256
 * MB. Returns an exit status. */
int addition_prepare(addition *addition, const char *output, size_t most);
/* Bytes of memory that the command holds during the add: ids, words and rows. */
size_t addition_bytes(const addition *addition);

/* Paths of files with one whole number per row; NULL: none. */
typedef struct word_files {
    const char *tags, *keys;
} word_files;

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

/* Refuses an output that is one of the inputs. Returns an exit status. */
int addition_check_output(const char *output, const char *base_path, const char *ids, const word_files *words);

/* Reads the tags and keys of the base's rows. base_path names the base in messages. Returns an exit status. */
int addition_read_words(addition *addition, const char *base_path, const word_files *words);

/* Frees the rows, the tags and the keys, and closes the base. */
void addition_free(addition *addition);

/* Adds all rows. `what` is the stage's name: "building". Returns an exit status. */
int addition_run(addition *addition, const char *what);

#endif
