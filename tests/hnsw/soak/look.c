/* Ways to ask an index, each compared with the oracle. */
#include "base/random.h"
#include "tests/hnsw/soak/soak.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { K = 10, EF = 100, FOUND = 256, PAGES = 4 };

/* Notes what is wrong with the answers of this call. */
__attribute__((format(printf, 2, 3))) static void differ(soak_looker *l, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (!l->wrongs++) vsnprintf(l->wrong, TEXT, format, args);
    va_end(args);
}

/* A later page of an iterator has what was added meanwhile: an id may come again with another vector. */
static int may_come_again(const soak_looker *l, uint64_t id) {
    return l->pages && !oracle_is_unchanged(l->soak->oracle, id, l->from[id]);
}

static uint64_t random_of(const soak_looker *l, uint64_t which) {
    return sl_random_at(l->seed, 8 * l->turn + which);
}

/* Notes what is visible before a call. */
static void begin(soak_looker *l, soak_op op) {
    if (l->durable)
        memcpy(l->from, l->durable, sizeof l->from);
    else if (l->elsewhere)
        oracle_look_synced(l->soak->oracle, l->from);
    else
        oracle_look(l->soak->oracle, l->from);
    memset(l->seen, 0, sizeof l->seen);
    soak_count(l->soak, op, 1);
    if (l->elsewhere) soak_count(l->soak, SOAK_ELSEWHERE, 1);
}

/* Judges one result. Returns 0 if it's none. */
static int judge_hit(soak_looker *l, const char *call, uint64_t id, double distance, const float *query) {
    if (id == SL_NO_ID) return 0;
    if (id >= IDS) {
        differ(l, "%s found id %llu, which never was", call, (unsigned long long)id);
        return 0;
    }
    if (l->seen[id]++ && !may_come_again(l, id)) differ(l, "%s found id %llu twice", call, (unsigned long long)id);
    if (query && !oracle_may_be_at(l->soak->oracle, id, l->from[id], distance, query))
        differ(l, "%s found a vector of id %llu that was not there", call, (unsigned long long)id);
    return 1;
}

/* Judges that an id was found, or not. */
static void judge_presence(soak_looker *l, const char *call, uint64_t id) {
    const oracle *o = l->soak->oracle;
    char text[TEXT / 2];
    if (!l->seen[id] && !oracle_may_be_absent(o, id, l->from[id]))
        differ(l, "%s missed id %llu, of versions%s", call, (unsigned long long)id,
               oracle_text(o, id, l->from[id], text, sizeof text));
    if (l->seen[id] && !oracle_may_be_there(o, id, l->from[id]))
        differ(l, "%s found id %llu, which was deleted: versions%s", call, (unsigned long long)id,
               oracle_text(o, id, l->from[id], text, sizeof text));
}

/* Searches for a stored vector. It must be found, if it stays, but for the few that a walk may miss. */
static void look_near(soak_looker *l) {
    const uint64_t id = random_of(l, 0) % IDS;
    sl_search_params params;
    float query[DIM], scores[K];
    uint64_t ids[K];
    sl_search_params_init(&params);
    params.ef = EF;
    begin(l, SOAK_WALKS);
    const uint32_t version = oracle_version(l->soak->oracle, id);
    oracle_vector(id, version, query);
    const sl_status status = l->searcher && random_of(l, 1) % 2
                                 ? sl_searcher_search(l->searcher, query, SL_F32, K, &params, ids, scores, NULL)
                                 : sl_index_search(l->index, query, SL_F32, 1, 0, K, &params, ids, scores, NULL);
    if (soak_fails(l->soak, status, "search")) return;
    for (size_t i = 0; i < K; i++)
        judge_hit(l, "a search", ids[i], (double)scores[i], query);
    if (version && oracle_is_unchanged(l->soak->oracle, id, l->from[id]) && ids[0] != id)
        soak_count(l->soak, SOAK_MISSED, 1);
}

typedef struct hits {
    soak_looker *looker;
    const float *query;
} hits;

static int note_hit(void *ctx, size_t query, uint64_t id, float score) {
    const hits *h = ctx;
    (void)query;
    judge_hit(h->looker, "a search that compares with all", id, (double)score, h->query);
    return 0;
}

static void look_at_all(soak_looker *l) {
    float query[DIM];
    sl_range_params params;
    sl_range_params_init(&params);
    params.exact = 1;
    begin(l, SOAK_EXACT);
    oracle_vector(IDS, (uint32_t)(1 + l->turn % 100), query);
    const sl_status status =
        sl_index_range(l->index, query, SL_F32, 1, 0, (double)INFINITY, &params, note_hit, &(hits){l, query}, NULL);
    if (soak_fails(l->soak, status, "sl_index_range")) return;
    for (uint64_t id = 0; id < IDS; id++)
        judge_presence(l, "a search that compares with all", id);
}

