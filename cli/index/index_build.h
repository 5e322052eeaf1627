/* The steps of building an index from a file of vectors: for 'shortlist build' and 'shortlist-mpi build'. */
#ifndef CLI_INDEX_INDEX_BUILD_H
#define CLI_INDEX_INDEX_BUILD_H

#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/index/add_vectors.h"

typedef struct build_options {
    const char *output, *ids;
    word_files words;
    int metric, codes, refine, place, layout, builder; /* codes -1: by the input's type */
    numa_choice numa;
    clip_choice clip;
    size_t m, ef_build, threads, seed, max_memory, room;
    int multi, progress, json, dry_run;
} build_options;

typedef struct build_state {
    const build_options *options;
    const char *base_path;
    addition addition;
    uint64_t *ids;
    size_t memory; /* the index's part of --max-memory; 0: no limit */
    char *work;    /* path of the work file */
    double save_s;
} build_state;

/* The options that are not given. */
build_options build_defaults(void);
/* Begins a build of the base at this path. build_end frees all that the steps made. */
void build_begin(build_state *state, const build_options *options, const char *base_path);
void build_end(build_state *state);

/* The steps, in this order. Each returns an exit status. */

/* Checks the options on an index of one element, and the names of the files, so that faults of the options are reported
 * before faults of the base. */
int build_check(const build_state *state);
/* Opens the base, reads ids, tags and keys, and chooses where the rows are unpacked. */
int build_open(build_state *state);
/* Creates the index. build_try_create returns the library's status, and reports nothing. */
int build_create(build_state *state);
sl_status build_try_create(build_state *state);
/* Makes room for all vectors. */
int build_reserve(build_state *state);
int build_add(build_state *state);
int build_save(build_state *state);
/* Prints the index's facts, times and hash. `more` adds members to the JSON, or lines to the text if `json` is NULL; it
 * may be NULL. */
typedef void build_more_fn(json *json, void *ctx);
int build_print(const build_state *state, build_more_fn *more, void *ctx);

/* The index's parameters, without a limit of memory. */
sl_index_params build_params(const build_state *state);

