/* Threads that answer requests. */
#ifndef CLI_RECOMMEND_FUNNEL_THREADS_H
#define CLI_RECOMMEND_FUNNEL_THREADS_H

#include <shortlist_rank.h>

/* Each thread has a session of its own. */
typedef struct funnel_threads funnel_threads;
typedef struct funnel_batch {
    const sl_request *requests;
    size_t count, first; /* number of the first request in its file */
    const char *path;    /* of that file */
    uint64_t *ids;       /* (count, n), like the next two */
    float *scores, *recall_scores;
    float *latencies; /* microseconds, one per request */
} funnel_batch;
/* Makes the threads, at least 1. `params` must outlive them. */
int funnel_threads_create(sl_recommender *recommender, const sl_recommend_params *params, size_t threads,
                          funnel_threads **out);
void funnel_threads_free(funnel_threads *threads);
/* Answers the block of requests. Adds to *counts and to *seconds. */
int funnel_threads_answer(funnel_threads *threads, const funnel_batch *batch, sl_recommend_stats *counts,
                          double *seconds);

#endif
