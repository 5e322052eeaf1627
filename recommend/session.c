#include "recommend/session.h"

#include "base/key_counts.h"
#include "base/params.h"
#include "hnsw/search/accessors.h"
#include "recommend/fresh_rows.h"
#include "recommend/recall.h"
#include "recommend/recommender.h"

#include <math.h>
#include <string.h>

#define LEAST_EF 64u
/* Ids that a search finds beyond the candidates, if some items are deleted: a share of the candidates, and so many. */
#define SPARE_SHARE 16u
#define SPARE_LEAST 4u

struct sl_session {
    sl_recommender *recommender;
    sl_hazard *hazard;
    size_t n, candidates, ef; /* the most that a request may ask for */
    size_t room;              /* the most ids that one search may find: more than candidates, for deleted ones */
    sl_searcher *searcher;
    sl_model_scorer *scorer; /* scorer of the last pair's model; NULL: no pair had a model */
    sl_recall recall;
    uint64_t *ids; /* room ids that were found; recall_scores and rows have as many entries */
    float *recall_scores;
    sl_candidate *rows;
    uint64_t *births;    /* of the vectors that were found */
    sl_fresh_rows fresh; /* of the scorer's model */
    float *scores;       /* of the candidates */
    sl_top_entry *top;
    void *groups; /* counts of groups, see sl_diversify */
};

/* ---------------------------------------------------------------------------------------------------------------
 * Parameters
 * ------------------------------------------------------------------------------------------------------------- */

