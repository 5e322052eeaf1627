/* A query's candidates, nearest first, as many as a caller goes on to take. The walk continues from where it stopped.
 * Once that costs more, the stream scores all nodes that the walk has not visited. */
#ifndef SL_HNSW_SEARCH_CANDIDATE_STREAM_H
#define SL_HNSW_SEARCH_CANDIDATE_STREAM_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/walk.h"

/* Why the walk stopped. */
typedef enum sl_candidate_stream_end {
    SL_STREAM_OPEN,        /* it has not */
    SL_STREAM_ENOUGH,      /* the wanted candidates are nearer than all unexpanded ones */
    SL_STREAM_EXHAUSTED,   /* all reachable nodes are expanded */
    SL_STREAM_OVER_BUDGET, /* it has used up its evaluations */
    SL_STREAM_COSTLY       /* it has cost as much as scoring all nodes */
} sl_candidate_stream_end;

/* Keys are those of pool.h. The stream owns all of its memory. */
typedef struct sl_candidate_stream {
    sl_allocator allocator;
    const sl_search_params *params;
    sl_allowed allowed;
    sl_walk_turn turn;
    sl_candidate_stream_end end;
    uint64_t *settled; /* expanded, allowed and not taken yet; best first */
    size_t count, room;
    int scanned;    /* all nodes are scored: what is neither settled nor taken lies in `rest` */
    uint64_t *rest; /* heap of keys, best at the root */
    size_t rest_count, rest_room;
} sl_candidate_stream;

void sl_candidate_stream_free(sl_candidate_stream *stream);

/* Frees the memory that scoring all nodes took. */
void sl_candidate_stream_end_query(sl_candidate_stream *stream);

/* Starts the stream of the walk's query. The stream uses the walk and its pool until its last call, and keeps `params`.
 * Parameters: start: as in sl_walk_layer.
 * Errors: SL_ENOMEM. */
sl_status sl_candidate_stream_begin(sl_candidate_stream *stream, sl_walk *walk, const sl_search_params *params,
                                    sl_range start);

/* Settles the `wanted` best candidates that are not taken. Fewer are left if all nodes were seen, or if the walk's
 * evaluations are used up; a larger walk->max_evaluations lets it go on. Calls params->accept at most once an id.
 * Errors: SL_ENOMEM, after which the stream can go on. */
sl_status sl_candidate_stream_settle(sl_candidate_stream *stream, sl_walk *walk, size_t wanted);

/* Moves the `most` best settled candidates, or all if they are fewer, into the pool's keys. Returns their number.
 * Parameters: most: at most the walk's max_ef. */
size_t sl_candidate_stream_take(sl_candidate_stream *stream, sl_walk *walk, size_t most);

#endif
