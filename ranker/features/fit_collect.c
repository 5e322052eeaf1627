#define _GNU_SOURCE
#include "ranker/features/fit_collect.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sl_collector_free(sl_collector *c) {
    SL_FREE_ARRAY(c->allocator, c->sample, c->sample_room);
    SL_FREE_ARRAY(c->allocator, c->counts, c->count_room);
    sl_vocabulary_free(c->texts);
}

/* ---- During the pass ---- */

void sl_collect_number(sl_collector *c, double value) {
    if (c->count == 0 || value < c->low) c->low = value;
    if (c->count == 0 || value > c->high) c->high = value;
    c->count++;
    double off = value - c->mean;
    c->mean += off / (double)c->count;
    c->deviation += off * (value - c->mean);
}

sl_status sl_collect_quantile(sl_collector *c, uint64_t seed, double value) {
    uint64_t seen = c->count++;
    if (seen < SL_QUANTILE_SAMPLE) {
        sl_status status = SL_OK;
        c->sample =
            sl_mem_grow(c->allocator, c->sample, &c->sample_room, c->sample_count + 1, sizeof *c->sample, &status);
        if (status == SL_OK) c->sample[c->sample_count++] = value;
        return status;
    }
    uint64_t place = sl_random_at(seed, seen) % c->count;
    if (place < c->sample_count) c->sample[place] = value;
    return SL_OK;
}

sl_status sl_collect_key(sl_collector *c, sl_key *key) {
    size_t number = SIZE_MAX;
    if (!c->texts) SL_TRY(sl_vocabulary_create(c->allocator, &c->texts));
    if (key->kind == SL_KEY_INTEGER) number = sl_vocabulary_find_integer(c->texts, key->integer);
    if (number == SIZE_MAX) {
        sl_key_text(key);
        sl_status status = SL_OK;
        c->counts = sl_mem_grow(c->allocator, c->counts, &c->count_room, sl_vocabulary_count(c->texts) + 1,
                                sizeof *c->counts, &status);
        SL_TRY(status);
        SL_TRY(sl_vocabulary_add(c->texts, key->text, key->size, c->limit, &number));
        if (number == SIZE_MAX) return sl_fail(SL_ELIMIT, "more than %zu distinct values", c->limit);
    }
    c->counts[number]++;
    return SL_OK;
}

/* ---- After the pass ---- */

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

sl_status sl_collector_boundaries(sl_collector *c, size_t quantiles, double **out, size_t *count) {
    void *block;
    *out = NULL;
    *count = 0;
    if (c->sample_count == 0) return SL_OK;
    qsort(c->sample, c->sample_count, sizeof *c->sample, compare_doubles);
    SL_TRY(sl_mem_alloc(c->allocator, quantiles * sizeof **out, &block));
    double *found = block;
    /* A boundary at the least value would leave the first bucket empty. A repeated boundary would leave its bucket
     * empty. */
    double last = c->sample[0];
    size_t kept = 0;
    for (size_t k = 1; k < quantiles; k++) {
        double value = c->sample[k * c->sample_count / quantiles];
        if (value > last) last = found[kept++] = value;
    }
    sl_status status =
        kept ? sl_mem_resize(c->allocator, &block, quantiles * sizeof **out, kept * sizeof **out) : SL_OK;
    if (kept == 0 || status != SL_OK) {
        sl_mem_free(c->allocator, found, quantiles * sizeof **out);
        return status;
    }
    *out = block;
    *count = kept;
    return SL_OK;
}

static int compare_texts(const sl_vocabulary *texts, uint32_t a, uint32_t b) {
    size_t a_size, b_size;
    const char *a_text = sl_vocabulary_text(texts, a, &a_size), *b_text = sl_vocabulary_text(texts, b, &b_size);
    int order = memcmp(a_text, b_text, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare_counts(const void *a, const void *b, void *ctx) {
    const sl_collector *c = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (c->counts[x] != c->counts[y]) return c->counts[x] < c->counts[y] ? 1 : -1;
    return compare_texts(c->texts, x, y);
}

static double number_of(const sl_vocabulary *texts, uint32_t i) {
    size_t size;
    double value;
    const char *text = sl_vocabulary_text(texts, i, &size);
    return sl_number_read(text, size, &value) ? value : (double)NAN;
}

static int compare_as_numbers(const void *a, const void *b, void *ctx) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    double p = number_of(ctx, x), q = number_of(ctx, y);
    return p != q ? (p > q) - (p < q) : compare_texts(ctx, x, y);
}

static int compare_as_texts(const void *a, const void *b, void *ctx) {
    return compare_texts(ctx, *(const uint32_t *)a, *(const uint32_t *)b);
}

static sl_status number_texts(const sl_collector *c, uint32_t **out) {
    void *block;
    size_t count = sl_vocabulary_count(c->texts);
    SL_TRY(sl_mem_alloc(c->allocator, count * sizeof **out, &block));
    *out = block;
    for (size_t i = 0; i < count; i++)
        (*out)[i] = (uint32_t)i;
    return SL_OK;
}

sl_status sl_collector_texts_by_count(sl_collector *c, size_t min_count, size_t keep, uint32_t **out, size_t *count) {
    SL_TRY(number_texts(c, out));
    size_t all = sl_vocabulary_count(c->texts);
    qsort_r(*out, all, sizeof **out, compare_counts, c);
    *count = keep && keep < all ? keep : all;
    while (*count && c->counts[(*out)[*count - 1]] < min_count)
        --*count;
    return SL_OK;
}

sl_status sl_collector_texts_by_value(const sl_collector *c, uint32_t **out) {
    SL_TRY(number_texts(c, out));
    size_t all = sl_vocabulary_count(c->texts);
    int numbers = 1;
    for (size_t i = 0; i < all; i++)
        numbers &= !isnan(number_of(c->texts, (uint32_t)i));
    qsort_r(*out, all, sizeof **out, numbers ? compare_as_numbers : compare_as_texts, c->texts);
    return SL_OK;
}
