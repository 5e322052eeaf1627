/*
 * K-means over the rows of an index (Lloyd 1982), by the kernels and in the codes that a walk uses. From BLOCK
 * centroids on these are in groups of their own, by the same means, and a row looks at those of the groups nearest to
 * it: some of the square root of all of them, and hardly ever without the one it wants.
 */
#include "base/random.h"
#include "distance/double.h"
#include "hnsw/graph.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST = 16, /* rows a centroid is learnt from in the first turn, twice as many in the next, and so on */
    MOST = 256, /* until all are looked at, or so many */
    TURNS = 7,
    BLOCK = 256,     /* centroids scored at once; the groups that learning puts them in are no more */
    UNGROUPED = 128, /* of more centroids than these, those that queries look at are in groups */
    CHUNK = 64,      /* rows a thread takes at once */
    PROBES = 12      /* groups that are looked at */
};
_Static_assert(BLOCK *BLOCK >= SL_MAX_PARTITIONS, "all groups are scored at once");

/* Of one thread. */
typedef struct sl_learner {
    float *floats; /* a vector, and as much again for its query */
    double *sums;
    void *buffer;
} sl_learner;

typedef struct sl_kmeans sl_kmeans;
struct sl_kmeans {
    const sl_index *index;
    const sl_kmeans *grouped; /* whose centroids are the rows; NULL: they are nodes of the index */
    sl_kmeans *groups;        /* of the centroids; NULL where all are looked at */
    sl_codec codec;           /* of the centroids while they are learnt: Euclidean, but under COSINE by their angle */
    uint8_t *rows;
    int is_asked; /* the centroids are in the form that queries are compared with */
    size_t count, threads;
    size_t sampled;    /* rows that are looked at: a sample, or all */
    uint32_t *of;      /* the centroid nearest to each */
    uint32_t *members; /* their places in the sample, by centroid */
    uint32_t *ends;    /* of each centroid's in `members` */
    uint32_t *splits;  /* of each centroid's, in this turn */
    uint32_t *all;     /* centroids */
    sl_learner *learners;
    sl_progress *progress;
};

size_t sl_partition_count(size_t n) {
    size_t count = n / SL_PARTITION_ROWS;
    if (count > SL_MAX_PARTITIONS) count = SL_MAX_PARTITIONS;
    return count ? count : 1;
}

size_t sl_partition_groups(size_t partitions) {
    return partitions > UNGROUPED ? partitions / SL_GROUP_PARTITIONS : 0;
}

static void centroids_free(sl_kmeans *kmeans) {
    const sl_allocator *allocator = &kmeans->index->allocator;
    sl_mem_free(allocator, kmeans->ends, kmeans->count * sizeof *kmeans->ends);
    sl_mem_free(allocator, kmeans->splits, kmeans->count * sizeof *kmeans->splits);
    sl_mem_free(allocator, kmeans->all, kmeans->count * sizeof *kmeans->all);
    sl_mem_free(allocator, kmeans->rows, sl_codec_rows_size(&kmeans->codec, kmeans->count));
}

static sl_status centroids_alloc(sl_kmeans *kmeans) {
    const sl_allocator *allocator = &kmeans->index->allocator;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, kmeans->count * sizeof *kmeans->ends, &block));
    kmeans->ends = block;
    SL_TRY(sl_mem_alloc(allocator, kmeans->count * sizeof *kmeans->splits, &block));
    kmeans->splits = block;
    SL_TRY(sl_mem_alloc(allocator, kmeans->count * sizeof *kmeans->all, &block));
    kmeans->all = block;
    for (size_t p = 0; p < kmeans->count; p++)
        kmeans->all[p] = (uint32_t)p;
    SL_TRY(sl_mem_alloc(allocator, sl_codec_rows_size(&kmeans->codec, kmeans->count), &block));
    kmeans->rows = block;
    kmeans->codec.rows.base = block;
    return SL_OK;
}

static void learners_free(sl_kmeans *kmeans) {
    const sl_allocator *allocator = &kmeans->index->allocator;
    size_t dim = kmeans->codec.dim;
    for (size_t t = 0; kmeans->learners && t < kmeans->threads; t++) {
        sl_mem_free(allocator, kmeans->learners[t].floats, 2 * dim * sizeof(float));
        sl_mem_free(allocator, kmeans->learners[t].sums, dim * sizeof(double));
        sl_mem_free(allocator, kmeans->learners[t].buffer, sl_query_size(&kmeans->codec));
    }
    sl_mem_free(allocator, kmeans->learners, kmeans->threads * sizeof *kmeans->learners);
}

