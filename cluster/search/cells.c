#include "cluster/search/cells.h"

#include "distance/codec/encode.h"
#include "distance/double.h"
#include "distance/kernels.h"
#include "hnsw/search/score_block.h"

#include <math.h>
#include <stdlib.h>

/* Near is a matter of the angle, unless under L2. */
static sl_metric geometry_of(sl_metric metric) {
    return metric == SL_METRIC_L2 ? SL_METRIC_L2 : SL_METRIC_COSINE;
}

static int is_angular(const sl_cells *cells) {
    return cells->codec.metric == SL_METRIC_COSINE;
}

static sl_status alloc_rows(const sl_allocator *allocator, sl_codec *codec, size_t dim, sl_metric metric, size_t count,
                            uint8_t **rows) {
    void *block;
    SL_TRY(sl_codec_init(codec, dim, geometry_of(metric), SL_F32, SL_CODES_F32));
    SL_TRY(sl_mem_alloc(allocator, sl_codec_rows_size(codec, count), &block));
    codec->rows.base = *rows = block;
    return SL_OK;
}

sl_status sl_cells_create(const sl_allocator *allocator, size_t dim, sl_metric metric, size_t parts, size_t groups,
                          size_t count, sl_cells *out) {
    sl_status status = SL_OK;
    *out = (sl_cells){.allocator = *allocator, .dim = dim, .parts = parts, .groups = groups, .count = count};
    out->starts = sl_mem_array(allocator, sl_cells_starts(parts, groups), sizeof *out->starts, &status);
    out->centres = sl_mem_array(allocator, count * dim, sizeof *out->centres, &status);
    out->group_centres = sl_mem_array(allocator, groups * dim, sizeof *out->group_centres, &status);
    out->floats = sl_mem_array(allocator, dim, sizeof *out->floats, &status);
    SL_TRY(status);
    SL_TRY(alloc_rows(allocator, &out->codec, dim, metric, count, &out->rows));
    return alloc_rows(allocator, &out->group_codec, dim, metric, groups, &out->group_rows);
}

void sl_cells_free(sl_cells *cells) {
    const sl_allocator *allocator = &cells->allocator;
    SL_FREE_ARRAY(allocator, cells->starts, sl_cells_starts(cells->parts, cells->groups));
    SL_FREE_ARRAY(allocator, cells->centres, cells->count * cells->dim);
    SL_FREE_ARRAY(allocator, cells->group_centres, cells->groups * cells->dim);
    SL_FREE_ARRAY(allocator, cells->floats, cells->dim);
    if (cells->rows) sl_mem_free(allocator, cells->rows, sl_codec_rows_size(&cells->codec, cells->count));
    if (cells->group_rows)
        sl_mem_free(allocator, cells->group_rows, sl_codec_rows_size(&cells->group_codec, cells->groups));
    *cells = (sl_cells){.dim = 0};
}

static int rises(const uint32_t *starts, size_t count, size_t end) {
    if (starts[0] != 0 || starts[count] != end) return 0;
    for (size_t i = 0; i < count; i++)
        if (starts[i] > starts[i + 1]) return 0;
    return 1;
}

/* Rounding changes a length of 1 by far less. */
#define LENGTH_ERROR 1e-3

static int are_centres(const sl_cells *cells, const float *centres, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const float *centre = centres + i * cells->dim;
        const double squares = sl_dot_double(centre, centre, cells->dim);
        if (!isfinite((float)squares)) return 0;
        if (is_angular(cells) && fabs(squares - 1) > LENGTH_ERROR) return 0;
    }
    return 1;
}

int sl_cells_are_sound(const sl_cells *cells) {
    return rises(cells->starts, cells->parts, cells->groups) &&
           rises(cells->starts + cells->parts + 1, cells->groups, cells->count) &&
           are_centres(cells, cells->centres, cells->count) && are_centres(cells, cells->group_centres, cells->groups);
}

static void encode_all(const sl_codec *codec, const float *centres, size_t count, uint8_t *rows, float *scratch) {
    for (size_t i = 0; i < count; i++)
        sl_encode_row(codec, centres + i * codec->dim, SL_F32, rows + i * codec->rows.pitch, scratch, NULL);
}

void sl_cells_encode(sl_cells *cells) {
    encode_all(&cells->codec, cells->centres, cells->count, cells->rows, cells->floats);
    encode_all(&cells->group_codec, cells->group_centres, cells->groups, cells->group_rows, cells->floats);
}

int sl_cells_scale_to_unit(float *row, size_t dim) {
    double squares = 0;
    for (size_t i = 0; i < dim; i++)
        squares += (double)row[i] * (double)row[i];
    for (size_t i = 0; squares > 0 && i < dim; i++)
        row[i] = (float)((double)row[i] / sqrt(squares));
    return squares > 0;
}

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void sl_sort_floats(float *values, size_t count) {
    qsort(values, count, sizeof *values, compare_floats);
}

