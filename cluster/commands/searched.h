/* What the ranks search together: one index file that every rank opens. */
#ifndef SL_CLUSTER_COMMANDS_SEARCHED_H
#define SL_CLUSTER_COMMANDS_SEARCHED_H

#include "cli/common/options.h"
#include "cli/files/vectors.h"

typedef struct searched {
    const char *path;
    sl_index *index;
    sl_index_stats stats;
} searched;

/* Opens the file on every rank. Every rank calls it. Returns the agreed exit status. */
int searched_open(const char *path, int place, searched *out);
void searched_close(searched *searched);

/* Opens the queries, and checks that they fit. `type`: to read them in. Returns this rank's exit status. */
int searched_open_queries(const searched *searched, const char *path, vectors **out, element *type);

#define OPTION_SEARCH_PLACE(type)                                                                                      \
    {                                                                                                                  \
        0, "place", OPTION_WORD, "dram|map", 0, offsetof(type, place),                                                 \
            "Copy the index into the memory of each rank (dram), or map its file (map, default). Ranks of one "        \
            "machine "                                                                                                 \
            "share a mapped file."                                                                                     \
    }

#endif