/* Options that both commands have, but for --max-memory. */
#define BUILD_OPTIONS                                                                                                  \
    {'o',                                                                                                              \
     "output",                                                                                                         \
     OPTION_TEXT,                                                                                                      \
     "INDEX",                                                                                                          \
     1,                                                                                                                \
     offsetof(build_options, output),                                                                                  \
     "The index file. The file appears whole or not at all; a file of that name stays as it is until then."},          \
        {0,                                                                                                            \
         "metric",                                                                                                     \
         OPTION_WORD,                                                                                                  \
         "ip|cosine|l2",                                                                                               \
         1,                                                                                                            \
         offsetof(build_options, metric),                                                                              \
         "Inner product (larger is nearer), cosine of the angle (larger is nearer), or squared Euclidean distance "    \
         "(smaller "                                                                                                   \
         "is nearer)."},                                                                                               \
        {0,                                                                                                            \
         "codes",                                                                                                      \
         OPTION_WORD,                                                                                                  \
         "i8|i16|f32|i4",                                                                                              \
         0,                                                                                                            \
         offsetof(build_options, codes),                                                                               \
         "Codes that the graph is walked over. Floating-point vectors are quantised to i8 (default) or i16 with one "  \
         "scale "                                                                                                      \
         "a vector, or kept as f32. i4 keeps 4 bits an element for the walk and 8 more beside them for ranking, "      \
         "about 12 "                                                                                                   \
         "in all. Integer vectors are their own codes, kept exactly: .u8bin and .i8bin take i8, 16-bit integers i16. " \
         "For "                                                                                                        \
         "integers, and for floating-point vectors longer than some 112, i4 is i8 or i16 with shorter 4-bit rows "     \
         "beside "                                                                                                     \
         "them for the walk."},                                                                                        \
        {0,                                                                                                            \
         "refine",                                                                                                     \
         OPTION_WORD,                                                                                                  \
         "none|f32|bf16|i16",                                                                                          \
         0,                                                                                                            \
         offsetof(build_options, refine),                                                                              \
         "A finer copy of floating-point vectors that re-ranks the best the graph found (default none). The copy "     \
         "costs 4, "                                                                                                   \
         "2 or 2 bytes an element. bf16 is not for vectors that codes i4 keep in 12 bits."},                           \
        {0,                                                                                                            \
         "clip",                                                                                                       \
         OPTION_CLIP,                                                                                                  \
         "auto|minmax|mse|quantile[:SHARE]",                                                                           \
         0,                                                                                                            \
         offsetof(build_options, clip),                                                                                \
         "Range that a vector's codes cover. minmax: up to its largest magnitude. mse: the one of ten with the least " \
         "squared error. quantile: all but a SHARE of its elements (default 0.01). auto (default): minmax for i8 and " \
         "i16, "                                                                                                       \
         "mse for the 4 bits of i4. 'shortlist eval' shows the effect on recall."},                                    \
        {0,                                                                                                            \
         "m",                                                                                                          \
         OPTION_COUNT,                                                                                                 \
         "N",                                                                                                          \
         0,                                                                                                            \
         offsetof(build_options, m),                                                                                   \
         "Links a node, 2 to 256 (default 16); twice that on the lowest layer. More give better recall for more "      \
         "bytes."},                                                                                                    \
        {0,                                                                                                            \
         "ef-build",                                                                                                   \
         OPTION_COUNT,                                                                                                 \
         "N",                                                                                                          \
         0,                                                                                                            \
         offsetof(build_options, ef_build),                                                                            \
         "Work for a vector's links (default 200). More give a better graph for a slower build. An inserted vector "   \
         "keeps N "                                                                                                    \
         "candidates. With leaves, a vector is in N / 50 leaves of each of two partitionings."},                       \
        {0,                                                                                                            \
         "builder",                                                                                                    \
         OPTION_WORD,                                                                                                  \
         "auto|insert|leaves",                                                                                         \
         0,                                                                                                            \
         offsetof(build_options, builder),                                                                             \
         "How vectors get their links. insert: each searches the graph for its neighbours. leaves: overlapping sets "  \
         "of "                                                                                                         \
         "near vectors compare all their pairs; for 4,096 vectors or more. Leaves give the same INDEX on any number "  \
         "of "                                                                                                         \
         "threads and, but for codes f32, on any processor; insert on several gives another each time. auto "          \
         "(default): "                                                                                                 \
         "leaves "                                                                                                     \
         "where that serves, with --m from 16 to 24 and --ef-build 200 or more."},                                     \
        {0,                                                                                                            \
         "ids",                                                                                                        \
         OPTION_TEXT,                                                                                                  \
         "FILE",                                                                                                       \
         0,                                                                                                            \
         offsetof(build_options, ids),                                                                                 \
         "One id a vector: a .npy or .ibin file of one column of whole numbers. Without it vectors are numbered from " \
         "0 in "                                                                                                       \
         "their order."},                                                                                              \
        {0,                                                                                                            \
         "multi",                                                                                                      \
         OPTION_FLAG,                                                                                                  \
         NULL,                                                                                                         \
         0,                                                                                                            \
         offsetof(build_options, multi),                                                                               \
         "An id may have several vectors: an id that comes again in --ids, or in a later 'shortlist add', gets one "   \
         "more. "                                                                                                      \
         "A search then finds different ids, each by its best vector that it meets."},                                 \
        OPTION_TAGS(build_options), OPTION_KEYS(build_options),                                                        \
        {0, "seed", OPTION_COUNT, "N", 0, offsetof(build_options, seed), "Seed of the nodes' levels (default 1)."},    \
        {0,                                                                                                            \
         "room",                                                                                                       \
         OPTION_COUNT,                                                                                                 \
         "N",                                                                                                          \
         0,                                                                                                            \
         offsetof(build_options, room),                                                                                \
         "Make a file with room for N vectors in all. 'shortlist add' and 'shortlist delete' change the file in "      \
         "place, "                                                                                                     \
         "beside others who have it open. Unused room takes no space where the file system knows holes."},             \
    {                                                                                                                  \
        0, "layout", OPTION_WORD, "arrays|records", 0, offsetof(build_options, layout),                                \
            "Place of codes, links and ids in the file. arrays (default): each in an array of its own, the best in "   \
            "memory and "                                                                                              \
            "mostly the smallest. records: those of a vector side by side in a record of a multiple of 256 bytes. "    \
            "Records "                                                                                                 \
            "suit persistent memory and other media that are slower and read in blocks."                               \
    }

#endif
