#include "hnsw/construct/leaves_make.h"

#include "base/failure.h"
#include "base/random.h"
#include "distance/codec/encode.h"
#include "distance/double.h"
#include "hnsw/construct/centre_groups.h"
#include "hnsw/construct/leaf_notes.h"
#include "hnsw/construct/sort_by_centre.h"

#include <string.h>

/* Training points per centre. */
enum { TRAIN_POINTS = 8 };
/* Leaves that are too large are divided again, at most this many times. */
enum { MAX_DEPTH = 3 };

/* One partitioning under way. */
typedef struct partitioning {
    const sl_points *points;
    sl_leaves *leaves;
    size_t fan_out, count; /* leaves that a point goes to; centres */
    uint64_t seed;
    sl_codec codec; /* of the centres */
    uint8_t *centres;
    uint32_t *nearest;      /* the nearest centres of each point, best first: fan_out entries, unused ones SL_NONE */
    const sl_points *layer; /* all points of the layer */
    const uint32_t *which;  /* layer numbers of the points to divide; NULL: all */
    unsigned depth;
    uint32_t *sampled; /* training points; later the points of one leaf */
    uint32_t *starts;  /* centre -> its first place in `sorted`; one more entry for the end */
    uint32_t *sorted;
    size_t sample; /* training points */
    sl_centre_groups groups;
} partitioning;

/* ---------------------------------------------------------------------------------------------------------------
 * Centres
 * ------------------------------------------------------------------------------------------------------------- */

/* Draws one point from the i-th of `of` equal stretches. */
static uint32_t draw_point(const partitioning *p, uint64_t purpose, size_t i, size_t of) {
    uint64_t n = p->points->n, first = i * n / of, end = (i + 1) * n / of;
    return (uint32_t)(first + sl_random_at(p->seed ^ purpose << 56, i) % (end - first));
}

/* Writes the best `fan_out` centres of each query, best first. The first found wins a tie. */
static void keep_nearest_centres(const sl_top_columns *top, size_t count, size_t fan_out, uint32_t *nearest) {
    for (size_t i = 0; i < count; i++, nearest += fan_out) {
        const sl_scan *scan = &top->scans[i];
        float scores[SL_MAX_FAN_OUT];
        size_t kept = 0;
        for (size_t j = 0; j < scan->count; j++) {
            size_t at = kept < fan_out ? kept : fan_out - 1;
            if (kept == fan_out && !(scan->scores[j] > scores[at])) continue;
            for (; at > 0 && scan->scores[j] > scores[at - 1]; at--) {
                scores[at] = scores[at - 1];
                nearest[at] = nearest[at - 1];
            }
            scores[at] = scan->scores[j];
            nearest[at] = scan->ids[j];
            kept += kept < fan_out;
        }
        if (!kept) nearest[kept++] = 0; /* all scores are NaN, as for a damaged row */
        for (; kept < fan_out; kept++)
            nearest[kept] = SL_NONE;
    }
}

/* The ranks that share a partitioning. Each of them divides large leaves again, since these have few points. */
static const sl_ranks *share_of(const partitioning *p) {
    return p->depth ? NULL : p->points->ranks;
}

/* Assigns points to their nearest centres, on one thread of several. */
static sl_status assign_some_points(const partitioning *p, const uint32_t *which, sl_range mine, size_t fan_out,
                                    uint32_t *nearest) {
    const sl_points *points = p->points;
    const sl_codec *rows = points->codec;
    sl_top_centres centres;
    sl_status status = sl_top_centres_init(&centres, &p->groups, fan_out);
#pragma omp for schedule(dynamic, 8)
    for (size_t first = mine.first; first < mine.end; first += SL_TOP_QUERIES) {
        size_t count = mine.end - first < SL_TOP_QUERIES ? mine.end - first : SL_TOP_QUERIES;
        if (status != SL_OK || sl_progress_cancelled(points->progress)) continue;
        for (size_t i = 0; i < count; i++) {
            const size_t row = sl_point_row(points, which ? which[first + i] : first + i);
            sl_query_code query;
            sl_row_as_query(rows, rows->rows.base + row * rows->rows.pitch, centres.best.buffer, &query);
            sl_top_centres_query(&centres, i, &query);
        }
        sl_top_centres_scan(&centres, &p->groups, count);
        keep_nearest_centres(&centres.best, count, fan_out, nearest + first * fan_out);
        sl_progress_step(points->progress, 0);
    }
    sl_top_centres_free(&centres);
    return status;
}

