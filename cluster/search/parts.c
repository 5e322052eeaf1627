#include "cluster/search/parts.h"

#include "base/failure.h"
#include "base/share.h"
#include "base/thread.h"
#include "distance/codec/convert.h"
#include "hnsw/search/searcher.h"

#include <math.h>
#include <string.h>

size_t sl_rank_of_part(size_t part, size_t parts, size_t ranks) {
    return sl_share_owner(&(sl_ranks){.ranks = ranks}, part, parts, 1);
}

/* Indexes of f16 and bf16 vectors say f32. */
static int same_type(sl_dtype a, sl_dtype b) {
    return a == b || (sl_dtype_is_float(a) && sl_dtype_is_float(b));
}

/* Checks that a part's vectors are such as the routing file describes. */
static sl_status check_vectors(const sl_split *split, const char *folder, const char *path, const sl_index *index) {
    const sl_split_facts *facts = &split->facts;
    sl_index_stats stats = {.struct_size = sizeof stats};
    SL_TRY(sl_index_get_stats(index, &stats));
    if (stats.dim == facts->dim && stats.metric == (sl_metric)facts->metric &&
        same_type(stats.dtype, (sl_dtype)facts->dtype))
        return SL_OK;
    return sl_fail(SL_ECORRUPT,
                   "%s: has vectors of %zu %s elements under %s, but %s/routing.sls says %u %s elements under %s; make "
                   "the split again",
                   path, stats.dim, sl_dtype_name(stats.dtype), sl_metric_name(stats.metric), folder, facts->dim,
                   sl_dtype_name((sl_dtype)facts->dtype), sl_metric_name((sl_metric)facts->metric));
}

/* Opens a part's file, and checks that it is the one that the routing file names. */
static sl_status open_part(const sl_split *split, const char *folder, size_t part, sl_place place, sl_index **out) {
    char path[SL_SPLIT_PATH];
    sl_split_part here;
    sl_open_params params;
    const sl_split_part *stated = &split->parts[part];
    SL_TRY(sl_split_part_path(folder, part, path));
    SL_TRY(sl_split_identify(path, &here));
    if (here.header_crc != stated->header_crc || here.n != stated->n || here.file_size != stated->file_size)
        return sl_fail(SL_ECORRUPT,
                       "%s: is not the part that %s/routing.sls names: it is of another split, or was changed; make "
                       "the split again",
                       path, folder);
    sl_open_params_init(&params);
    params.place = place;
    params.tier = SL_TIER_NONE;
    SL_TRY(sl_index_open(path, &params, out));
    return check_vectors(split, folder, path, *out);
}

sl_status sl_held_parts_open(const sl_comm *comm, const sl_split *split, const char *folder, sl_place place,
                             size_t threads, sl_held_parts *out) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_status status = SL_OK;
    *out = (sl_held_parts){.allocator = allocator,
                           .split = split,
                           .first = sl_comm_share(split->facts.parts, comm->rank, comm->ranks),
                           .end = sl_comm_share(split->facts.parts, comm->rank + 1, comm->ranks),
                           .threads = sl_thread_count(threads)};
    const size_t count = out->end - out->first;
    out->indexes = sl_mem_array(&allocator, count, sizeof *out->indexes, &status);
    out->searchers = sl_mem_array(&allocator, count * out->threads, sizeof *out->searchers, &status);
    /* Centres are floats: indexes of integers take no such queries. */
    if (split->cells.count && split->facts.dtype <= SL_BF16)
        out->starts = sl_mem_array(&allocator, split->cells.count, sizeof *out->starts, &status);
    for (size_t i = 0; status == SL_OK && i < count; i++)
        if (split->parts[out->first + i].n) status = open_part(split, folder, out->first + i, place, &out->indexes[i]);
    return status;
}

static void free_searchers(sl_held_parts *parts) {
    const size_t count = (parts->end - parts->first) * parts->threads;
    for (size_t i = 0; parts->searchers && i < count; i++) {
        sl_searcher_free(parts->searchers[i]);
        parts->searchers[i] = NULL;
    }
    parts->max_ef = 0;
}

void sl_held_parts_close(sl_held_parts *parts) {
    const size_t count = parts->end - parts->first;
    free_searchers(parts);
    for (size_t i = 0; parts->indexes && i < count; i++)
        sl_index_free(parts->indexes[i]);
    SL_FREE_ARRAY(&parts->allocator, parts->indexes, count);
    SL_FREE_ARRAY(&parts->allocator, parts->searchers, count * parts->threads);
    if (parts->split) SL_FREE_ARRAY(&parts->allocator, parts->starts, parts->split->cells.count);
    *parts = (sl_held_parts){.split = NULL};
}

/* Finds where searches begin that come by way of a cell: at the nodes nearest to its centre. */
static sl_status find_starts(sl_held_parts *parts) {
    const sl_cells *cells = &parts->split->cells;
    for (size_t p = parts->first; p < parts->end; p++) {
        sl_searcher *searcher = parts->searchers[(p - parts->first) * parts->threads];
        const size_t first = sl_group_cells(cells, sl_part_groups(cells, p));
        const size_t end = sl_group_cells(cells, sl_part_groups(cells, p + 1));
        for (size_t c = first; searcher && c < end; c++)
            SL_TRY(sl_searcher_find_start(searcher, (sl_query){cells->centres + c * cells->dim, SL_F32},
                                          &parts->starts[c]));
    }
    return SL_OK;
}

