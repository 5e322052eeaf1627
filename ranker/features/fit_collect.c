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

void sl_collect_number(sl_collector *c, double value, int is_squared) {
    if (c->count == 0 || value < c->low) c->low = value;
    if (c->count == 0 || value > c->high) c->high = value;
    c->count++;
    sl_exact_add(&c->sum, value);
    if (is_squared) sl_exact_add_product(&c->squares, value, value);
}

static int is_before(const sl_sampled_value *a, const sl_sampled_value *b) {
    return a->draw != b->draw ? a->draw < b->draw : a->value < b->value;
}

/* Moves the `keep` values of the smallest draws to the front (Hoare 1961, FIND). 0 < keep < n. */
static void keep_smallest(sl_sampled_value *values, size_t n, size_t keep) {
    size_t left = 0, right = n - 1;
    while (left < right) {
        sl_sampled_value pivot = values[left + (right - left) / 2];
        size_t i = left, j = right;
        for (;; i++, j--) {
            while (is_before(&values[i], &pivot))
                i++;
            while (is_before(&pivot, &values[j]))
                j--;
            if (i >= j) break;
            sl_sampled_value held = values[i];
            values[i] = values[j];
            values[j] = held;
        }
        if (keep <= j + 1)
            right = j;
        else
            left = j + 1;
        if (left == right || keep == j + 1) return;
    }
}

/* Cuts the sample down to SL_QUANTILE_SAMPLE values. */
static void cut_sample(sl_collector *c) {
    if (c->sample_count <= SL_QUANTILE_SAMPLE) return;
    keep_smallest(c->sample, c->sample_count, SL_QUANTILE_SAMPLE);
    c->sample_count = SL_QUANTILE_SAMPLE;
    c->largest_draw = 0;
    for (size_t i = 0; i < c->sample_count; i++)
        if (c->sample[i].draw > c->largest_draw) c->largest_draw = c->sample[i].draw;
}

static sl_status add_sampled(sl_collector *c, sl_sampled_value value) {
    sl_status status = SL_OK;
    if (c->largest_draw && value.draw > c->largest_draw) return SL_OK;
    if (c->sample_count == 2 * SL_QUANTILE_SAMPLE) cut_sample(c);
    c->sample = sl_mem_grow(c->allocator, c->sample, &c->sample_room, c->sample_count + 1, sizeof *c->sample, &status);
    if (status == SL_OK) c->sample[c->sample_count++] = value;
    return status;
}

sl_status sl_collect_quantile(sl_collector *c, uint64_t seed, uint64_t position, double value) {
    return add_sampled(c, (sl_sampled_value){sl_random_at(seed, position), value});
}

/* Adds `more` to the count of a text. Sets *number to its number; SIZE_MAX: the vocabulary is full. */
static sl_status count_text(sl_collector *c, const char *text, size_t size, uint64_t more, size_t *number) {
    sl_status status = SL_OK;
    if (!c->texts) SL_TRY(sl_vocabulary_create(c->allocator, &c->texts));
    c->counts = sl_mem_grow(c->allocator, c->counts, &c->count_room, sl_vocabulary_count(c->texts) + 1,
                            sizeof *c->counts, &status);
    SL_TRY(status);
    SL_TRY(sl_vocabulary_add(c->texts, text, size, c->limit, number));
    if (*number == SIZE_MAX) return sl_fail(SL_ELIMIT, "more than %zu distinct values", c->limit);
    c->counts[*number] += more;
    return SL_OK;
}

sl_status sl_collect_key(sl_collector *c, sl_key *key) {
    size_t number = SIZE_MAX;
    if (c->texts && key->kind == SL_KEY_INTEGER) number = sl_vocabulary_find_integer(c->texts, key->integer);
    if (number == SIZE_MAX) {
        sl_key_text(key);
        return count_text(c, key->text, key->size, 1, &number);
    }
    c->counts[number]++;
    return SL_OK;
}

/* ---- After the pass ---- */

double sl_collector_mean(const sl_collector *c) {
    return c->count ? sl_exact_mean(&c->sum, c->count) : 0;
}

double sl_collector_spread(const sl_collector *c) {
    return c->count ? sqrt(sl_exact_deviation(&c->sum, &c->squares, c->count) / (double)c->count) : 1;
}

static int compare_values(const void *a, const void *b) {
    double x = ((const sl_sampled_value *)a)->value, y = ((const sl_sampled_value *)b)->value;
    return (x > y) - (x < y);
}