/* Assigns points to their nearest centres. `which`: numbers of points; NULL: all. Errors: SL_ENOMEM. */
static sl_status assign_points(partitioning *p, const uint32_t *which, size_t n, size_t fan_out, uint32_t *nearest) {
    const sl_points *points = p->points;
    const sl_range mine = sl_share_mine(share_of(p), n, SL_TOP_QUERIES);
    sl_failure failed;
    sl_failure_init(&failed);
    SL_TRY(sl_ranks_agree(share_of(p), sl_centre_groups_arrange(&p->groups)));
#pragma omp parallel num_threads((int)points->threads) if (points->threads > 1)
    sl_failure_keep(&failed, 0, assign_some_points(p, which, mine, fan_out, nearest));
    return sl_share_gather(share_of(p), sl_failure_pass(&failed), nearest, fan_out * sizeof *nearest, n,
                           SL_TOP_QUERIES);
}

/* Sorts the places of `nearest` by centre, into p->starts and p->sorted. Place number / fan_out is the number of the
 * point. */
static void sort_by_centre(partitioning *p, const uint32_t *nearest, size_t places) {
    p->starts[0] = 0;
    sl_sort_by_centre(nearest, places, p->count, p->starts + 1, p->sorted);
}

/* Gives a direction the length that all centres have under IP. Products with centres then compare by angle. */
static void set_length(float *floats, size_t dim, float length) {
    const double own = sqrt(sl_dot_double(floats, floats, dim));
    for (size_t j = 0; j < dim && own > 0; j++)
        floats[j] = (float)(floats[j] * (length / own));
}

/* Encodes a centre. Integer types round each element. Under COSINE the vector is first stretched, since its length
 * doesn't count. floats: dim elements, and as many of scratch. */
static void encode_centre(const partitioning *p, size_t c, float *floats) {
    const sl_codec *codec = &p->codec;
    const size_t dim = codec->dim;
    const float least = codec->dtype == SL_U8 ? 0 : -127, most = codec->dtype == SL_U8 ? 255 : 127;
    uint8_t *row = p->centres + c * codec->rows.pitch, *native = (void *)(floats + dim);
    if (codec->metric == SL_METRIC_IP) set_length(floats, dim, codec->dtype == SL_F32 ? 1 : most);
    if (codec->dtype == SL_F32) {
        sl_encode_row(codec, floats, SL_F32, row, floats + dim, NULL);
        return;
    }
    float largest = 0, unit = 1;
    for (size_t j = 0; j < dim; j++)
        largest = fmaxf(largest, fabsf(floats[j]));
    if (codec->metric == SL_METRIC_COSINE && largest > 0) unit = most / largest;
    for (size_t j = 0; j < dim; j++)
        native[j] = (uint8_t)lrintf(fminf(fmaxf(floats[j] * unit, least), most));
    sl_encode_row(codec, native, codec->dtype, row, floats, NULL);
}

static void decode_point(const partitioning *p, size_t point, float *out) {
    const sl_codec *codec = p->points->codec;
    sl_decode_row(codec, codec->rows.base + (size_t)sl_point_row(p->points, point) * codec->rows.pitch, out);
}

/* Puts each centre on a point. */
static sl_status begin_centres(partitioning *p) {
    const size_t dim = p->codec.dim;
    sl_status status = SL_OK;
    float *floats = sl_mem_array(&p->leaves->allocator, 2 * dim, sizeof *floats, &status);
    for (size_t c = 0; c < p->count && status == SL_OK; c++) {
        decode_point(p, draw_point(p, 0, c, p->count), floats);
        encode_centre(p, c, floats);
    }
    SL_FREE_ARRAY(&p->leaves->allocator, floats, 2 * dim);
    return status;
}

/* Moves each centre to the mean of the training points nearest to it. A centre without training points stays. */
static sl_status move_centres(partitioning *p) {
    const size_t dim = p->codec.dim;
    sl_status status = SL_OK;
    float *floats = sl_mem_array(&p->leaves->allocator, 2 * dim, sizeof *floats, &status);
    for (size_t c = 0; c < p->count && status == SL_OK; c++) {
        size_t size = p->starts[c + 1] - p->starts[c];
        if (!size) continue;
        memset(floats, 0, dim * sizeof *floats);
        for (size_t i = p->starts[c]; i < p->starts[c + 1]; i++) {
            decode_point(p, p->sampled[p->sorted[i]], floats + dim);
            double length = p->codec.metric == SL_METRIC_L2 ? 1 : sqrt(sl_dot_double(floats + dim, floats + dim, dim));
            float unit = length > 0 ? (float)(1 / length) : 0;
            for (size_t j = 0; j < dim; j++)
                floats[j] += floats[dim + j] * unit;
        }
        for (size_t j = 0; j < dim; j++)
            floats[j] /= (float)size;
        encode_centre(p, c, floats);
    }
    SL_FREE_ARRAY(&p->leaves->allocator, floats, 2 * dim);
    return status;
}