static sl_status learners_alloc(sl_kmeans *kmeans) {
    const sl_allocator *allocator = &kmeans->index->allocator;
    size_t dim = kmeans->codec.dim;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, kmeans->threads * sizeof *kmeans->learners, &block));
    kmeans->learners = block;
    for (size_t t = 0; t < kmeans->threads; t++) {
        SL_TRY(sl_mem_alloc(allocator, 2 * dim * sizeof(float), &block));
        kmeans->learners[t].floats = block;
        SL_TRY(sl_mem_alloc(allocator, dim * sizeof(double), &block));
        kmeans->learners[t].sums = block;
        SL_TRY(sl_mem_alloc(allocator, sl_query_size(&kmeans->codec), &kmeans->learners[t].buffer));
    }
    return SL_OK;
}

static void groups_free(sl_kmeans *groups) {
    if (!groups->index) return;
    const sl_allocator *allocator = &groups->index->allocator;
    sl_mem_free(allocator, groups->of, groups->sampled * sizeof *groups->of);
    sl_mem_free(allocator, groups->members, groups->sampled * sizeof *groups->members);
    centroids_free(groups);
}

/* Of a count of groups, of the centroids of `grouped`. What was allocated is for groups_free, also on failure. */
static sl_status groups_init(sl_kmeans *groups, const sl_kmeans *grouped, size_t count) {
    const sl_allocator *allocator = &grouped->index->allocator;
    void *block;
    *groups = (sl_kmeans){.index = grouped->index,
                          .grouped = grouped,
                          .count = count,
                          .threads = grouped->threads,
                          .sampled = grouped->count,
                          .learners = grouped->learners,
                          .progress = grouped->progress};
    SL_TRY(sl_partition_codec(grouped->index, &groups->codec));
    SL_TRY(sl_mem_alloc(allocator, groups->sampled * sizeof *groups->of, &block));
    groups->of = block;
    SL_TRY(sl_mem_alloc(allocator, groups->sampled * sizeof *groups->members, &block));
    groups->members = block;
    return centroids_alloc(groups);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Assignment
 * ------------------------------------------------------------------------------------------------------------- */

/* A number from 0 to below - 1. */
static size_t pick(const sl_kmeans *kmeans, uint64_t purpose, size_t i, size_t below) {
    return (size_t)(sl_random_at(kmeans->index->seed ^ 0x7061727469746eu ^ purpose << 56, i) % below);
}

/* The i-th row that is looked at: one of each stretch of nodes of equal length. */
static uint32_t node_at(const sl_kmeans *kmeans, size_t i) {
    uint64_t n = kmeans->index->n, first = i * n / kmeans->sampled, end = (i + 1) * n / kmeans->sampled;
    return (uint32_t)(first + pick(kmeans, 0, i, end - first));
}

static void scale(float *x, size_t dim, double factor) {
    for (size_t i = 0; i < dim; i++)
        x[i] = (float)((double)x[i] * factor);
}

static double length_of(const float *x, size_t dim) {
    return sqrt(sl_dot_double(x, x, dim));
}

/* The vector that is clustered: a centroid, or a node's own, but under L2 made unit: returns what divided it. Under IP
 * lengths are for the bands, so that a partition may be narrow. */
static double take_vector(const sl_kmeans *kmeans, size_t i, float *out) {
    size_t dim = kmeans->codec.dim;
    if (kmeans->grouped) {
        const sl_codec *codec = &kmeans->grouped->codec;
        sl_decode_row(codec, kmeans->grouped->rows + i * codec->rows.pitch, out);
        return 1;
    }
    sl_coded_floats(kmeans->index, node_at(kmeans, i), out);
    if (kmeans->index->codec.metric == SL_METRIC_L2) return 1;
    double length = length_of(out, dim);
    if (length > 0) scale(out, dim, 1 / length);
    return length;
}

/* The nearest centroid so far, the first of equals. */
typedef struct sl_nearest {
    float score;
    uint32_t centroid;
} sl_nearest;

static void look_at(const sl_kmeans *kmeans, const sl_query_code *query, const uint32_t *centroids, size_t count,
                    sl_nearest *nearest) {
    float scores[BLOCK];
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < BLOCK ? count - done : BLOCK;
        kmeans->index->kernels->score[SL_CODES_I8](&kmeans->codec.rows, query, centroids + done, some, 0, scores);
        for (size_t i = 0; i < some; i++)
            if (scores[i] > nearest->score) *nearest = (sl_nearest){scores[i], centroids[done + i]};
    }
}

