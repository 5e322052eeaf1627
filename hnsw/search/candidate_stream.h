/* A query's candidates, nearest first, of which the caller may take any number. The walk continues from where it
 * stopped. Once it has cost, or would cost, as much as scoring all nodes, the stream scores all nodes that the walk has
 * not visited. It does so too if the walk reaches no further nodes. */
#ifndef SL_HNSW_SEARCH_CANDIDATE_STREAM_H
#define SL_HNSW_SEARCH_CANDIDATE_STREAM_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/walk.h"

/* Why the walk stopped. */
typedef enum sl_candidate_stream_end {
    SL_STREAM_OPEN,        /* it has not stopped */
    SL_STREAM_ENOUGH,      /* all wanted candidates are nearer than every unexpanded one */
    SL_STREAM_EXHAUSTED,   /* all reachable nodes are expanded */
    SL_STREAM_OVER_BUDGET, /* it has used up its evaluations */
    SL_STREAM_COSTLY       /* it has cost, or would cost, as much as scoring all nodes */
} sl_candidate_stream_end;

/* Keys are made by sl_pool_key. The stream owns all of its memory. */
typedef struct sl_candidate_stream {
    sl_allocator allocator;
    const sl_search_params *params;
    sl_allowed allowed;
    sl_walk_turn turn;
    sl_candidate_stream_end end;
    uint64_t *settled; /* keys of nodes that are expanded, allowed and not taken yet; best first */
    size_t count, room;
    int scanned;    /* 1: all nodes are scored; those neither settled nor taken are in `rest` */
    uint64_t *rest; /* heap of keys, best at the root */
    size_t rest_count, rest_room;
} sl_candidate_stream;

void sl_candidate_stream_free(sl_candidate_stream *stream);

/* Frees the memory that the scores of all nodes took. */
void sl_candidate_stream_end_query(sl_candidate_stream *stream);

/* Starts the stream of the walk's query. The stream uses the walk and its pool until its last call, and keeps `params`.
 * Parameters: start: as in sl_walk_layer.
 * Errors: SL_ENOMEM. */
sl_status sl_candidate_stream_begin(sl_candidate_stream *stream, sl_walk *walk, const sl_search_params *params,
                                    sl_range start);

/* Fills `settled` with at least the `wanted` best candidates not yet taken. No better candidate can come later. There
 * are fewer if no other nodes are left, or if the walk has used up its evaluations. It goes on if walk->max_evaluations
 * is raised. Calls params->accept at most once per id. Errors: SL_ENOMEM, after which the stream can go on. */
sl_status sl_candidate_stream_settle(sl_candidate_stream *stream, sl_walk *walk, size_t wanted);

/* Moves the `most` best settled candidates into the pool's keys, or all if there are fewer. Returns their number.
 * Parameters: most: at most the walk's max_ef. */
size_t sl_candidate_stream_take(sl_candidate_stream *stream, sl_walk *walk, size_t most);

#endif