/* ---- Routing ---- */

struct sl_router {
    const sl_cells *cells;
    const sl_kernels *kernels;
    float *floats; /* the vector as floats, and as much scratch */
    void *query_buffer;
    float *group_scores; /* groups */
    sl_scored *best;     /* best cell of each part; -INFINITY: none */
    uint32_t *ids;       /* SL_SCORE_BLOCK + SL_SCORE_PAD */
    float *scores;       /* the same */
};

sl_status sl_router_create(const sl_cells *cells, sl_router **out) {
    const sl_allocator *allocator = &cells->allocator;
    sl_status status = SL_OK;
    sl_router *router = sl_mem_array(allocator, 1, sizeof *router, &status);
    *out = NULL;
    SL_TRY(status);
    *router = (sl_router){.cells = cells, .kernels = sl_kernels_best()};
    router->floats = sl_mem_array(allocator, 2 * cells->dim, sizeof *router->floats, &status);
    router->query_buffer = sl_mem_array(allocator, 1, sl_query_size(&cells->codec), &status);
    router->group_scores = sl_mem_array(allocator, cells->groups, sizeof *router->group_scores, &status);
    router->best = sl_mem_array(allocator, cells->parts, sizeof *router->best, &status);
    router->ids = sl_mem_array(allocator, SL_SCORE_BLOCK + SL_SCORE_PAD, sizeof *router->ids, &status);
    router->scores = sl_mem_array(allocator, SL_SCORE_BLOCK + SL_SCORE_PAD, sizeof *router->scores, &status);
    if (status == SL_OK)
        *out = router;
    else
        sl_router_free(router);
    return status;
}

void sl_router_free(sl_router *router) {
    if (!router) return;
    const sl_cells *cells = router->cells;
    const sl_allocator allocator = cells->allocator;
    SL_FREE_ARRAY(&allocator, router->floats, 2 * cells->dim);
    sl_mem_free(&allocator, router->query_buffer, sl_query_size(&cells->codec));
    SL_FREE_ARRAY(&allocator, router->group_scores, cells->groups);
    SL_FREE_ARRAY(&allocator, router->best, cells->parts);
    SL_FREE_ARRAY(&allocator, router->ids, SL_SCORE_BLOCK + SL_SCORE_PAD);
    SL_FREE_ARRAY(&allocator, router->scores, SL_SCORE_BLOCK + SL_SCORE_PAD);
    SL_FREE(&allocator, router);
}

/* Scores rows from `first` to `end` - 1 into out. */
static void score_rows(sl_router *router, const sl_row_scorer *scorer, size_t first, size_t end, float *out) {
    for (size_t some; first < end; first += some, out += some) {
        some = end - first < SL_SCORE_BLOCK ? end - first : SL_SCORE_BLOCK;
        sl_score_range(scorer, first, some, router->ids, router->scores);
        memcpy(out, router->scores, some * sizeof *out);
    }
}

/* Takes the best group that is left. */
static size_t take_group(sl_router *router, float *score) {
    size_t best = 0;
    for (size_t g = 1; g < router->cells->groups; g++)
        if (router->group_scores[g] > router->group_scores[best]) best = g;
    *score = router->group_scores[best];
    router->group_scores[best] = -INFINITY;
    return best;
}

static uint32_t part_of_group(const sl_cells *cells, size_t group) {
    uint32_t part = 0;
    while (sl_part_groups(cells, part + 1) <= group)
        part++;
    return part;
}

/* Distance of the query from the plane midway between two centres. */
static float reach_between(const sl_cells *cells, sl_scored near, sl_scored far) {
    const float *a = cells->centres + (size_t)near.id * cells->dim, *b = cells->centres + (size_t)far.id * cells->dim;
    const double squares = sl_l2_double(a, b, cells->dim);
    const double gap = (double)near.score - (double)far.score;
    return squares > 0 && gap > 0 ? (float)(gap / sqrt(squares)) : 0;
}

/* Writes the nearest part, then the others that have a best cell, by rising reach. */
static size_t write_routes(const sl_router *router, sl_route *routes) {
    const sl_cells *cells = router->cells;
    size_t count = 1, nearest = 0;
    for (size_t p = 1; p < cells->parts; p++)
        if (router->best[p].score > router->best[nearest].score) nearest = p;
    routes[0] = (sl_route){.part = (uint32_t)nearest, .cell = router->best[nearest].id};
    for (size_t p = 0; p < cells->parts; p++) {
        if (p == nearest || !(router->best[p].score > -INFINITY)) continue;
        const sl_route route = {.part = (uint32_t)p,
                                .cell = router->best[p].id,
                                .reach = reach_between(cells, router->best[nearest], router->best[p])};
        size_t at = count++;
        for (; at > 1 && routes[at - 1].reach > route.reach; at--)
            routes[at] = routes[at - 1];
        routes[at] = route;
    }
    return count;
}

