/* The work of `split`: the rows of each part, and the part's index. */
#ifndef SL_CLUSTER_COMMANDS_SPLIT_JOB_H
#define SL_CLUSTER_COMMANDS_SPLIT_JOB_H

#include "cli/common/options.h"
#include "cli/files/vectors.h"
#include "cluster/search/place_rows.h"

typedef struct split_options {
    const char *output, *ids;
    int kind;                                        /* sl_split_kind */
    int metric, codes, refine;                       /* codes -1: by the input's type */
    double replicate;                                /* share of the vectors that a second part may hold */
    size_t parts, cells, m, ef_build, threads, seed; /* parts 0: one per rank; cells: per part */
    int json;
} split_options;

typedef struct split_job {
    const split_options *options;
    const char *base_path;
    vectors *base;
    element type;
    uint64_t *ids; /* one per row of the base; NULL: row numbers */
    sl_split split;
    size_t first, end;       /* this rank's parts */
    sl_part_rows *rows;      /* of neighbourhoods: one per part of this rank */
    double place_s, build_s; /* seconds of choosing parts and moving rows; of building */
} split_job;

/* Learns the cells, finds the parts of all rows, and sends the rows there. Every rank calls it. Returns the agreed exit
 * status. */
int split_move_rows(split_job *job);

/* Creates the index of a part, without vectors. */
sl_status split_create_index(const split_job *job, sl_index **out);

/* Builds and saves this rank's parts, and notes what identifies them in job->split. Every rank calls it. */
int split_build_parts(split_job *job);

#endif