sl_status sl_collector_boundaries(sl_collector *c, size_t quantiles, double **out, size_t *count) {
    void *block;
    *out = NULL;
    *count = 0;
    if (c->sample_count == 0) return SL_OK;
    cut_sample(c);
    qsort(c->sample, c->sample_count, sizeof *c->sample, compare_values);
    SL_TRY(sl_mem_alloc(c->allocator, quantiles * sizeof **out, &block));
    double *found = block;
    /* A boundary at the least value would leave the first bucket empty. A repeated boundary would leave its bucket
     * empty. */
    double last = c->sample[0].value;
    size_t kept = 0;
    for (size_t k = 1; k < quantiles; k++) {
        double value = c->sample[k * c->sample_count / quantiles].value;
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

/* ---- Merging the collectors of several ranks ---- */

/* Bytes that grow. */
typedef struct bytes {
    const sl_allocator *allocator;
    uint8_t *data;
    size_t size, room;
} bytes;

static sl_status put(bytes *to, const void *data, size_t size) {
    sl_status status = SL_OK;
    to->data = sl_mem_grow(to->allocator, to->data, &to->room, to->size + size, 1, &status);
    SL_TRY(status);
    if (size) memcpy(to->data + to->size, data, size);
    to->size += size;
    return SL_OK;
}

/* What a collector writes first. Then come the sample, then for each text its count, its size and its bytes. */
typedef struct collected {
    uint64_t count;
    sl_exact_sum sum, squares;
    double low, high;
    uint64_t sample_count, text_count;
} collected;

static sl_status write_collector(sl_collector *c, bytes *to) {
    cut_sample(c);
    const collected head = {.count = c->count,
                            .sum = c->sum,
                            .squares = c->squares,
                            .low = c->low,
                            .high = c->high,
                            .sample_count = c->sample_count,
                            .text_count = c->texts ? sl_vocabulary_count(c->texts) : 0};
    SL_TRY(put(to, &head, sizeof head));
    SL_TRY(put(to, c->sample, c->sample_count * sizeof *c->sample));
    for (size_t i = 0; i < head.text_count; i++) {
        size_t size;
        const char *text = sl_vocabulary_text(c->texts, i, &size);
        const uint64_t counted[2] = {c->counts[i], size};
        SL_TRY(put(to, counted, sizeof counted));
        SL_TRY(put(to, text, size));
    }
    return SL_OK;
}

static void get(const uint8_t **from, void *to, size_t size) {
    memcpy(to, *from, size);
    *from += size;
}

/* Adds what a rank wrote. The ranks run one program, so its bytes are trusted. */
static sl_status add_collected(sl_collector *c, const uint8_t **from) {
    collected head;
    get(from, &head, sizeof head);
    if (head.count && (c->count == 0 || head.low < c->low)) c->low = head.low;
    if (head.count && (c->count == 0 || head.high > c->high)) c->high = head.high;
    c->count += head.count;
    sl_exact_merge(&c->sum, &head.sum);
    sl_exact_merge(&c->squares, &head.squares);
    for (uint64_t i = 0; i < head.sample_count; i++) {
        sl_sampled_value value;
        get(from, &value, sizeof value);
        SL_TRY(add_sampled(c, value));
    }
    for (uint64_t i = 0; i < head.text_count; i++) {
        uint64_t counted[2];
        size_t number;
        get(from, counted, sizeof counted);
        SL_TRY(count_text(c, (const char *)*from, counted[1], counted[0], &number));
        *from += counted[1];
    }
    return SL_OK;
}

static sl_status add_parts(sl_collector *collectors, size_t count, const sl_parts *parts, size_t *failed) {
    for (size_t r = 0; r < parts->ranks; r++) {
        const uint8_t *from = parts->data + parts->at[r];
        for (*failed = 0; *failed < count; ++*failed)
            SL_TRY(add_collected(&collectors[*failed], &from));
    }
    return SL_OK;
}

sl_status sl_collectors_merge(sl_collector *collectors, size_t count, const sl_ranks *ranks, size_t *failed) {
    bytes mine = {.allocator = collectors->allocator};
    sl_parts parts = {.data = NULL};
    sl_status status = SL_OK;
    if (!ranks) return SL_OK;
    for (size_t i = 0; i < count && status == SL_OK; i++)
        status = write_collector(&collectors[i], &mine);
    status = ranks->agree(ranks->ctx, status);
    if (status == SL_OK) status = ranks->gather(ranks->ctx, mine.data, mine.size, collectors->allocator, &parts);
    if (status == SL_OK) {
        for (size_t i = 0; i < count; i++) {
            sl_collector empty = {.allocator = collectors[i].allocator, .limit = collectors[i].limit};
            sl_collector_free(&collectors[i]);
            collectors[i] = empty;
        }
        status = ranks->agree(ranks->ctx, add_parts(collectors, count, &parts, failed));
    }
    SL_FREE_ARRAY(collectors->allocator, mine.data, mine.room);
    sl_parts_free(&parts);
    return status;
}
