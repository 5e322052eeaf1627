/* The first step of a request: recalling candidates from the index. */
#ifndef SL_RECOMMEND_RECALL_H
#define SL_RECOMMEND_RECALL_H

#include "recommend/catalog.h"

#include <shortlist_rank.h>

/* One thread's state for recalling candidates. */
typedef struct sl_recall {
    sl_allocator allocator;
    sl_index *index;
    const sl_request *request; /* the request being served, for the filter */
    uint64_t *excluded;        /* the excluded ids: open addressing, SL_NO_ID in empty places */
    size_t room, places;       /* places allocated; places in use, 0 without excluded ids */
    uint64_t seed;             /* seed of the ids' hash */
    const sl_catalog *deleted; /* ids with tombstones there are left out; NULL: none are */
    size_t dim;
    sl_metric metric;
    sl_dtype dtype;     /* element type of the index's vectors, and of the next two arrays */
    int multi;          /* 1: an id may have several vectors */
    void *vectors;      /* vectors of one id */
    size_t vector_room; /* bytes of `vectors` */
    void *query;        /* the request's vector */
    uint64_t *births;   /* where a search writes the births of what it finds; NULL: not wanted */
} sl_recall;
sl_status sl_recall_init(sl_recall *recall, sl_index *index, const sl_allocator *allocator);
/* Takes a zeroed struct. */
void sl_recall_free(sl_recall *recall);
/* Returns the max_ef of a searcher for such requests. It leaves room to search further if ids are excluded. */
size_t sl_recall_room(size_t candidates, size_t ef);
/* Recalls up to params->candidates ids and scores, best first; *found is their number. Allocates only if more ids are
 * excluded than ever before. Errors: as of a search. */
sl_status sl_recall_run(sl_recall *recall, sl_searcher *searcher, const sl_request *request,
                        const sl_recommend_params *params, uint64_t *ids, float *scores, size_t *found);
/* Computes the scores that recall would give these ids, each by its best vector; NaN for ids that the index lacks.
 * Errors: as of a search. */
sl_status sl_recall_scores(sl_recall *recall, const sl_request *request, const uint64_t *ids, size_t count,
                           float *scores);

#endif