void sl_recommend_params_init_sized(sl_recommend_params *params, size_t struct_size) {
    const sl_recommend_params mine = {.struct_size = sizeof mine, .n = 10, .candidates = 500, .threads = 1};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

sl_status sl_recommend_params_read(const sl_recommend_params *given, sl_recommend_params *out) {
    sl_recommend_params_init(out);
    SL_TRY(sl_params_in(out, sizeof *out, given, "sl_recommend_params_init"));
    if (out->n == 0 || out->candidates < out->n || out->candidates > SL_MAX_EF)
        return sl_fail(SL_EINVAL, "n is %zu and candidates %zu; give n from 1 to candidates, and those to %u", out->n,
                       out->candidates, SL_MAX_EF);
    if (out->ef > SL_MAX_EF) return sl_fail(SL_EINVAL, "ef is %zu; give up to %u", out->ef, SL_MAX_EF);
    if (out->ef == 0) out->ef = out->candidates > LEAST_EF ? out->candidates : LEAST_EF;
    return SL_OK;
}

sl_status sl_request_check(const sl_request *request) {
    SL_TRY(sl_params_check_out(request, "sl_request"));
    if (request->struct_size < sizeof *request)
        return sl_fail(SL_EINVAL, "struct_size of a request is %zu; set it to sizeof(sl_request)",
                       request->struct_size);
    if (request->exclude_count && !request->exclude)
        return sl_fail(SL_EINVAL, "exclude is NULL, exclude_count %zu", request->exclude_count);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Making and freeing
 * ------------------------------------------------------------------------------------------------------------- */

/* Makes a scorer for the pair's model, unless the session has it. */
static sl_status ensure_scorer(sl_session *session, const sl_pair *pair) {
    if (!pair->ranker || sl_model_scorer_fits(session->scorer, pair)) return SL_OK;
    sl_fresh_rows_free(&session->fresh);
    sl_model_scorer_free(session->scorer);
    return sl_model_scorer_create(session->recommender, pair, session->candidates, &session->scorer);
}

/* Bytes of the counts of groups. */
static size_t group_bytes(const sl_session *session) {
    return sl_key_counts_bytes(sl_key_counts_places(session->n));
}

static sl_status make_arrays(sl_session *session) {
    const sl_allocator *allocator = &session->recommender->allocator;
    size_t count = session->candidates;
    sl_status status = SL_OK;
    session->ids = sl_mem_array(allocator, session->room, sizeof *session->ids, &status);
    session->recall_scores = sl_mem_array(allocator, session->room, sizeof *session->recall_scores, &status);
    session->scores = sl_mem_array(allocator, count, sizeof *session->scores, &status);
    session->rows = sl_mem_array(allocator, session->room, sizeof *session->rows, &status);
    session->births = sl_mem_array(allocator, session->room, sizeof *session->births, &status);
    session->top = sl_mem_array(allocator, count, sizeof *session->top, &status);
    session->groups = sl_mem_array(allocator, group_bytes(session), 1, &status);
    return status;
}

static sl_status make_session(sl_session *session) {
    sl_recommender *recommender = session->recommender;
    SL_TRY(sl_hazards_take(&recommender->pairs, &session->hazard));
    SL_TRY(sl_recall_init(&session->recall, recommender->index, &recommender->allocator));
    SL_TRY(make_arrays(session));
    SL_TRY(
        sl_searcher_create(recommender->index, sl_recall_room(session->candidates, session->ef), &session->searcher));
    sl_status status = ensure_scorer(session, sl_recommender_begin(recommender, session->hazard));
    sl_hazard_release(session->hazard);
    return status;
}

sl_status sl_session_create(sl_recommender *recommender, const sl_recommend_params *params, sl_session **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!recommender) return sl_fail(SL_EINVAL, "recommender is NULL");
    sl_recommend_params mine;
    void *block;
    SL_TRY(sl_recommend_params_read(params, &mine));
    SL_TRY(sl_mem_alloc(&recommender->allocator, sizeof(sl_session), &block));
    sl_session *session = block;
    session->recommender = recommender;
    session->n = mine.n;
    session->candidates = mine.candidates;
    session->ef = mine.ef;
    session->room = mine.candidates < SL_MAX_EF / 2 ? 2 * mine.candidates : SL_MAX_EF;
    sl_status status = make_session(session);
    if (status == SL_OK)
        *out = session;
    else
        sl_session_free(session);
    return status;
}

void sl_session_free(sl_session *session) {
    if (!session) return;
    const sl_allocator *allocator = &session->recommender->allocator;
    size_t count = session->candidates;
    sl_fresh_rows_free(&session->fresh);
    sl_model_scorer_free(session->scorer);
    sl_searcher_free(session->searcher);
    sl_recall_free(&session->recall);
    SL_FREE_ARRAY(allocator, session->ids, session->room);
    SL_FREE_ARRAY(allocator, session->recall_scores, session->room);
    SL_FREE_ARRAY(allocator, session->scores, count);
    SL_FREE_ARRAY(allocator, session->rows, session->room);
    SL_FREE_ARRAY(allocator, session->births, session->room);
    SL_FREE_ARRAY(allocator, session->top, count);
    sl_mem_free(allocator, session->groups, group_bytes(session));
    sl_hazard_give_back(session->hazard);
    SL_FREE(allocator, session);
}

/* ---------------------------------------------------------------------------------------------------------------
 * A request
 * ------------------------------------------------------------------------------------------------------------- */

/* A request that is being served. */
typedef struct serving {
    sl_session *session;
    const sl_pair *pair; /* in use until the request ends */
    const sl_request *request;
    sl_recommend_stats stats;
} serving;

/* A caller's arrays, of n entries each. */
typedef struct answer {
    uint64_t *ids;
    float *scores, *recall_scores; /* NULL: not wanted */
} answer;

/* Begins serving a request. The pair in use stays until end_serving. */
static serving begin_serving(sl_session *session, const sl_request *request) {
    const sl_pair *pair = sl_recommender_begin(session->recommender, session->hazard);
    return (serving){session, pair, request, {.requests = 1, .version = pair->version}};
}

/* Ends serving. On success, *stats gets the counts, unless it's NULL. */
static sl_status end_serving(const serving *s, sl_status status, sl_recommend_stats *stats) {
    sl_hazard_release(s->session->hazard);
    if (status == SL_OK && stats) *stats = s->stats;
    return status;
}

/* Gives the request's user to a scorer of the pair's model. */
static sl_status put_user(const serving *s) {
    SL_TRY(ensure_scorer(s->session, s->pair));
    return s->pair->ranker ? sl_model_scorer_user(s->session->scorer, s->request) : SL_OK;
}

/* Finds the prepared row of each id. First prefetches the memory of all look-ups, and then all rows. Returns the number
 * of deleted ids. */
static size_t locate_rows(serving *s, const uint64_t *ids, size_t count) {
    const sl_prepared *prepared = s->pair->prepared;
    const sl_id_table *table = sl_catalog_table(&prepared->catalog);
    sl_candidate *rows = s->session->rows;
    size_t deleted = 0;
    for (size_t i = 0; i < count; i++)
        sl_id_table_prefetch(table, ids[i]);
    for (size_t i = 0; i < count; i++) {
        sl_row_ref ref = sl_id_table_find(table, ids[i]);
        int found = sl_ref_is_row(ref);
        rows[i].part = found ? sl_catalog_part(&prepared->catalog, sl_ref_part(ref)) : prepared->missing;
        rows[i].row = found ? sl_ref_row(ref) : 0;
        rows[i].missing = ref == SL_NO_REF && prepared->lists_items;
        rows[i].deleted = !found && ref != SL_NO_REF;
        deleted += rows[i].deleted;
        sl_prefetch(&rows[i].part->marks[rows[i].row], 1);
    }
    return deleted;
}

static void count_missing(serving *s, size_t count) {
    for (size_t i = 0; i < count; i++)
        s->stats.without_features += s->session->rows[i].missing;
}

/* Replaces rows of candidates whose vectors are others than when the rows were prepared. */
static sl_status follow_vectors(serving *s, const uint64_t *ids, size_t count) {
    sl_session *session = s->session;
    const sl_vector_births now = {session->rows, ids, session->births, count};
    return sl_fresh_rows_replace(&session->fresh, s->pair, &now, session->candidates);
}

/* Leaves deleted candidates out. Returns how many are left. */
static size_t drop_deleted(sl_session *session, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (session->rows[i].deleted) continue;
        session->ids[kept] = session->ids[i];
        session->recall_scores[kept] = session->recall_scores[i];
        session->births[kept] = session->births[i];
        session->rows[kept++] = session->rows[i];
    }
    return kept;
}