static sl_range members_of(const sl_kmeans *kmeans, size_t p) {
    return (sl_range){p ? kmeans->ends[p - 1] : 0, kmeans->ends[p]};
}

/* At the centroids of the groups nearest to the query. */
static void look_at_groups(const sl_kmeans *kmeans, const sl_query_code *query, sl_nearest *nearest) {
    const sl_kmeans *groups = kmeans->groups;
    float scores[BLOCK];
    kmeans->index->kernels->score[SL_CODES_I8](&groups->codec.rows, query, groups->all, groups->count, 0, scores);
    for (size_t looked = 0; looked < PROBES; looked++) {
        sl_nearest next = {-INFINITY, SL_NONE};
        for (uint32_t group = 0; group < groups->count; group++) {
            sl_range range = members_of(groups, group);
            if (range.first < range.end && scores[group] > next.score) next = (sl_nearest){scores[group], group};
        }
        if (next.centroid == SL_NONE) return;
        scores[next.centroid] = -INFINITY;
        sl_range range = members_of(groups, next.centroid);
        look_at(kmeans, query, groups->members + range.first, range.end - range.first, nearest);
    }
}

static uint32_t nearest_to(const sl_kmeans *kmeans, const sl_learner *learner, size_t i) {
    sl_nearest nearest = {-INFINITY, 0};
    sl_query_code query;
    float norm2;
    take_vector(kmeans, i, learner->floats);
    sl_encode_query(&kmeans->codec, learner->floats, SL_F32, learner->buffer, learner->floats + kmeans->codec.dim,
                    &query, &norm2);
    if (kmeans->groups)
        look_at_groups(kmeans, &query, &nearest);
    else
        look_at(kmeans, &query, kmeans->all, kmeans->count, &nearest);
    return nearest.centroid;
}

static void assign(sl_kmeans *kmeans) {
#pragma omp parallel for schedule(dynamic, CHUNK) num_threads((int)kmeans->threads) if (kmeans->threads > 1)
    for (size_t i = 0; i < kmeans->sampled; i++) {
        if (sl_progress_cancelled(kmeans->progress)) continue;
        kmeans->of[i] = nearest_to(kmeans, &kmeans->learners[sl_thread_number()], i);
        sl_progress_step(kmeans->progress, 0);
    }
}