/* Reads a vector into router->floats. Returns whether it has a direction, or needs none. */
static int read_vector(sl_router *router, const void *vector, sl_dtype dtype) {
    const size_t dim = router->cells->dim;
    size_t i = 0;
    sl_to_float(dtype, vector, router->floats, dim);
    while (is_angular(router->cells) && i < dim && router->floats[i] == 0)
        i++;
    return i < dim;
}

int sl_router_has_direction(sl_router *router, const void *vector, sl_dtype dtype) {
    return read_vector(router, vector, dtype);
}

/* Encodes a vector as the query of the centres. A vector without a direction goes where the first axis goes. */
static void set_vector(sl_router *router, const void *vector, sl_dtype dtype, sl_query_code *code) {
    const sl_cells *cells = router->cells;
    float norm2;
    if (!read_vector(router, vector, dtype)) router->floats[0] = 1;
    sl_encode_query(&cells->codec, router->floats, SL_F32, router->query_buffer, router->floats + cells->dim, code,
                    &norm2);
}

void sl_router_nearest(sl_router *router, const void *vector, sl_dtype dtype, uint32_t nearest[2]) {
    const sl_cells *cells = router->cells;
    sl_query_code code;
    sl_scored best[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    set_vector(router, vector, dtype, &code);
    const sl_row_scorer scorer = sl_row_scorer_of(router->kernels, &cells->codec, &code, 0);
    for (size_t first = 0, some; first < cells->count; first += some) {
        some = cells->count - first < SL_SCORE_BLOCK ? cells->count - first : SL_SCORE_BLOCK;
        sl_score_range(&scorer, first, some, router->ids, router->scores);
        for (size_t i = 0; i < some; i++) {
            const sl_scored here = {router->scores[i], (uint32_t)(first + i)};
            if (here.score > best[0].score) {
                best[1] = best[0];
                best[0] = here;
            } else if (here.score > best[1].score)
                best[1] = here;
        }
    }
    nearest[0] = best[0].id;
    nearest[1] = best[1].score > -INFINITY ? best[1].id : best[0].id;
}

/* Scores all groups. */
static void score_groups(sl_router *router, const sl_query_code *code) {
    const sl_cells *cells = router->cells;
    const sl_row_scorer groups = sl_row_scorer_of(router->kernels, &cells->group_codec, code, 0);
    score_rows(router, &groups, 0, cells->groups, router->group_scores);
}

sl_status sl_router_choose_gap(sl_router *router, const void *vectors, sl_dtype dtype, size_t count, size_t mean,
                               float *gap) {
    const sl_cells *cells = router->cells;
    const size_t row = cells->dim * sl_dtype_size(dtype), others = cells->groups - 1;
    size_t directed = 0;
    sl_status status = SL_OK;
    float *gaps = sl_mem_array(&cells->allocator, others * count + 1, sizeof *gaps, &status);
    SL_TRY(status);
    for (size_t v = 0; v < count; v++) {
        const uint8_t *vector = (const uint8_t *)vectors + v * row;
        float *mine = gaps + directed * others, nearest, score;
        sl_query_code code;
        if (!sl_router_has_direction(router, vector, dtype)) continue;
        set_vector(router, vector, dtype, &code);
        score_groups(router, &code);
        (void)take_group(router, &nearest);
        for (size_t i = 0; i < others; i++) {
            (void)take_group(router, &score);
            mine[i] = nearest - score;
        }
        directed++;
    }
    sl_sort_floats(gaps, others * directed);
    *gap = mean - 1 < others && directed ? gaps[(mean - 1) * directed] : INFINITY;
    SL_FREE_ARRAY(&cells->allocator, gaps, others * count + 1);
    return SL_OK;
}

size_t sl_router_find(sl_router *router, const void *vector, sl_dtype dtype, sl_opening opening, sl_route *routes,
                      size_t *evaluations) {
    const sl_cells *cells = router->cells;
    sl_query_code code;
    set_vector(router, vector, dtype, &code);
    const sl_row_scorer scorer = sl_row_scorer_of(router->kernels, &cells->codec, &code, 0);
    size_t compared = cells->groups;
    score_groups(router, &code);
    for (size_t p = 0; p < cells->parts; p++)
        router->best[p] = (sl_scored){-INFINITY, 0};
    float nearest = -INFINITY;
    for (size_t i = 0; i < cells->groups; i++) {
        float score;
        const size_t group = take_group(router, &score);
        if (i == 0) nearest = score;
        if (i >= opening.least && !(nearest - score <= opening.gap)) break;
        const size_t first = sl_group_cells(cells, group), end = sl_group_cells(cells, group + 1);
        sl_score_best_in(&scorer, first, end, &router->best[part_of_group(cells, group)]);
        compared += end - first;
    }
    const size_t routed = write_routes(router, routes);
    /* Each further route took the distance between two centres. */
    compared += routed - 1;
    if (evaluations) *evaluations += compared;
    return routed;
}