/* Searches for `count` ids and finds their rows. Leaves deleted ones out. `accepts` is 1 if the search goes past
 * deleted ones, which costs more than to search for more ids. *more is 1 if a larger search may find more. */
static sl_status recall_ids(serving *s, const sl_recommend_params *params, size_t count, int accepts, size_t *found,
                            int *more) {
    sl_session *session = s->session;
    sl_recommend_params asked = *params;
    asked.candidates = count;
    session->recall.deleted = accepts ? &s->pair->prepared->catalog : NULL;
    session->recall.births = s->pair->prepared->vectors ? session->births : NULL;
    SL_TRY(sl_recall_run(&session->recall, session->searcher, s->request, &asked, session->ids, session->recall_scores,
                         found));
    *more = *found == count && !accepts;
    if (locate_rows(s, session->ids, *found)) *found = drop_deleted(session, *found);
    return SL_OK;
}

/* Recalls the candidates. If the table has tombstones, searches for a few more ids, since some may be deleted. If too
 * many are, searches for more, and at last past them. */
static sl_status recall_candidates(serving *s, const sl_recommend_params *params, size_t *found) {
    const size_t wanted = params->candidates, room = s->session->room;
    size_t count = wanted;
    int more;
    if (sl_catalog_tombstones(&s->pair->prepared->catalog)) count += wanted / SPARE_SHARE + SPARE_LEAST;
    if (count > room) count = room;
    SL_TRY(recall_ids(s, params, count, 0, found, &more));
    count += 2 * (wanted - (*found < wanted ? *found : wanted)) + SPARE_LEAST;
    if (more && *found < wanted && count <= room) SL_TRY(recall_ids(s, params, count, 0, found, &more));
    if (more && *found < wanted) SL_TRY(recall_ids(s, params, wanted, 1, found, &more));
    if (*found > wanted) *found = wanted;
    SL_TRY(follow_vectors(s, s->session->ids, *found));
    count_missing(s, *found);
    return SL_OK;
}

/* Orders the first `found` candidates for the answer. Returns the answer's size. */
static size_t choose_candidates(const serving *s, size_t found, const sl_recommend_params *params) {
    sl_session *session = s->session;
    sl_top top = {session->top, 0, params->max_per_group ? session->candidates : params->n};
    if (s->pair->ranker) {
        for (size_t i = 0; i < found; i++)
            sl_top_push(&top, (double)session->scores[i], i);
        sl_top_sort(&top);
    } else {
        /* Keeps the recall's order. Under some metrics it isn't the order of recall's scores. */
        for (; top.size < found && top.size < top.k; top.size++)
            top.entries[top.size] = (sl_top_entry){0, top.size};
    }
    if (!params->max_per_group) return top.size;
    return sl_diversify(top.entries, top.size, params->n, params->max_per_group, session->rows, session->groups);
}

/* Writes the chosen candidates, and fills up to n with SL_NO_ID and NaN. */
static void write_answer(const serving *s, size_t n, const answer *out) {
    const sl_session *session = s->session;
    const float *from = s->pair->ranker ? session->scores : session->recall_scores;
    for (size_t i = 0; i < n; i++) {
        int has = i < s->stats.results;
        size_t at = has ? (size_t)session->top[i].id : 0;
        out->ids[i] = has ? session->ids[at] : SL_NO_ID;
        if (out->scores) out->scores[i] = has ? from[at] : NAN;
        if (out->recall_scores) out->recall_scores[i] = has ? session->recall_scores[at] : NAN;
    }
}