static void sort_members(sl_kmeans *kmeans) {
    uint32_t *ends = kmeans->ends, begin = 0;
    memset(ends, 0, kmeans->count * sizeof *ends);
    for (size_t i = 0; i < kmeans->sampled; i++)
        ends[kmeans->of[i]]++;
    for (size_t p = 0; p < kmeans->count; p++) {
        uint32_t size = ends[p];
        ends[p] = begin;
        begin += size;
    }
    /* Filling the places moves each partition's begin to its end. */
    for (size_t i = 0; i < kmeans->sampled; i++)
        kmeans->members[ends[kmeans->of[i]]++] = (uint32_t)i;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Centroids
 * ------------------------------------------------------------------------------------------------------------- */

/* The mean of those rows whose squared length is at least `least` into learner->floats, under COSINE made unit; returns
 * the mean of their squared lengths. */
static double mean_of(const sl_kmeans *kmeans, const sl_learner *learner, const uint32_t *members, size_t count,
                      double least) {
    size_t dim = kmeans->codec.dim, taken = 0;
    double *sums = learner->sums, norm2 = 0;
    memset(sums, 0, dim * sizeof *sums);
    for (size_t i = 0; i < count; i++) {
        take_vector(kmeans, members[i], learner->floats);
        double own = sl_dot_double(learner->floats, learner->floats, dim);
        if (own < least) continue;
        norm2 += own;
        taken++;
        for (size_t j = 0; j < dim; j++)
            sums[j] += (double)learner->floats[j];
    }
    for (size_t j = 0; j < dim; j++)
        learner->floats[j] = (float)(sums[j] / (double)taken);
    return norm2 / (double)taken;
}

/* Makes the mean as long as its members are: what is asked by inner product looks at lengths, and a mean of several
 * directions is shorter than they are. */
static void stretch_mean(const sl_kmeans *kmeans, const sl_learner *learner, double norm2) {
    size_t dim = kmeans->codec.dim;
    double own = sl_dot_double(learner->floats, learner->floats, dim);
    if (own > 0) scale(learner->floats, dim, sqrt(norm2 / own));
}

static void put_mean(const sl_kmeans *kmeans, const sl_learner *learner, size_t p, const uint32_t *members,
                     size_t count) {
    const sl_codec *codec = &kmeans->codec;
    double norm2 = mean_of(kmeans, learner, members, count, 0);
    if (codec->metric == SL_METRIC_IP) stretch_mean(kmeans, learner, norm2);
    sl_encode_row(codec, learner->floats, SL_F32, kmeans->rows + p * codec->rows.pitch, learner->floats + codec->dim,
                  NULL);
}

/* The squared length that about a quarter of some rows have, were these lengths spread normally; one has it surely. */
static double long_quarter(const sl_kmeans *kmeans, const sl_learner *learner, const uint32_t *members, size_t count) {
    double sum = 0, squares = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        take_vector(kmeans, members[i], learner->floats);
        double own = sl_dot_double(learner->floats, learner->floats, kmeans->codec.dim);
        sum += own;
        squares += own * own;
        if (own > most) most = own;
    }
    double mean = sum / (double)count, variance = squares / (double)count - mean * mean;
    double least = mean + (variance > 0 ? 0.674 * sqrt(variance) : 0);
    return least < most ? least : most;
}

/* The mean of the biases of centroids. */
static double mean_reach(const sl_kmeans *centroids, const uint32_t *members, size_t count) {
    const sl_code_rows *rows = &centroids->codec.rows;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)sl_field_get(centroids->rows + members[i] * rows->pitch, rows->bias);
    return sum / (double)count;
}

/* Above their mean, which learner->floats holds, the best of some vectors lie as far as these spread: by three
 * deviations in one direction, if they spread alike in all. */
static double deviation(const sl_learner *learner, size_t dim, double norm2) {
    double variance = norm2 - sl_dot_double(learner->floats, learner->floats, dim);
    return variance > 0 ? 3 * sqrt(variance / (double)dim) : 0;
}

/* What a vector in a partition's directions, and as long as its longest, is likely to score at best. */
static void put_reach(const sl_kmeans *kmeans, const sl_learner *learner, size_t p, const uint32_t *members,
                      size_t count) {
    const sl_codec *codec = &kmeans->codec;
    uint8_t *row = kmeans->rows + p * codec->rows.pitch;
    double longest = 0;
    for (size_t i = 0; i < count; i++)
        longest = fmax(longest, take_vector(kmeans, members[i], learner->floats));
    double norm2 = mean_of(kmeans, learner, members, count, 0);
    double reach = longest * deviation(learner, codec->dim, norm2);
    scale(learner->floats, codec->dim, longest);
    sl_encode_row(codec, learner->floats, SL_F32, row, learner->floats + codec->dim, NULL);
    sl_field_put(row, codec->rows.bias, reach);
}

/* The best of a group are among its longest centroids, and lie above these as well. */
static void put_group_reach(const sl_kmeans *kmeans, const sl_learner *learner, size_t p, const uint32_t *members,
                            size_t count) {
    const sl_codec *codec = &kmeans->codec;
    uint8_t *row = kmeans->rows + p * codec->rows.pitch;
    double least = long_quarter(kmeans, learner, members, count);
    double norm2 = mean_of(kmeans, learner, members, count, least);
    double reach = deviation(learner, codec->dim, norm2) + mean_reach(kmeans->grouped, members, count);
    sl_encode_row(codec, learner->floats, SL_F32, row, learner->floats + codec->dim, NULL);
    sl_field_put(row, codec->rows.bias, reach);
}