/* Makes centres: random points, moved by one iteration of k-means (Lloyd 1982). */
static sl_status make_centres(partitioning *p) {
    SL_TRY(sl_ranks_agree(share_of(p), begin_centres(p)));
    for (size_t i = 0; i < p->sample; i++)
        p->sampled[i] = draw_point(p, 1, i, p->sample);
    SL_TRY(assign_points(p, p->sampled, p->sample, 1, p->nearest));
    sort_by_centre(p, p->nearest, p->sample);
    return sl_ranks_agree(share_of(p), move_centres(p));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Leaves
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status partition_points(partitioning *p);

/* Divides the points of a large leaf by centres of their own. */
static sl_status divide_again(const partitioning *whole, const uint32_t *which, size_t size) {
    const sl_points *points = whole->layer;
    sl_status status = SL_OK;
    uint32_t *rows = sl_mem_array(&whole->leaves->allocator, size, sizeof *rows, &status);
    for (size_t i = 0; i < size && rows; i++)
        rows[i] = sl_point_row(points, which[i]);
    sl_points some = *points;
    some.n = size;
    some.rows = rows;
    some.steps = 0;
    some.work = NULL;
    partitioning p = {.points = &some,
                      .layer = points,
                      .leaves = whole->leaves,
                      .which = which,
                      .depth = whole->depth + 1,
                      .fan_out = 1,
                      .count = size / SL_LEAF_POINTS + 2,
                      .seed = sl_random_at(whole->seed, size)};
    if (status == SL_OK) status = partition_points(&p);
    SL_FREE_ARRAY(&whole->leaves->allocator, rows, size);
    return status;
}

/* Makes one leaf of some points, or several if there are too many. Centres can't divide duplicates, so a leaf of these
 * is cut. */
static sl_status make_leaf(const partitioning *p, const uint32_t *which, size_t size) {
    if (p->leaves->targets) return sl_leaves_append(p->leaves, which, size);
    if (size > SL_MAX_LEAF_POINTS && p->depth < MAX_DEPTH) return divide_again(p, which, size);
    for (size_t first = 0; first < size; first += SL_MAX_LEAF_POINTS)
        SL_TRY(sl_leaves_append(p->leaves, which + first,
                                size - first < SL_MAX_LEAF_POINTS ? size - first : SL_MAX_LEAF_POINTS));
    return SL_OK;
}

/* Makes the leaf of each centre, from the points assigned to it. */
static sl_status make_leaves(partitioning *p) {
    for (size_t c = 0; c < p->count; c++) {
        const size_t first = p->starts[c], size = p->starts[c + 1] - first;
        for (size_t i = first; i < first + size; i++) {
            uint32_t point = p->sorted[i] / (uint32_t)p->fan_out;
            p->sampled[i - first] = p->which ? p->which[point] : point;
        }
        SL_TRY(make_leaf(p, p->sampled, size));
    }
    return SL_OK;
}

/* Finds the targets of the leaves of `count` centres: the points that score best for each centre. */
static void find_targets(const partitioning *p, sl_top_columns *top, const sl_columns *all, size_t first,
                         size_t count) {
    uint32_t centres[SL_TOP_QUERIES], *targets = p->leaves->targets + (p->leaves->count + first) * SL_LEAF_TARGETS;
    for (size_t i = 0; i < count; i++)
        centres[i] = (uint32_t)(first + i);
    sl_top_columns_of_rows(top, all, centres, count, NULL);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < SL_LEAF_TARGETS; j++)
            *targets++ = j < top->scans[i].count ? top->scans[i].ids[j] : SL_NONE;
}

/* Finds the targets of all leaves of the partitioning, on one thread of several. */
static sl_status find_some_targets(const partitioning *p, const sl_columns *all) {
    sl_progress *progress = p->points->progress;
    sl_top_columns top;
    const sl_range mine = sl_share_mine(share_of(p), p->count, SL_TOP_QUERIES);
    sl_status status = sl_top_columns_init(&top, p->points->graph, &p->codec, SL_LEAF_POINTS);
#pragma omp for schedule(dynamic, 1)
    for (size_t first = mine.first; first < mine.end; first += SL_TOP_QUERIES) {
        if (status != SL_OK || sl_progress_cancelled(progress)) continue;
        find_targets(p, &top, all, first, mine.end - first < SL_TOP_QUERIES ? mine.end - first : SL_TOP_QUERIES);
        sl_progress_step(progress, 0);
    }
    sl_top_columns_free(&top);
    return status;
}

