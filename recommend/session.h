/* What a session does before it ranks, and what the batch call shares with it. */
#ifndef SL_RECOMMEND_SESSION_H
#define SL_RECOMMEND_SESSION_H

#include "base/memory.h"

#include <shortlist_rank.h>

/* session.c: parameters with their defaults, ef among them. Errors: SL_EINVAL. */
sl_status sl_recommend_params_read(const sl_recommend_params *given, sl_recommend_params *out);
sl_status sl_request_check(const sl_request *request);

/* recall.c: a thread's scratch of recalling candidates: the ids a request excludes, and a vector. */
typedef struct sl_recall {
    sl_allocator allocator;
    sl_index *index;
    const sl_request *request; /* while it is asked */
    uint64_t *excluded;        /* open addressing, SL_NO_ID where empty */
    size_t room, mask;         /* places it has; of those in use, a power of two, less one */
    size_t dim;
    sl_metric metric;
    sl_dtype dtype; /* of the index's vectors */
    void *vector;   /* of the index, as that type */
    void *query;    /* the request's, as the same */
} sl_recall;
sl_status sl_recall_init(sl_recall *recall, sl_index *index, const sl_allocator *allocator);
/* Takes a zeroed one. */
void sl_recall_free(sl_recall *recall);
/* The max_ef of a searcher for requests of this size, with room to look further where ids are excluded. */
size_t sl_recall_room(size_t candidates, size_t ef);
/* Up to params->candidates ids and scores; *found is how many. Allocates only for more exclusions than before. */
sl_status sl_recall_run(sl_recall *recall, sl_searcher *searcher, const sl_request *request,
                        const sl_recommend_params *params, uint64_t *ids, float *scores, size_t *found);
/* The scores that recall would give these ids; NaN for those that the index lacks. */
sl_status sl_recall_scores(sl_recall *recall, const sl_request *request, const uint64_t *ids, size_t count,
                           float *scores);

#endif
