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
    const char *path; /* a file of one column: the ids that are allowed; NULL: all */
    uint64_t any_tags, all_tags, none_tags, key_min, key_max;
} filter_choice;

#define FILTER_CHOICE_ALL                                                                                              \
    { .key_max = UINT64_MAX }

/* The options of masks and keys. `with_tags` and `with_keys` say what has them: "For an INDEX with tags." */
#define OPTION_FILTER_WORDS(type, with_tags, with_keys)                                                                \
    {0,                                                                                                                \
     "any-tags",                                                                                                       \
     OPTION_U64,                                                                                                       \
     "MASK",                                                                                                           \
     0,                                                                                                                \
     offsetof(type, filter.any_tags),                                                                                  \
     "Find none but vectors with a tag of this mask: a number in decimal, or 0x and hexadecimal digits. " with_tags},  \
        {0,                                                                                                            \
         "all-tags",                                                                                                   \
         OPTION_U64,                                                                                                   \
         "MASK",                                                                                                       \
         0,                                                                                                            \
         offsetof(type, filter.all_tags),                                                                              \
         "Find none but vectors with all tags of this mask."},                                                         \
        {0,                                                                                                            \
         "none-tags",                                                                                                  \
         OPTION_U64,                                                                                                   \
         "MASK",                                                                                                       \
         0,                                                                                                            \
         offsetof(type, filter.none_tags),                                                                             \
         "Find none but vectors without any tag of this mask."},                                                       \
        {0,                                                                                                            \
         "key-min",                                                                                                    \
         OPTION_U64,                                                                                                   \
         "KEY",                                                                                                        \
         0,                                                                                                            \
         offsetof(type, filter.key_min),                                                                               \
         "Find none but vectors whose key is at least this. " with_keys},                                              \
    {                                                                                                                  \
        0, "key-max", OPTION_U64, "KEY", 0, offsetof(type, filter.key_max),                                            \
            "Find none but vectors whose key is at most this. All that is given must agree."                           \
    }

#define OPTION_FILTER_INDEX(type)                                                                                      \
    OPTION_FILTER_WORDS(type, "For an INDEX that was built with --tags.", "For an INDEX that was built with --keys.")

/* Tells whether the choice leaves anything out; whether it goes by tags, or by keys. */
int filter_is_asked(const filter_choice *choice);
int filter_asks_tags(const filter_choice *choice);
int filter_asks_keys(const filter_choice *choice);

/* Reports a choice of keys that no key can be. Returns an exit status. */
int filter_check(const filter_choice *choice);

/* Tells whether the masks and the range let a vector pass. A word that is not asked about may be anything. */
int filter_passes(const filter_choice *choice, uint64_t tags, uint64_t key);

/* Makes a filter of the index, which lies at index_path. Returns an exit status. */
int filter_make(const filter_choice *choice, const char *index_path, sl_index *index, sl_filter **out);

#endif
