/* What the ranks search together: one index file that every rank opens, or a split whose parts they share out. */
#ifndef SL_CLUSTER_COMMANDS_SEARCHED_H
#define SL_CLUSTER_COMMANDS_SEARCHED_H

#include "cli/common/options.h"
#include "cli/files/vectors.h"
#include "cluster/search/split_search.h"

typedef struct searched {
    const char *path;
    sl_index *index;          /* NULL: a split */
    sl_split_searcher *split; /* NULL: an index */
    sl_index_stats stats;     /* of a split: n, dim, metric and type alone */
} searched;

/* Opens the file, or the split if `path` is a folder, on every rank. Every rank calls it. threads: of a split's
 * searches. Returns the agreed exit status. */
int searched_open(const char *path, int place, size_t threads, searched *out);
void searched_close(searched *searched);

/* Opens the queries on every rank. Checks that they fit, and that all ranks have the same queries and index. Every rank
 * calls it. `type`: to read them in. Returns the agreed exit status. */
int searched_open_queries(const searched *searched, const char *path, vectors **out, element *type);

/* Reads `count` queries from row `first` on, and checks them for a split. rows: room for them, of `type`. Returns this
 * rank's exit status. */
int searched_read_queries(const searched *searched, vectors *queries, size_t first, size_t count, element type,
                          void *rows);

/* Options of searches, most of them in a split. */
typedef struct split_choice {
    double cover; /* below 0: not given */
    double stop;
    size_t batch;
} split_choice;

#define SPLIT_CHOICE_DEFAULT                                                                                           \
    { .cover = -1, .batch = 256 }

/* Checks the options. Returns an exit status. */
int split_choice_check(const split_choice *choice);
/* The parameters of a search with this k and ef. recall: the largest to reach; 0: not given. */
sl_split_params split_choice_params(const split_choice *choice, const searched *searched, size_t k, size_t ef,
                                    double recall);

#define OPTION_SEARCH_PLACE(type)                                                                                      \
    {                                                                                                                  \
        0, "place", OPTION_WORD, "dram|map", 0, offsetof(type, place),                                                 \
            "Copy indexes into the memory of the ranks (dram), or map their files (map, default). Ranks of one "       \
            "machine share a mapped file."                                                                             \
    }

#define OPTIONS_SPLIT(type)                                                                                            \
    {0,                                                                                                                \
     "cover",                                                                                                          \
     OPTION_REAL,                                                                                                      \
     "SHARE",                                                                                                          \
     0,                                                                                                                \
     offsetof(type, split.cover),                                                                                      \
     "In a split of neighbourhoods: share of the true neighbours that the parts asked shall hold, as learnt when the " \
     "split was made (default 0.98; in 'eval' with --recall, 1 - 0.4 (1 - R) for the largest R). A larger share asks " \
     "more parts; 1 asks every part near the query."},                                                                 \
        {0,                                                                                                            \
         "stop",                                                                                                       \
         OPTION_REAL,                                                                                                  \
         "X",                                                                                                          \
         0,                                                                                                            \
         offsetof(type, split.stop),                                                                                   \
         "Also end a walk when the next candidate is more than 1 + X times as far as the -k th best so far, as of "    \
         "'shortlist search --stop'; 0 (default) leaves the end to --ef alone."},                                      \
    {                                                                                                                  \
        0, "batch", OPTION_COUNT, "N", 0, offsetof(type, split.batch),                                                 \
            "In a split: queries of each rank that are under way at a time (default 256). Fewer take more messages."   \
    }

#endif