/* Finds the targets of all leaves of the partitioning. */
static sl_status find_all_targets(const partitioning *p) {
    const sl_points *points = p->points;
    sl_columns all;
    sl_failure failed;
    sl_failure_init(&failed);
    SL_TRY(sl_ranks_agree(share_of(p), sl_columns_init(&all, points->graph, points->codec, points->n)));
    sl_columns_pack(&all, points->rows, points->n);
#pragma omp parallel num_threads((int)points->threads) if (points->threads > 1)
    sl_failure_keep(&failed, 0, find_some_targets(p, &all));
    sl_columns_free(&all);
    return sl_share_gather(share_of(p), sl_failure_pass(&failed),
                           p->leaves->targets + p->leaves->count * SL_LEAF_TARGETS,
                           SL_LEAF_TARGETS * sizeof *p->leaves->targets, p->count, SL_TOP_QUERIES);
}

static sl_status make_partitioning(partitioning *p) {
    const size_t n = p->points->n;
    SL_TRY(make_centres(p));
    SL_TRY(assign_points(p, NULL, n, p->fan_out, p->nearest));
    if (p->leaves->targets) SL_TRY(find_all_targets(p));
    if (sl_progress_cancelled(p->points->progress)) return sl_progress_end(p->points->progress);
    sort_by_centre(p, p->nearest, n * p->fan_out);
    return sl_ranks_agree(share_of(p), make_leaves(p));
}

static sl_status partitioning_alloc(partitioning *p) {
    const sl_allocator *allocator = &p->leaves->allocator;
    const size_t n = p->points->n;
    sl_status status = SL_OK;
    p->codec = *p->points->codec;
    p->centres = sl_mem_array(allocator, sl_codec_rows_size(&p->codec, p->count), 1, &status);
    p->codec.rows.base = p->centres;
    p->nearest = sl_mem_array(allocator, n * p->fan_out, sizeof *p->nearest, &status);
    p->sorted = sl_mem_array(allocator, n * p->fan_out, sizeof *p->sorted, &status);
    p->sampled = sl_mem_array(allocator, n, sizeof *p->sampled, &status);
    p->starts = sl_mem_array(allocator, p->count + 1, sizeof *p->starts, &status);
    return status == SL_OK
               ? sl_centre_groups_init(&p->groups, p->points->graph, &p->codec, p->count, p->points->threads)
               : status;
}

static void partitioning_free(partitioning *p) {
    const sl_allocator *allocator = &p->leaves->allocator;
    const size_t n = p->points->n;
    sl_mem_free(allocator, p->centres, sl_codec_rows_size(&p->codec, p->count));
    SL_FREE_ARRAY(allocator, p->nearest, n * p->fan_out);
    SL_FREE_ARRAY(allocator, p->sorted, n * p->fan_out);
    SL_FREE_ARRAY(allocator, p->sampled, n);
    SL_FREE_ARRAY(allocator, p->starts, p->count + 1);
    sl_centre_groups_free(&p->groups);
}

/* Bytes of partitioning_alloc and of the threads' scratch. Threads first assign points, then find targets. */
static size_t partitioning_bytes(const sl_points *points, size_t fan_out, size_t count) {
    const sl_codec *codec = points->codec;
    const size_t n = points->n, assigning = points->threads * sl_top_centres_bytes(codec, count, fan_out);
    const size_t targeting = sl_columns_bytes(codec, n) + points->threads * sl_top_columns_bytes(codec, SL_LEAF_POINTS);
    return sl_codec_rows_size(codec, count) + (2 * fan_out + 1) * n * sizeof(uint32_t) +
           (count + 1) * sizeof(uint32_t) + sl_centre_groups_bytes(codec, count, points->threads) +
           (codec->metric == SL_METRIC_IP ? sl_larger(assigning, targeting) : assigning);
}

static size_t sample_size(size_t n, size_t centres) {
    return TRAIN_POINTS * centres < n ? TRAIN_POINTS * centres : n;
}

static sl_status partition_points(partitioning *p) {
    p->sample = sample_size(p->points->n, p->count);
    sl_status status = sl_ranks_agree(share_of(p), partitioning_alloc(p));
    if (status == SL_OK) status = make_partitioning(p);
    partitioning_free(p);
    return status;
}

/* Makes a single leaf of all points. */
static sl_status make_one_leaf(sl_leaves *leaves) {
    for (size_t i = 0; i < leaves->n; i++)
        leaves->points[i] = (uint32_t)i;
    return sl_leaves_append(leaves, leaves->points, leaves->n);
}

