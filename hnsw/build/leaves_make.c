#include "hnsw/build/leaves_make.h"

#include "base/failure.h"
#include "base/random.h"
#include "distance/codec/encode.h"
#include "distance/double.h"
#include "hnsw/build/centre_groups.h"
#include "hnsw/build/leaf_notes.h"
#include "hnsw/build/sort_by_centre.h"

#include <string.h>

/* Members that the centres are learnt from, a centre. */
enum { SAMPLE = 8 };
/* Leaves that are too large are parted again, up to so many times. */
enum { DEEPEST = 3 };

/* One partitioning under way. */
typedef struct parting {
    const sl_members *members;
    sl_leaves *leaves;
    size_t folds, count; /* centres */
    uint64_t seed;
    sl_codec codec; /* of the centres */
    uint8_t *centres;
    uint32_t *to; /* folds entries a member: the centres nearest to it, the nearest first; SL_NONE behind them */
    const sl_members *layer; /* all members */
    const uint32_t *which;   /* numbers in the layer of the members that are parted; NULL: all */
    unsigned depth;
    uint32_t *sampled; /* members, SAMPLE a centre at most */
    uint32_t *starts;  /* centre -> first place in the sorted members, and one more */
    uint32_t *sorted;
    size_t sample;
    sl_centre_groups groups;
} parting;

/* ---------------------------------------------------------------------------------------------------------------
 * Centres
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns one of each stretch of members of equal length. */
static uint32_t pick(const parting *p, uint64_t purpose, size_t i, size_t of) {
    uint64_t n = p->members->n, first = i * n / of, end = (i + 1) * n / of;
    return (uint32_t)(first + sl_random_at(p->seed ^ purpose << 56, i) % (end - first));
}

/* Takes the nearest centres of some rows, `folds` entries a row. */
static void take_centres(const sl_finds *finds, size_t count, size_t folds, uint32_t *to) {
    for (size_t i = 0; i < count; i++, to += folds) {
        const sl_scan *scan = &finds->scans[i];
        float scores[SL_LEAF_FOLDS];
        size_t kept = 0;
        for (size_t j = 0; j < scan->count; j++) {
            size_t at = kept < folds ? kept : folds - 1;
            if (kept == folds && !(scan->scores[j] > scores[at])) continue;
            for (; at > 0 && scan->scores[j] > scores[at - 1]; at--) {
                scores[at] = scores[at - 1];
                to[at] = to[at - 1];
            }
            scores[at] = scan->scores[j];
            to[at] = scan->ids[j];
            kept += kept < folds;
        }
        if (!kept) to[kept++] = 0; /* scores that are no numbers, as a damaged row has */
        for (; kept < folds; kept++)
            to[kept] = SL_NONE;
    }
}

/* Assigns members to the centres of groups, on one thread of several. */
static sl_status assign_rows(const parting *p, const uint32_t *which, size_t n, size_t folds, uint32_t *to) {
    const sl_members *members = p->members;
    const sl_codec *rows = members->codec;
    sl_centre_finds finds;
    sl_status status = sl_centre_finds_init(&finds, &p->groups, folds);
#pragma omp for schedule(dynamic, 8)
    for (size_t first = 0; first < n; first += SL_PRODUCT_ROWS) {
        size_t count = n - first < SL_PRODUCT_ROWS ? n - first : SL_PRODUCT_ROWS;
        if (status != SL_OK || sl_progress_cancelled(members->progress)) continue;
        for (size_t i = 0; i < count; i++) {
            const size_t row = sl_member_row(members, which ? which[first + i] : first + i);
            sl_query_code query;
            sl_row_as_query(rows, rows->rows.base + row * rows->rows.pitch, finds.finds.buffer, &query);
            sl_centre_finds_ask(&finds, i, &query);
        }
        sl_centre_finds_run(&finds, &p->groups, count);
        take_centres(&finds.finds, count, folds, to + first * folds);
        sl_progress_step(members->progress, 0);
    }
    sl_centre_finds_free(&finds);
    return status;
}

/* Assigns members to centres. `which`: numbers of members; NULL: all. Errors: SL_ENOMEM. */
static sl_status assign(parting *p, const uint32_t *which, size_t n, size_t folds, uint32_t *to) {
    const sl_members *members = p->members;
    sl_failure failed;
    sl_failure_init(&failed);
    SL_TRY(sl_centre_groups_arrange(&p->groups));
#pragma omp parallel num_threads((int)members->threads) if (members->threads > 1)
    sl_failure_keep(&failed, 0, assign_rows(p, which, n, folds, to));
    return sl_failure_pass(&failed);
}