sl_status sl_held_parts_prepare(sl_held_parts *parts, size_t ef) {
    const size_t count = parts->end - parts->first;
    if (ef <= parts->max_ef) return SL_OK;
    free_searchers(parts);
    for (size_t i = 0; i < count * parts->threads; i++) {
        const sl_index *index = parts->indexes[i / parts->threads];
        if (!index) continue;
        SL_TRY(sl_searcher_create(index, ef, &parts->searchers[i]));
        sl_searcher_note_beam(parts->searchers[i]);
    }
    parts->max_ef = ef;
    return parts->starts ? find_starts(parts) : SL_OK;
}

size_t sl_part_request_size(size_t row) {
    return (sizeof(sl_part_request) + row + 7) / 8 * 8;
}

size_t sl_part_answer_size(size_t k) {
    return (sizeof(sl_part_answer) + k * (sizeof(uint64_t) + sizeof(float) + sizeof(uint16_t)) + 7) / 8 * 8;
}

/* Returns where a search begins. A search with a bound finds the best place itself: it has little else to go by. */
static sl_range start_of(const sl_held_parts *parts, const sl_part_request *asked) {
    const int known = parts->starts && asked->cell < parts->split->cells.count && !(asked->bound > -INFINITY);
    return known ? parts->starts[asked->cell] : (sl_range){0, 0};
}

/* Finds the other part that holds each result. The tag word of a vector in two parts is the other part's number and 1.
 */
static sl_status find_copies(sl_index *index, const uint64_t *ids, size_t count, uint16_t *others) {
    for (size_t i = 0; i < count; i++) {
        uint64_t tag;
        SL_TRY(sl_index_get_tags(index, ids + i, 1, &tag));
        others[i] = tag ? (uint16_t)(tag - 1) : SL_NO_PART;
    }
    return SL_OK;
}

/* Answers one request with a searcher of its part; NULL: the part is empty. */
static sl_status answer_one(const sl_held_parts *parts, sl_searcher *searcher, const sl_part_requests *all,
                            const uint8_t *request, uint8_t *out) {
    sl_part_request asked;
    sl_search_params params;
    sl_search_stats stats = {0};
    sl_part_answer answer = {.beam = -INFINITY};
    uint64_t *ids = (uint64_t *)(void *)(out + sizeof answer);
    float *scores = (float *)(void *)(ids + all->k);
    uint16_t *others = (uint16_t *)(void *)(scores + all->k);
    memcpy(&asked, request, sizeof asked);
    for (size_t i = 0; i < all->k; i++) {
        ids[i] = SL_NO_ID;
        scores[i] = NAN;
        others[i] = SL_NO_PART;
    }
    if (searcher) {
        sl_search_params_init(&params);
        params.ef = all->ef;
        params.stop = all->stop;
        sl_searcher_set_start(searcher, start_of(parts, &asked));
        sl_searcher_set_bound(searcher, asked.bound, parts->split->facts.bound_after);
        SL_TRY(sl_searcher_search(searcher, request + sizeof asked, all->dtype, all->k, &params, ids, scores, &stats));
        answer.beam = sl_searcher_beam_score(searcher);
        if (parts->split->facts.kind == SL_SPLIT_NEIGHBOURHOODS && !(asked.bound > -INFINITY))
            SL_TRY(find_copies(parts->indexes[asked.part - parts->first], ids, stats.results, others));
    }
    answer.query = asked.query;
    answer.evaluations = (uint32_t)stats.evaluations;
    answer.results = (uint32_t)stats.results;
    memcpy(out, &answer, sizeof answer);
    return SL_OK;
}

sl_status sl_held_parts_answer(sl_held_parts *parts, const sl_part_requests *requests, uint8_t *answers) {
    const size_t count = requests->count, request_size = sl_part_request_size(requests->row);
    sl_failure bad;
    sl_failure_init(&bad);
#pragma omp parallel for schedule(dynamic, 4) num_threads((int)parts->threads) if (parts->threads > 1 && count > 1)
    for (size_t i = 0; i < count; i++) {
        const uint8_t *request = requests->data + i * request_size;
        sl_part_request asked;
        memcpy(&asked, request, sizeof asked);
        const size_t here = (asked.part - parts->first) * parts->threads + sl_thread_number();
        sl_status status = asked.part >= parts->first && asked.part < parts->end
                               ? answer_one(parts, parts->searchers[here], requests, request,
                                            answers + i * sl_part_answer_size(requests->k))
                               : sl_fail(SL_EINVAL, "part %u is held by another rank", asked.part);
        if (status != SL_OK) sl_failure_keep(&bad, i, status);
    }
    return bad.status == SL_OK ? SL_OK : sl_failure_pass(&bad);
}
