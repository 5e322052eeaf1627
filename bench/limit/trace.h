/* The ids a walk evaluates, expansion by expansion, and the least time they can take. */
#ifndef BENCH_LIMIT_TRACE_H
#define BENCH_LIMIT_TRACE_H

#include "hnsw/graph/index.h"

#include <time.h>

typedef struct trace {
    size_t groups, count; /* expansions, and the ids of all of them */
    size_t groups_room, count_room;
    uint32_t *nodes; /* the node an expansion reads the links of */
    size_t *ends;    /* where its ids end; they begin where those of the one before end */
    uint32_t *ids;   /* neighbours not met before, which are evaluated */
} trace;

trace trace_new(size_t groups_room, size_t count_room);
void trace_free(trace *t);

/* From here on, to trace_stop, what searches of this index expand on layer 0 goes into the trace, until that is full.
 * One index at a time, and one thread that searches. */
void trace_record(trace *t, sl_index *index);
void trace_stop(sl_index *index);

/* A trace of the same expansions, as many ids each, with ids below `ids` and nodes below `nodes` drawn at random. */
trace trace_redrawn(const trace *from, size_t ids, size_t nodes);

typedef struct replay {
    const sl_index *index;
    const sl_query_code *query;
    size_t ahead; /* expansions: that many before it is scored is a group's memory asked for */
    int links;    /* whether links are read too */
    clockid_t clock;
} replay;

/* ns that it takes to score groups [first, end), and nothing else. */
double trace_replay(const trace *t, const replay *how, size_t first, size_t end);

double clock_ns(clockid_t clock);

#endif