/* Sorts places of `to` by centre: p->starts and p->sorted. A place / folds is what was assigned. */
static void sort_by_centre(parting *p, const uint32_t *to, size_t places) {
    p->starts[0] = 0;
    sl_sort_members(to, places, p->count, p->starts + 1, p->sorted);
}

/* Gives a direction the length that centres have under IP, so that products with them go by the angle. */
static void set_length(float *floats, size_t dim, float length) {
    const double own = sqrt(sl_dot_double(floats, floats, dim));
    for (size_t j = 0; j < dim && own > 0; j++)
        floats[j] = (float)(floats[j] * (length / own));
}

/* Encodes a centre. Integers take the nearest ones; under COSINE, where a length does not count, of a long vector.
 * floats: dim elements, and as many of scratch. */
static void put_centre(const parting *p, size_t c, float *floats) {
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

static void take_member(const parting *p, size_t member, float *out) {
    const sl_codec *codec = p->members->codec;
    sl_decode_row(codec, codec->rows.base + (size_t)sl_member_row(p->members, member) * codec->rows.pitch, out);
}

/* Puts each centre on one of the members. */
static sl_status begin_centres(parting *p) {
    const size_t dim = p->codec.dim;
    sl_status status = SL_OK;
    float *floats = sl_mem_array(&p->leaves->allocator, 2 * dim, sizeof *floats, &status);
    for (size_t c = 0; c < p->count && status == SL_OK; c++) {
        take_member(p, pick(p, 0, c, p->count), floats);
        put_centre(p, c, floats);
    }
    sl_mem_free(&p->leaves->allocator, floats, 2 * dim * sizeof *floats);
    return status;
}

/* Moves each centre to the mean of the sampled members nearest to it. A centre without any stays. */
static sl_status move_centres(parting *p) {
    const size_t dim = p->codec.dim;
    sl_status status = SL_OK;
    float *floats = sl_mem_array(&p->leaves->allocator, 2 * dim, sizeof *floats, &status);
    for (size_t c = 0; c < p->count && status == SL_OK; c++) {
        size_t size = p->starts[c + 1] - p->starts[c];
        if (!size) continue;
        memset(floats, 0, dim * sizeof *floats);
        for (size_t i = p->starts[c]; i < p->starts[c + 1]; i++) {
            take_member(p, p->sampled[p->sorted[i]], floats + dim);
            double length = p->codec.metric == SL_METRIC_L2 ? 1 : sqrt(sl_dot_double(floats + dim, floats + dim, dim));
            float unit = length > 0 ? (float)(1 / length) : 0;
            for (size_t j = 0; j < dim; j++)
                floats[j] += floats[dim + j] * unit;
        }
        for (size_t j = 0; j < dim; j++)
            floats[j] /= (float)size;
        put_centre(p, c, floats);
    }
    sl_mem_free(&p->leaves->allocator, floats, 2 * dim * sizeof *floats);
    return status;
}

/* Makes centres of members by chance, and moves them once (Lloyd 1982). */
static sl_status make_centres(parting *p) {
    SL_TRY(begin_centres(p));
    for (size_t i = 0; i < p->sample; i++)
        p->sampled[i] = pick(p, 1, i, p->sample);
    SL_TRY(assign(p, p->sampled, p->sample, 1, p->to));
    sort_by_centre(p, p->to, p->sample);
    return move_centres(p);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Leaves
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status part_all(parting *p);

/* Parts members by centres of their own. `which`: their numbers. */
static sl_status split(const parting *whole, const uint32_t *which, size_t size) {
    const sl_members *members = whole->layer;
    sl_status status = SL_OK;
    uint32_t *rows = sl_mem_array(&whole->leaves->allocator, size, sizeof *rows, &status);
    for (size_t i = 0; i < size && rows; i++)
        rows[i] = sl_member_row(members, which[i]);
    const sl_members some = {members->graph, members->codec, size, rows, members->threads, members->progress, 0, NULL};
    parting p = {.members = &some,
                 .layer = members,
                 .leaves = whole->leaves,
                 .which = which,
                 .depth = whole->depth + 1,
                 .folds = 1,
                 .count = size / SL_LEAF_ROWS + 2,
                 .seed = sl_random_at(whole->seed, size)};
    if (status == SL_OK) status = part_all(&p);
    sl_mem_free(&whole->leaves->allocator, rows, size * sizeof *rows);
    return status;
}

/* Makes leaves of some members: one, or several where they are many. Copies cannot be parted, and are cut. */
static sl_status take(const parting *p, const uint32_t *which, size_t size) {
    if (p->leaves->asked) return sl_leaves_append(p->leaves, which, size);
    if (size > SL_LEAF_MOST && p->depth < DEEPEST) return split(p, which, size);
    for (size_t first = 0; first < size; first += SL_LEAF_MOST)
        SL_TRY(sl_leaves_append(p->leaves, which + first, size - first < SL_LEAF_MOST ? size - first : SL_LEAF_MOST));
    return SL_OK;
}

/* Makes leaves of the members nearest to each centre. */
static sl_status take_all(parting *p) {
    for (size_t c = 0; c < p->count; c++) {
        const size_t first = p->starts[c], size = p->starts[c + 1] - first;
        for (size_t i = first; i < first + size; i++) {
            uint32_t member = p->sorted[i] / (uint32_t)p->folds;
            p->sampled[i - first] = p->which ? p->which[member] : member;
        }
        SL_TRY(take(p, p->sampled, size));
    }
    return SL_OK;
}

/* Finds the members that score best for some centres, which are as many rows. */
static void find_asked(const parting *p, sl_finds *finds, const sl_columns *all, size_t first, size_t count) {
    uint32_t centres[SL_PRODUCT_ROWS], *asked = p->leaves->asked + (p->leaves->count + first) * SL_LEAF_ASKED;
    for (size_t i = 0; i < count; i++)
        centres[i] = (uint32_t)(first + i);
    sl_finds_best(finds, all, centres, count, NULL);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < SL_LEAF_ASKED; j++)
            *asked++ = j < finds->scans[i].count ? finds->scans[i].ids[j] : SL_NONE;
}

/* The same for all centres, on one thread of several. */
static sl_status find_some_asked(const parting *p, const sl_columns *all) {
    sl_progress *progress = p->members->progress;
    sl_finds finds;
    sl_status status = sl_finds_init(&finds, p->members->graph, &p->codec, SL_LEAF_ROWS);
#pragma omp for schedule(dynamic, 1)
    for (size_t first = 0; first < p->count; first += SL_PRODUCT_ROWS) {
        if (status != SL_OK || sl_progress_cancelled(progress)) continue;
        find_asked(p, &finds, all, first, p->count - first < SL_PRODUCT_ROWS ? p->count - first : SL_PRODUCT_ROWS);
        sl_progress_step(progress, 0);
    }
    sl_finds_free(&finds);
    return status;
}

/* Finds for the leaf of each centre the members that its own are compared with. */
static sl_status find_all_asked(const parting *p) {
    const sl_members *members = p->members;
    sl_columns all;
    sl_failure failed;
    sl_failure_init(&failed);
    SL_TRY(sl_columns_init(&all, members->graph, members->codec, members->n));
    sl_columns_pack(&all, members->rows, members->n);
#pragma omp parallel num_threads((int)members->threads) if (members->threads > 1)
    sl_failure_keep(&failed, 0, find_some_asked(p, &all));
    sl_columns_free(&all);
    return sl_failure_pass(&failed);
}

static sl_status part(parting *p) {
    const size_t n = p->members->n;
    SL_TRY(make_centres(p));
    SL_TRY(assign(p, NULL, n, p->folds, p->to));
    if (p->leaves->asked) SL_TRY(find_all_asked(p));
    if (sl_progress_cancelled(p->members->progress)) return sl_progress_end(p->members->progress);
    sort_by_centre(p, p->to, n * p->folds);
    return take_all(p);
}

static sl_status parting_alloc(parting *p) {
    const sl_allocator *allocator = &p->leaves->allocator;
    const size_t n = p->members->n;
    sl_status status = SL_OK;
    p->codec = *p->members->codec;
    p->centres = sl_mem_array(allocator, sl_codec_rows_size(&p->codec, p->count), 1, &status);
    p->codec.rows.base = p->centres;
    p->to = sl_mem_array(allocator, n * p->folds, sizeof *p->to, &status);
    p->sorted = sl_mem_array(allocator, n * p->folds, sizeof *p->sorted, &status);
    p->sampled = sl_mem_array(allocator, n, sizeof *p->sampled, &status);
    p->starts = sl_mem_array(allocator, p->count + 1, sizeof *p->starts, &status);
    return status == SL_OK
               ? sl_centre_groups_init(&p->groups, p->members->graph, &p->codec, p->count, p->members->threads)
               : status;
}

static void parting_free(parting *p) {
    const sl_allocator *allocator = &p->leaves->allocator;
    const size_t n = p->members->n;
    sl_mem_free(allocator, p->centres, sl_codec_rows_size(&p->codec, p->count));
    sl_mem_free(allocator, p->to, n * p->folds * sizeof *p->to);
    sl_mem_free(allocator, p->sorted, n * p->folds * sizeof *p->sorted);
    sl_mem_free(allocator, p->sampled, n * sizeof *p->sampled);
    sl_mem_free(allocator, p->starts, (p->count + 1) * sizeof *p->starts);
    sl_centre_groups_free(&p->groups);
}

/* The bytes of parting_alloc and of the threads' scratch. Threads assign, and then find the members that are asked. */
static size_t parting_bytes(const sl_members *members, size_t folds, size_t count) {
    const sl_codec *codec = members->codec;
    const size_t n = members->n, assigning = members->threads * sl_centre_finds_bytes(codec, count, folds);
    const size_t asking = sl_columns_bytes(codec, n) + members->threads * sl_finds_bytes(codec, SL_LEAF_ROWS);
    return sl_codec_rows_size(codec, count) + (2 * folds + 1) * n * sizeof(uint32_t) + (count + 1) * sizeof(uint32_t) +
           sl_centre_groups_bytes(codec, count, members->threads) +
           (codec->metric == SL_METRIC_IP ? sl_larger(assigning, asking) : assigning);
}

static size_t sample_of(size_t n, size_t centres) {
    return SAMPLE * centres < n ? SAMPLE * centres : n;
}

static sl_status part_all(parting *p) {
    p->sample = sample_of(p->members->n, p->count);
    sl_status status = parting_alloc(p);
    if (status == SL_OK) status = part(p);
    parting_free(p);
    return status;
}

/* All members are one leaf. */
static sl_status one_leaf(sl_leaves *leaves) {
    for (size_t i = 0; i < leaves->n; i++)
        leaves->rows[i] = (uint32_t)i;
    return sl_leaves_append(leaves, leaves->rows, leaves->n);
}

static size_t centres_of(size_t n, size_t folds) {
    return n * folds / SL_LEAF_ROWS + 1;
}

/* Most leaves are those of one centre. Arrays grow by half. */
sl_bytes sl_leaves_bytes(const sl_members *members, size_t folds) {
    const size_t n = members->n, centres = centres_of(n, folds), leaves = SL_PARTITIONINGS * centres + 2;
    const size_t asked = n > SL_LEAF_MOST && members->codec->metric == SL_METRIC_IP ? sl_leaves_asked_room(centres) : 0;
    const size_t kept =
        (leaves + leaves / 2) * sizeof(uint64_t) + (SL_PARTITIONINGS * folds * n + asked) * sizeof(uint32_t);
    return (sl_bytes){kept, kept + parting_bytes(members, folds, centres)};
}

double sl_leaves_compared(size_t n, size_t folds, sl_metric metric) {
    const size_t centres = centres_of(n, folds), sample = sample_of(n, centres);
    const double learnt = sl_centre_groups_compared(centres, (double)sample);
    const double assigned = sl_centre_groups_compared(centres, (double)n);
    const double asked = metric == SL_METRIC_IP ? (double)centres * (double)n : 0;
    return n > SL_LEAF_MOST ? SL_PARTITIONINGS * (learnt + assigned + asked) : 0;
}

double sl_leaves_pairs(size_t n, size_t folds) {
    return (double)n * (double)(SL_PARTITIONINGS * folds * SL_LEAF_ROWS);
}

sl_status sl_leaves_make(sl_leaves *leaves, const sl_members *members, size_t folds) {
    const size_t centres = centres_of(members->n, folds);
    *leaves = (sl_leaves){.allocator = members->graph->allocator, .n = members->n};
    const int is_one = members->n <= SL_LEAF_MOST;
    SL_TRY(sl_leaves_alloc(leaves, folds, !is_one && members->codec->metric == SL_METRIC_IP ? centres : 0));
    if (is_one) return one_leaf(leaves);
    if (members->work && sl_leaf_notes_take(members->work, leaves)) return SL_OK;
    for (uint64_t turn = 0; turn < SL_PARTITIONINGS; turn++) {
        parting p = {.members = members,
                     .layer = members,
                     .leaves = leaves,
                     .folds = folds,
                     .count = centres,
                     .seed = members->graph->seed ^ (0x6c65617665u + turn)};
        SL_TRY(part_all(&p));
    }
    return members->work ? sl_leaf_notes_put(members->work, leaves) : SL_OK;
}
