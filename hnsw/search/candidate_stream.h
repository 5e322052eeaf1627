/* Candidates of a query, the nearest first, as many as a caller goes on to ask for. A walk goes on from where it
 * stopped. If that would cost more, all that it has not seen is compared. */
#ifndef SL_HNSW_SEARCH_CANDIDATE_STREAM_H
#define SL_HNSW_SEARCH_CANDIDATE_STREAM_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/walk.h"

/* What the candidate chosen last told about the walk. */
typedef enum sl_candidate_stream_end {
    SL_STREAM_OPEN,        /* it goes on */
    SL_STREAM_ENOUGH,      /* as many as were asked for are nearer than all that is not expanded */
    SL_STREAM_EXHAUSTED,   /* all that can be reached is expanded */
    SL_STREAM_OVER_BUDGET, /* it has made as many evaluations as it may */
    SL_STREAM_COSTLY       /* it has cost as much as comparing all */
} sl_candidate_stream_end;

/* Keys are those of pool.h. All memory is the stream's. */
typedef struct sl_candidate_stream {
    sl_allocator allocator;
    const sl_search_params *params;
    sl_allowed allowed;
    sl_walk_turn turn;
    sl_candidate_stream_end end;
    uint64_t *settled; /* candidates that are expanded, may be returned and were not taken, the best first */
    size_t count, room;
    int scanned;    /* all nodes have been compared: what is not settled or taken lies in `rest` */
    uint64_t *rest; /* a heap, its best at the root */
    size_t rest_count, rest_room;
} sl_candidate_stream;

void sl_candidate_stream_free(sl_candidate_stream *stream);

/* Frees what a comparison of all took. */
void sl_candidate_stream_end_query(sl_candidate_stream *stream);

/* Begins for the query that the walk was asked. The walk and its pool serve the stream until the last call. `start`:
 * as sl_walk_layer has it. `params` must stay. Errors: SL_ENOMEM. */
sl_status sl_candidate_stream_begin(sl_candidate_stream *stream, sl_walk *walk, const sl_search_params *params,
                                    sl_range start);

/* Looks until the `wanted` best of what was not taken are settled, or fewer where all there is has been seen, or where
 * the walk is spent. It may then go on with a larger walk->max_evaluations. Asks
 * params->accept at most once about an id. Errors: SL_ENOMEM, after which the stream may go on. */
sl_status sl_candidate_stream_settle(sl_candidate_stream *stream, sl_walk *walk, size_t wanted);

/* Takes the `most` best settled candidates, or all where they are fewer, and leaves them in the pool's keys. Returns
 * how many they are. `most` is at most the walk's max_ef. */
size_t sl_candidate_stream_take(sl_candidate_stream *stream, sl_walk *walk, size_t most);

#endif