/* Searches among the ids with one tag bit, which are those of one residue. */
static void look_filtered(soak_looker *l) {
    static const sl_filter_strategy strategies[] = {SL_FILTER_EXACT, SL_FILTER_AUTO, SL_FILTER_WALK};
    const uint64_t bit = random_of(l, 0) % TAG_BITS;
    sl_filter_params filter_params;
    sl_search_params params;
    sl_filter *filter;
    float query[DIM], scores[FOUND];
    uint64_t ids[FOUND];
    sl_filter_params_init(&filter_params);
    filter_params.any_tags = (uint64_t)1 << bit;
    begin(l, SOAK_FILTERED);
    if (soak_fails(l->soak, sl_filter_create(l->index, &filter_params, &filter), "sl_filter_create")) return;
    sl_search_params_init(&params);
    params.ef = FOUND;
    params.filter = filter;
    params.strategy = strategies[random_of(l, 1) % 3];
    oracle_vector(random_of(l, 2) % IDS, 1, query);
    sl_status status;
    while ((status = sl_index_search(l->index, query, SL_F32, 1, 0, FOUND, &params, ids, scores, NULL)) == SL_EINVAL &&
           strstr(sl_last_error(), "renumbered"))
        if (soak_fails(l->soak, sl_filter_refresh(filter), "sl_filter_refresh")) break;
    sl_filter_free(filter);
    if (soak_fails(l->soak, status, "a filtered search")) return;
    for (size_t i = 0; i < FOUND; i++)
        if (judge_hit(l, "a filtered search", ids[i], (double)scores[i], query) && ids[i] % TAG_BITS != bit)
            differ(l, "a filter let id %llu pass, without its tag", (unsigned long long)ids[i]);
    for (uint64_t id = bit; id < IDS && params.strategy == SL_FILTER_EXACT; id += TAG_BITS)
        if (l->seen[id] || oracle_is_unchanged(l->soak->oracle, id, l->from[id]))
            judge_presence(l, "a filtered search", id);
}

static void look_at_pages(soak_looker *l) {
    sl_iterator *iterator;
    float query[DIM], scores[K];
    uint64_t ids[K];
    size_t got;
    oracle_vector(random_of(l, 0) % IDS, 1, query);
    begin(l, SOAK_PAGES);
    if (soak_fails(l->soak, sl_iterator_create(l->index, query, SL_F32, NULL, &iterator), "sl_iterator_create")) return;
    l->pages = 1;
    for (size_t page = 0; page < PAGES; page++) {
        const sl_status status = sl_iterator_next(iterator, K, ids, scores, &got, NULL);
        if (status == SL_EINVAL && strstr(sl_last_error(), "renumbered")) break;
        if (soak_fails(l->soak, status, "sl_iterator_next")) break;
        for (size_t i = 0; i < got; i++)
            judge_hit(l, "an iterator", ids[i], (double)scores[i], query);
    }
    l->pages = 0;
    sl_iterator_free(iterator);
}

static void look_up(soak_looker *l) {
    const uint64_t id = random_of(l, 0) % IDS;
    float x[DIM];
    int found = 0;
    begin(l, SOAK_LOOKUPS);
    if (soak_fails(l->soak, sl_index_contains(l->index, id, &found), "sl_index_contains")) return;
    l->seen[id] = (uint32_t)found;
    judge_presence(l, "contains", id);
    const sl_status status = sl_index_get(l->index, &id, 1, SL_F32, x);
    if (status != SL_ENOTFOUND && soak_fails(l->soak, status, "sl_index_get")) return;
    l->seen[id] = status == SL_OK;
    judge_presence(l, "get", id);
    if (status == SL_OK && !oracle_may_be(l->soak->oracle, id, l->from[id], x))
        differ(l, "get gave a vector of id %llu that was not there", (unsigned long long)id);
}

static void look_at_ids(soak_looker *l) {
    uint64_t ids[2 * IDS];
    size_t count = 0;
    begin(l, SOAK_LISTS);
    if (soak_fails(l->soak, sl_index_ids(l->index, ids, 2 * IDS, &count), "sl_index_ids")) return;
    for (size_t i = 0; i < count && i < 2 * IDS; i++)
        judge_hit(l, "the list of ids", ids[i], 0, NULL);
    for (uint64_t id = 0; id < IDS; id++)
        judge_presence(l, "the list of ids", id);
}

static void ask(soak_looker *l, void (*way)(soak_looker *)) {
    l->wrongs = 0;
    way(l);
    if (l->wrongs) soak_differ(l->soak, "%s: %s; %zu more at once", l->who, l->wrong, l->wrongs - 1);
}

void soak_look_at_all(soak_looker *l) {
    ask(l, look_at_all);
}

void soak_look(soak_looker *l) {
    static void (*const ways[])(soak_looker *) = {look_near,     look_near, look_up,       look_at_all, look_near,
                                                  look_filtered, look_up,   look_at_pages, look_near,   look_at_ids};
    if (!l->searcher && soak_fails(l->soak, sl_searcher_create(l->index, EF, &l->searcher), "sl_searcher_create"))
        return;
    l->turn++;
    ask(l, ways[l->turn % (sizeof ways / sizeof *ways)]);
}

void soak_looker_free(soak_looker *l) {
    sl_searcher_free(l->searcher);
    l->searcher = NULL;
}