/* Centroids that no row was nearest to move to a row of what is largest, counting that they halve it. */
static void refill(sl_kmeans *kmeans, uint64_t turn) {
    memset(kmeans->splits, 0, kmeans->count * sizeof *kmeans->splits);
    for (size_t p = 0; p < kmeans->count; p++) {
        sl_range range = members_of(kmeans, p);
        if (range.first < range.end) continue;
        size_t largest = 0, most = 0;
        for (size_t other = 0; other < kmeans->count; other++) {
            range = members_of(kmeans, other);
            size_t size = (range.end - range.first) / (kmeans->splits[other] + 1);
            if (size <= most) continue;
            most = size;
            largest = other;
        }
        range = members_of(kmeans, largest);
        size_t at = range.first + pick(kmeans, turn + 2, p, range.end - range.first);
        put_mean(kmeans, &kmeans->learners[0], p, kmeans->members + at, 1);
        kmeans->splits[largest]++;
    }
}

static void move_centroids(sl_kmeans *kmeans) {
    int by_reach = kmeans->is_asked && kmeans->index->codec.metric == SL_METRIC_IP;
    void (*put)(const sl_kmeans *, const sl_learner *, size_t, const uint32_t *, size_t) = !by_reach ? put_mean
                                                                                           : kmeans->grouped
                                                                                               ? put_group_reach
                                                                                               : put_reach;
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)kmeans->threads) if (kmeans->threads > 1)
    for (size_t p = 0; p < kmeans->count; p++) {
        sl_range range = members_of(kmeans, p);
        if (range.first == range.end) continue;
        put(kmeans, &kmeans->learners[sl_thread_number()], p, kmeans->members + range.first, range.end - range.first);
    }
}

/* To begin with, rows of the sample, evenly drawn. */
static void start(sl_kmeans *kmeans) {
    size_t stretch = kmeans->sampled / kmeans->count;
    for (size_t p = 0; p < kmeans->count; p++) {
        uint32_t row = (uint32_t)(p * stretch + pick(kmeans, 1, p, stretch));
        put_mean(kmeans, &kmeans->learners[0], p, &row, 1);
    }
}

static void turn(sl_kmeans *kmeans, uint64_t number) {
    assign(kmeans);
    sort_members(kmeans);
    move_centroids(kmeans);
    refill(kmeans, number);
}

static void sample(sl_kmeans *kmeans, size_t most) {
    kmeans->sampled = kmeans->count * most < kmeans->index->n ? kmeans->count * most : kmeans->index->n;
}

static void learn(sl_kmeans *kmeans) {
    sl_kmeans *groups = kmeans->groups;
    sample(kmeans, FIRST);
    start(kmeans);
    if (groups) start(groups);
    for (uint64_t number = 0; number < TURNS && !sl_progress_cancelled(kmeans->progress); number++) {
        if (groups) turn(groups, number);
        size_t rows = (size_t)FIRST << number;
        sample(kmeans, rows < MOST ? rows : MOST);
        turn(kmeans, number);
    }
    if (groups) turn(groups, TURNS);
    kmeans->sampled = kmeans->index->n;
    assign(kmeans);
    sort_members(kmeans);
}

