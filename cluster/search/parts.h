/* The parts of a split that a rank holds, and how it answers for them. */
#ifndef SL_CLUSTER_SEARCH_PARTS_H
#define SL_CLUSTER_SEARCH_PARTS_H

#include "cluster/comm/comm.h"
#include "cluster/search/split_file.h"
#include "hnsw/search/searcher.h"

#define SL_NO_PART UINT16_MAX

/* Parts [first, end) of a split, opened. */
typedef struct sl_held_parts {
    sl_allocator allocator;
    const sl_split *split;
    size_t first, end, threads;
    size_t max_ef; /* of the searchers; 0: none yet */
    sl_index **indexes;
    sl_searcher **searchers; /* threads of each part */
    sl_range *starts;        /* of each cell of the split that this rank holds: where its searches begin */
} sl_held_parts;

/* Returns the rank that holds a part: rank r has the parts of its share (sl_comm_share, sl_share_of_rank). */
size_t sl_rank_of_part(size_t part, size_t parts, size_t ranks);

/* Opens this rank's parts. The caller frees, also on failure. Errors: see sl_split_searcher_create. */
sl_status sl_held_parts_open(const sl_comm *comm, const sl_split *split, const char *folder, sl_place place,
                             size_t threads, sl_held_parts *out);
void sl_held_parts_close(sl_held_parts *parts);
/* Makes searchers for walks up to this ef. Errors: SL_ENOMEM. */
sl_status sl_held_parts_prepare(sl_held_parts *parts, size_t ef);

/* What a query asks a part. The query's vector follows in the message. */
typedef struct sl_part_request {
    uint32_t query; /* number in the asking rank's batch */
    uint32_t part;
    uint32_t cell; /* the part's nearest cell, in neighbourhoods */
    float bound;   /* see sl_searcher_set_bound; -INFINITY: none */
} sl_part_request;

/* The answer. k ids, k scores and k numbers of parts follow in the message: those that hold the result too. SL_NO_PART:
 * none. */
typedef struct sl_part_answer {
    uint32_t query, evaluations;
    float beam; /* see sl_searcher_beam_score */
    uint32_t results;
} sl_part_answer;

/* Bytes of a request with its vector, and of an answer with its results. */
size_t sl_part_request_size(size_t row);
size_t sl_part_answer_size(size_t k);

/* Requests of any ranks, one behind the other. */
typedef struct sl_part_requests {
    const uint8_t *data; /* count * sl_part_request_size(row) bytes */
    size_t count;
    size_t row; /* bytes of a query */
    sl_dtype dtype;
    size_t k, ef; /* of the searches */
    double stop;  /* see sl_search_params */
} sl_part_requests;

/* Answers requests on the parts' threads. answers: count * sl_part_answer_size(k) bytes. */
sl_status sl_held_parts_answer(sl_held_parts *parts, const sl_part_requests *requests, uint8_t *answers);

#endif
