/* Lists of ids: their order, and a file's ids as a filter of an index. */
#ifndef CLI_FILES_IDS_H
#define CLI_FILES_IDS_H

#include <shortlist.h>

/* Compares ids in rising order, for qsort and bsearch. */
int compare_ids(const void *a, const void *b);

/* Reports an id of the file that comes twice or is reserved. Returns an exit status. */
int ids_check_distinct(const char *path, const uint64_t *ids, size_t n);

/* The vectors that a search may find. */
typedef struct filter_choice {
    const char *path; /* a file with one column of allowed ids; NULL: all */
    uint64_t any_tags, all_tags, none_tags, key_min, key_max;
} filter_choice;

#define FILTER_CHOICE_ALL                                                                                              \
    { .key_max = UINT64_MAX }

/* Options for masks of tags and ranges of keys. `with_tags` and `with_keys` say which input has them: "For an INDEX
 * with tags." */
#define OPTION_FILTER_WORDS(type, with_tags, with_keys)                                                                \
    {0,                                                                                                                \
     "any-tags",                                                                                                       \
     OPTION_U64,                                                                                                       \
     "MASK",                                                                                                           \
     0,                                                                                                                \
     offsetof(type, filter.any_tags),                                                                                  \
     "Find only vectors with a tag of this mask: a number in decimal, or 0x and hexadecimal digits. " with_tags},      \
        {0,                                                                                                            \
         "all-tags",                                                                                                   \
         OPTION_U64,                                                                                                   \
         "MASK",                                                                                                       \
         0,                                                                                                            \
         offsetof(type, filter.all_tags),                                                                              \
         "Find only vectors with all tags of this mask."},                                                             \
        {0,                                                                                                            \
         "none-tags",                                                                                                  \
         OPTION_U64,                                                                                                   \
         "MASK",                                                                                                       \
         0,                                                                                                            \
         offsetof(type, filter.none_tags),                                                                             \
         "Find only vectors without any tag of this mask."},                                                           \
        {0,                                                                                                            \
         "key-min",                                                                                                    \
         OPTION_U64,                                                                                                   \
         "KEY",                                                                                                        \
         0,                                                                                                            \
         offsetof(type, filter.key_min),                                                                               \
         "Find only vectors whose key is at least this. " with_keys},                                                  \
    {                                                                                                                  \
        0, "key-max", OPTION_U64, "KEY", 0, offsetof(type, filter.key_max),                                            \
            "Find only vectors whose key is at most this. All that is given must agree."                               \
    }

#define OPTION_FILTER_INDEX(type)                                                                                      \
    OPTION_FILTER_WORDS(type, "For an INDEX that was built with --tags.", "For an INDEX that was built with --keys.")

/* Returns whether the choice leaves any vector out; whether by tags, or by keys. */
int filter_is_asked(const filter_choice *choice);
int filter_asks_tags(const filter_choice *choice);
int filter_asks_keys(const filter_choice *choice);

/* Reports a range of keys that no key can be in. Returns an exit status. */
int filter_check(const filter_choice *choice);

/* Returns whether the masks and the range let a vector pass. A word that the choice does not use may be anything. */
int filter_passes(const filter_choice *choice, uint64_t tags, uint64_t key);

/* Makes the index's filter. index_path names the index in messages. Returns an exit status. */
int filter_make(const filter_choice *choice, const char *index_path, sl_index *index, sl_filter **out);

#endif