static void learn_groups(sl_kmeans *groups) {
    start(groups);
    for (uint64_t number = 0; number < TURNS && !sl_progress_cancelled(groups->progress); number++)
        turn(groups, number);
    assign(groups);
    sort_members(groups);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Partitions
 * ------------------------------------------------------------------------------------------------------------- */

/* The centroids once more, of all rows and in the form that queries are compared with. */
static sl_status restate(sl_kmeans *kmeans) {
    const sl_allocator *allocator = &kmeans->index->allocator;
    sl_codec codec;
    void *rows;
    SL_TRY(sl_partition_codec(kmeans->index, &codec));
    SL_TRY(sl_mem_alloc(allocator, sl_codec_rows_size(&codec, kmeans->count), &rows));
    sl_mem_free(allocator, kmeans->rows, sl_codec_rows_size(&kmeans->codec, kmeans->count));
    kmeans->codec = codec;
    kmeans->codec.rows.base = kmeans->rows = rows;
    kmeans->is_asked = 1;
    move_centroids(kmeans);
    return SL_OK;
}

/* Those that have no rows are in no group. */
static void leave_out_empty(sl_kmeans *groups) {
    uint32_t kept = 0, from = 0;
    for (size_t g = 0; g < groups->count; g++) {
        uint32_t end = groups->ends[g];
        for (; from < end; from++) {
            uint32_t p = groups->members[from];
            sl_range range = members_of(groups->grouped, p);
            if (range.first < range.end) groups->members[kept++] = p;
        }
        groups->ends[g] = kept;
    }
}

/* Sorts `order`, which names n things, by where they are: in those places that `list` names, in its order, those of one
 * as they were. `scratch`: n entries. Errors: SL_ENOMEM. */
static sl_status arrange(const sl_kmeans *kmeans, const uint32_t *of, size_t n, const uint32_t *list, size_t listed,
                         uint32_t *order, uint32_t *scratch, sl_partitions *out) {
    const sl_allocator *allocator = &kmeans->index->allocator;
    size_t pitch = kmeans->codec.rows.pitch, end = 0;
    sl_partitions arranged = {.count = listed, .codec = kmeans->codec};
    void *block, *places = NULL;
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(allocator, kmeans->count * sizeof(uint32_t), &places), done);
    uint32_t *place_of = places;
    SL_TRY_GOTO(sl_mem_alloc(allocator, (listed + 1) * sizeof(uint32_t), &block), done);
    arranged.starts = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, sl_codec_rows_size(&arranged.codec, listed), &block), done);
    arranged.rows = block;
    arranged.codec.rows.base = block;
    for (size_t i = 0; i < listed; i++) {
        place_of[list[i]] = (uint32_t)i + 1;
        memcpy(arranged.rows + i * pitch, kmeans->rows + list[i] * pitch, pitch);
    }
    /* Sizes, a place further on; then begins, which filling moves to the ends: a place further on, begins again. */
    for (size_t i = 0; i < n; i++)
        if (place_of[of[order[i]]] < listed) arranged.starts[place_of[of[order[i]]] + 1]++;
    for (size_t p = 1; p <= listed; p++) {
        end += arranged.starts[p];
        arranged.starts[p] = (uint32_t)end;
    }
    for (size_t i = 0; i < n; i++)
        scratch[arranged.starts[place_of[of[order[i]]]]++] = order[i];
    memcpy(order, scratch, n * sizeof *order);
    *out = arranged;
    arranged = (sl_partitions){.codec = kmeans->codec};
done:
    sl_mem_free(allocator, places, kmeans->count * sizeof(uint32_t));
    sl_partitions_free(allocator, &arranged);
    return status;
}

/* The places in `of` that are met in this order, each once, into `list`; returns how many. `seen`: zeroes. */
static size_t meet(const uint32_t *of, const uint32_t *order, size_t n, uint32_t *seen, uint32_t *list) {
    size_t met = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t place = of[order[i]];
        if (!seen[place]) list[met++] = place;
        seen[place] = 1;
    }
    return met;
}

/* Nodes by partition, these by group, where there are any, and groups as they are met first. */
static sl_status number(const sl_kmeans *kmeans, const sl_kmeans *groups, uint32_t *order, uint32_t *scratch,
                        sl_partitions *partitions, sl_partitions *grouped) {
    const sl_allocator *allocator = &kmeans->index->allocator;
    size_t n = kmeans->index->n, count = kmeans->count, size = 4 * count * sizeof(uint32_t);
    void *block;
    sl_status status;
    SL_TRY(sl_mem_alloc(allocator, size, &block));
    uint32_t *list = block, *seen = list + count, *groups_list = seen + count, *groups_seen = groups_list + count;
    size_t listed = meet(kmeans->of, order, n, seen, list);
    if (groups->count) {
        size_t met = meet(groups->of, list, listed, groups_seen, groups_list);
        SL_TRY_GOTO(arrange(groups, groups->of, listed, groups_list, met, list, scratch, grouped), done);
    }
    status = arrange(kmeans, kmeans->of, n, list, listed, order, scratch, partitions);
done:
    sl_mem_free(allocator, block, size);
    return status;
}

/* A node's length, and its place in the order. */
typedef struct sl_measured {
    float length;
    uint32_t place;
} sl_measured;

static int longer_first(const void *a, const void *b) {
    const sl_measured *one = a, *other = b;
    if (one->length != other->length) return one->length > other->length ? -1 : 1;
    return one->place < other->place ? -1 : 1;
}

/* Of a partition's nodes, which lie by falling length, how long the longest of each band is. */
static void put_bands(const sl_measured *nodes, size_t count, uint8_t *bands) {
    for (size_t b = 0; b < SL_PARTITION_BANDS; b++) {
        size_t first = sl_partition_banded(count, b);
        if (first == count) first--; /* of an empty one */
        double share = nodes[0].length > 0 ? (double)nodes[first].length / (double)nodes[0].length : 1;
        bands[b] = (uint8_t)ceil(255 * share);
    }
}

