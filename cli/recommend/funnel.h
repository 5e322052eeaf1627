/* The funnel from requests to the top n. An index, a model and an item table answer a file of requests. The funnel
 * times each request, and judges answers if the file has relevant ids. */
#ifndef CLI_RECOMMEND_FUNNEL_H
#define CLI_RECOMMEND_FUNNEL_H

#include "cli/common/json_out.h"
#include "cli/recommend/requests.h"

/* The commands' task. The paths of model and items may be "none". */
typedef struct funnel_task {
    const char *index_path, *model_path, *items_path, *requests_path;
    const char *vectors_path, *id, *group; /* NULL: none */
    size_t n, candidates, ef, max_per_group, threads;
    int item_part; /* an sl_item_part */
    int progress;
} funnel_task;

/* Options of both commands, see OPTIONS_FUNNEL. */
typedef struct funnel_options {
    const char *vectors, *id, *group;
    size_t candidates, ef, max_per_group;
    int item_part;
} funnel_options;
/* `paths`: index, model, items, requests. */
funnel_task funnel_task_of(const char *const *paths, const funnel_options *options, size_t n, size_t threads,
                           int progress);
#define OPTIONS_FUNNEL(type)                                                                                           \
    {0,                                                                                                                \
     "candidates",                                                                                                     \
     OPTION_COUNT,                                                                                                     \
     "N",                                                                                                              \
     0,                                                                                                                \
     offsetof(type, funnel.candidates),                                                                                \
     "Items recalled and scored a request (default 500, or as many as the index holds)."},                             \
        {0,                                                                                                            \
         "ef",                                                                                                         \
         OPTION_COUNT,                                                                                                 \
         "N",                                                                                                          \
         0,                                                                                                            \
         offsetof(type, funnel.ef),                                                                                    \
         "Candidates kept while the graph is walked; 0 (default) as many as --candidates, at least 64."},              \
        {0,                                                                                                            \
         "id",                                                                                                         \
         OPTION_TEXT,                                                                                                  \
         "COLUMN",                                                                                                     \
         0,                                                                                                            \
         offsetof(type, funnel.id),                                                                                    \
         "The column of the items' ids (default id) where ITEMS is a .csv file."},                                     \
        {0,                                                                                                            \
         "item-part",                                                                                                  \
         OPTION_WORD,                                                                                                  \
         "layer|codes|layer-bf16|layer-i8",                                                                            \
         0,                                                                                                            \
         offsetof(type, funnel.item_part),                                                                             \
         "Values computed ahead for each item. layer (default) is the item's part of the model's first layer, as "     \
         "floats. layer-bf16 keeps that part in half the memory, layer-i8 in a quarter, by a byte a value and a "      \
         "scale "                                                                                                      \
         "an item. Scores change a little. codes is the item's encoded features, with more work a request."},          \
    {                                                                                                                  \
        0, "vectors", OPTION_TEXT, "FILE", 0, offsetof(type, funnel.vectors),                                          \
            "A file of vectors whose row i is the vector of request i, in place of the column vector."                 \
    }

/* Quality of the answers by the relevant ids: means over the judged requests. */
typedef struct quality {
    double ndcg, recall, hit_rate;
} quality;

typedef struct funnel_report {
    size_t requests, judged;
    sl_recommend_stats counts;
    double qps, p50_us, p99_us;
    size_t item_bytes;     /* bytes of what was computed ahead for the items */
    quality ranked, alone; /* with the model, and by recall alone; NaN: no request was judged */
} funnel_report;

/* A block of answers. Row i, of n entries, belongs to request first + i. */
typedef struct answers {
    size_t first, count, n;
    const uint64_t *ids;
    const float *scores, *recall_scores;
} answers;
/* Gets blocks of answers in order. Returns an exit status. */
typedef int (*answers_fn)(void *ctx, const answers *answers);

typedef struct funnel funnel;

/* Checks the task and opens its files. Returns an exit status. *out is NULL on failure. */
int funnel_open(const funnel_task *task, funnel **out);
void funnel_close(funnel *funnel);
/* The item table, or NULL. */
const sl_items *funnel_items(const funnel *funnel);
/* Answers all requests; `take` may be NULL. */
int funnel_run(funnel *funnel, answers_fn take, void *ctx, funnel_report *report);

/* Writes the report's members, or its lines. */
void json_funnel(json *json, const funnel_task *task, const funnel_report *report);
void print_funnel(FILE *file, const funnel_task *task, const funnel_report *report);

#endif