static sl_status serve_recommend(serving *s, const sl_recommend_params *params, const answer *out) {
    sl_session *session = s->session;
    size_t found;
    SL_TRY(put_user(s));
    SL_TRY(recall_candidates(s, params, &found));
    if (s->pair->ranker)
        SL_TRY(sl_model_scorer_run(session->scorer, session->rows, session->recall_scores, found, session->scores));
    s->stats.results = choose_candidates(s, found, params);
    s->stats.candidates = found;
    write_answer(s, params->n, out);
    return SL_OK;
}

static sl_status check_size(const sl_session *session, const sl_recommend_params *params) {
    if (params->n <= session->n && params->candidates <= session->candidates && params->ef <= session->ef) return SL_OK;
    return sl_fail(SL_EINVAL,
                   "n %zu, candidates %zu, ef %zu; this session was made for %zu, %zu and %zu: create a "
                   "larger one",
                   params->n, params->candidates, params->ef, session->n, session->candidates, session->ef);
}

/* Refuses max_per_group without groups. It would have no effect, and nobody would notice. */
static sl_status check_groups(const sl_session *session, const sl_recommend_params *params) {
    if (!params->max_per_group || session->recommender->group) return SL_OK;
    return sl_fail(SL_EINVAL,
                   "max_per_group is %zu, but the recommender was made without a column of groups; name one "
                   "when making it",
                   params->max_per_group);
}

sl_status sl_session_recommend(sl_session *session, const sl_request *request, const sl_recommend_params *params,
                               uint64_t *ids, float *scores, float *recall_scores, sl_recommend_stats *stats) {
    if (!session || !ids) return sl_fail(SL_EINVAL, "session or ids is NULL");
    sl_recommend_params mine;
    SL_TRY(sl_recommend_params_read(params, &mine));
    SL_TRY(check_size(session, &mine));
    SL_TRY(check_groups(session, &mine));
    SL_TRY(sl_request_check(request));
    if (!request->vector) return sl_fail(SL_EINVAL, "the request's vector is NULL; recall needs one");
    const answer out = {ids, scores, recall_scores};
    serving s = begin_serving(session, request);
    return end_serving(&s, serve_recommend(&s, &mine, &out), stats);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Ranking alone
 * ------------------------------------------------------------------------------------------------------------- */

/* Scores at most as many ids as the session has candidates. */
static sl_status score_slice(serving *s, const uint64_t *ids, const float *recall_scores, size_t count, float *scores) {
    sl_session *session = s->session;
    const sl_ranker *ranker = s->pair->ranker;
    if (!recall_scores && (!ranker || sl_model_scorer_asks_recall(session->scorer))) {
        SL_TRY(sl_recall_scores(&session->recall, s->request, ids, count, session->recall_scores));
        recall_scores = session->recall_scores;
    }
    const size_t deleted = locate_rows(s, ids, count);
    if (s->pair->prepared->vectors) SL_TRY(sl_index_births(session->recommender->index, ids, count, session->births));
    SL_TRY(follow_vectors(s, ids, count));
    count_missing(s, count);
    if (ranker)
        SL_TRY(sl_model_scorer_run(session->scorer, session->rows, recall_scores, count, scores));
    else
        memmove(scores, recall_scores, count * sizeof *scores);
    for (size_t i = 0; i < count && deleted; i++)
        if (session->rows[i].deleted) scores[i] = NAN;
    return SL_OK;
}

static sl_status score_ids(serving *s, const uint64_t *ids, const float *recall_scores, size_t count, float *scores) {
    size_t most = s->session->candidates;
    SL_TRY(put_user(s));
    for (size_t at = 0; at < count; at += most) {
        size_t slice = count - at < most ? count - at : most;
        SL_TRY(score_slice(s, ids + at, recall_scores ? recall_scores + at : NULL, slice, scores + at));
    }
    s->stats.results = s->stats.candidates = count;
    return SL_OK;
}

sl_status sl_session_score(sl_session *session, const sl_request *request, const uint64_t *ids,
                           const float *recall_scores, size_t count, float *scores, sl_recommend_stats *stats) {
    if (!session || (count && (!ids || !scores))) return sl_fail(SL_EINVAL, "session, ids or scores is NULL");
    SL_TRY(sl_request_check(request));
    serving s = begin_serving(session, request);
    return end_serving(&s, score_ids(&s, ids, recall_scores, count, scores), stats);
}