/* Sorts each partition's nodes by falling length, those alike as they were, and makes its bands. */
static sl_status make_bands(const sl_kmeans *kmeans, uint32_t *order, uint32_t *scratch, sl_partitions *out) {
    const sl_allocator *allocator = &kmeans->index->allocator;
    size_t n = kmeans->index->n, dim = kmeans->codec.dim;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, out->count * SL_PARTITION_BANDS, &block));
    out->bands = block;
    out->band_bits = SL_BAND_BITS;
    SL_TRY(sl_mem_alloc(allocator, n * sizeof(sl_measured), &block));
    sl_measured *nodes = block;
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)kmeans->threads) if (kmeans->threads > 1)
    for (size_t p = 0; p < out->count; p++) {
        float *x = kmeans->learners[sl_thread_number()].floats;
        sl_range range = sl_partition_nodes(out, p, n);
        if (sl_progress_cancelled(kmeans->progress)) continue;
        for (size_t i = range.first; i < range.end; i++) {
            sl_coded_floats(kmeans->index, order[i], x);
            double length = length_of(x, dim); /* of a damaged file perhaps no number, or too large a one */
            nodes[i] = (sl_measured){length <= (double)FLT_MAX ? (float)length : 0, (uint32_t)i};
        }
        qsort(nodes + range.first, range.end - range.first, sizeof *nodes, longer_first);
        for (size_t i = range.first; i < range.end; i++)
            scratch[i] = order[nodes[i].place];
        put_bands(nodes + range.first, range.end - range.first, out->bands + p * SL_PARTITION_BANDS);
    }
    sl_mem_free(allocator, nodes, n * sizeof *nodes);
    if (sl_progress_cancelled(kmeans->progress)) return sl_progress_end(kmeans->progress);
    memcpy(order, scratch, n * sizeof *order);
    return SL_OK;
}

/* Centroids, and of all rows the partition. Where there are many centroids, they are in groups meanwhile. */
static sl_status make_partitions(sl_kmeans *kmeans) {
    sl_kmeans groups = {0};
    sl_status status;
    if (kmeans->count > BLOCK) {
        SL_TRY_GOTO(groups_init(&groups, kmeans, (size_t)sqrt((double)kmeans->count)), done);
        kmeans->groups = &groups;
    }
    learn(kmeans);
    if (sl_progress_cancelled(kmeans->progress)) SL_TRY_GOTO(sl_progress_end(kmeans->progress), done);
    status = restate(kmeans);
done:
    kmeans->groups = NULL;
    groups_free(&groups);
    return status;
}

/* The groups that queries look at, of centroids as queries are compared with them. */
static sl_status make_groups(sl_kmeans *groups, const sl_kmeans *kmeans) {
    SL_TRY(groups_init(groups, kmeans, sl_partition_groups(kmeans->count)));
    learn_groups(groups);
    if (sl_progress_cancelled(kmeans->progress)) return sl_progress_end(kmeans->progress);
    leave_out_empty(groups);
    return restate(groups);
}

sl_status sl_partitions_make(const sl_index *index, size_t threads, sl_progress *progress, uint32_t *order,
                             uint32_t *of, uint32_t *scratch, sl_partitions *partitions, sl_partitions *grouped) {
    sl_kmeans kmeans = {.index = index,
                        .count = sl_partition_count(index->n),
                        .threads = threads,
                        .of = of,
                        .members = scratch,
                        .progress = progress};
    sl_kmeans groups = {0};
    sl_status status;
    SL_TRY(sl_partition_codec(index, &kmeans.codec));
    SL_TRY_GOTO(learners_alloc(&kmeans), done);
    SL_TRY_GOTO(centroids_alloc(&kmeans), done);
    SL_TRY_GOTO(make_partitions(&kmeans), done);
    if (sl_partition_groups(kmeans.count)) SL_TRY_GOTO(make_groups(&groups, &kmeans), done);
    SL_TRY_GOTO(number(&kmeans, &groups, order, scratch, partitions, grouped), done);
    if (index->codec.metric == SL_METRIC_IP) status = make_bands(&kmeans, order, scratch, partitions);
done:
    groups_free(&groups);
    learners_free(&kmeans);
    centroids_free(&kmeans);
    return status;
}