static size_t centre_count(size_t n, size_t fan_out) {
    return n * fan_out / SL_LEAF_POINTS + 1;
}

/* Nearly every leaf belongs to one centre. `starts` grows by half. */
sl_bytes sl_leaves_bytes(const sl_points *points, size_t fan_out) {
    const size_t n = points->n, centres = centre_count(n, fan_out), leaves = SL_PARTITIONINGS * centres + 2;
    const size_t targets =
        n > SL_MAX_LEAF_POINTS && points->codec->metric == SL_METRIC_IP ? sl_leaves_targets_room(centres) : 0;
    const size_t kept =
        (leaves + leaves / 2) * sizeof(uint64_t) + (SL_PARTITIONINGS * fan_out * n + targets) * sizeof(uint32_t);
    return (sl_bytes){kept, kept + partitioning_bytes(points, fan_out, centres)};
}

double sl_leaves_comparisons(size_t n, size_t fan_out, sl_metric metric) {
    const size_t centres = centre_count(n, fan_out), sample = sample_size(n, centres);
    const double learnt = sl_centre_groups_comparisons(centres, (double)sample);
    const double assigned = sl_centre_groups_comparisons(centres, (double)n);
    const double targets = metric == SL_METRIC_IP ? (double)centres * (double)n : 0;
    return n > SL_MAX_LEAF_POINTS ? SL_PARTITIONINGS * (learnt + assigned + targets) : 0;
}

double sl_leaves_pairs(size_t n, size_t fan_out) {
    return (double)n * (double)(SL_PARTITIONINGS * fan_out * SL_LEAF_POINTS);
}

/* Gives every rank the leaves that rank 0 has read. */
static sl_status broadcast_leaves(const sl_ranks *ranks, sl_leaves *leaves, uint64_t count, uint64_t places) {
    sl_status status = SL_OK;
    leaves->starts =
        sl_mem_grow(&leaves->allocator, leaves->starts, &leaves->most, count + 1, sizeof *leaves->starts, &status);
    leaves->count = count;
    leaves->places = places;
    SL_TRY(sl_share_broadcast(ranks, status, leaves->starts, (count + 1) * sizeof *leaves->starts));
    SL_TRY(sl_share_broadcast(ranks, SL_OK, leaves->points, places * sizeof *leaves->points));
    return sl_share_broadcast(ranks, SL_OK, leaves->targets, leaves->targets_room * sizeof *leaves->targets);
}

/* Reads the leaves from the notes, in a shared build from those of rank 0. Sets *is_read to 0 if there are none. */
static sl_status read_leaves(const sl_points *points, sl_leaves *leaves, int *is_read) {
    const sl_ranks *ranks = points->ranks;
    uint64_t counts[3] = {0};
    if (!ranks || ranks->rank == 0) counts[0] = (uint64_t)sl_leaf_notes_read(points->work, leaves);
    counts[1] = leaves->count;
    counts[2] = leaves->places;
    SL_TRY(sl_share_broadcast(ranks, SL_OK, counts, sizeof counts));
    *is_read = counts[0] != 0;
    return ranks && *is_read ? broadcast_leaves(ranks, leaves, counts[1], counts[2]) : SL_OK;
}

sl_status sl_leaves_make(sl_leaves *leaves, const sl_points *points, size_t fan_out) {
    const size_t centres = centre_count(points->n, fan_out);
    *leaves = (sl_leaves){.allocator = points->graph->allocator, .n = points->n};
    const int is_one = points->n <= SL_MAX_LEAF_POINTS;
    int is_read = 0;
    sl_status status = sl_leaves_alloc(leaves, fan_out, !is_one && points->codec->metric == SL_METRIC_IP ? centres : 0);
    SL_TRY(sl_ranks_agree(points->ranks, status));
    if (is_one) return make_one_leaf(leaves);
    if (points->work) SL_TRY(read_leaves(points, leaves, &is_read));
    if (is_read) return SL_OK;
    for (uint64_t turn = 0; turn < SL_PARTITIONINGS; turn++) {
        partitioning p = {.points = points,
                          .layer = points,
                          .leaves = leaves,
                          .fan_out = fan_out,
                          .count = centres,
                          .seed = points->graph->seed ^ (0x6c65617665u + turn)};
        SL_TRY(partition_points(&p));
    }
    if (points->work && (!points->ranks || points->ranks->rank == 0))
        status = sl_leaf_notes_write(points->work, leaves);
    return sl_ranks_agree(points->ranks, status);
}
