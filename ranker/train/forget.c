/* Forgetting replaces a value by the encoding of a missing or an unseen value. Dropout does this to inputs (Hinton et
 * al. 2012). DropoutNet forgets whole users and items (Volkovs et al. 2017). So the model learns what to predict for an
 * unknown value, user or item. */
#include "ranker/train/forget.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

/* Number of this stream of random numbers. dataset.c and weights.c use the lower numbers. */
#define STREAM_FORGET ((uint64_t)3 << 32)

/* With fewer rows, waking threads costs more than it saves. */
#define ROWS_FOR_THREADS ((size_t)1024)

/* A draw has 16 bits. A row's first draws decide about sides: user, item, both. Then each feature has one draw. */
enum { SIDE_DRAWS = 3, DRAWS = 4 };

typedef enum fate { KEPT, MISSING, UNSEEN } fate;

static sl_status encode_missing(sl_forgetter *forgetter) {
    sl_encoder *encoder;
    SL_TRY(sl_encoder_create(forgetter->features, SL_ALL_SIDES, 0, NULL, NULL, &forgetter->allocator, &encoder));
    sl_status status = sl_encoder_append_missing(encoder, 1, &forgetter->missing);
    sl_encoder_free(encoder);
    return status;
}

static sl_status list_bags(sl_forgetter *forgetter) {
    const sl_features *features = forgetter->features;
    void *block;
    SL_TRY(sl_mem_alloc(&forgetter->allocator, features->bag_count * sizeof *forgetter->bags, &block));
    forgetter->bags = block;
    for (size_t f = 0; f < features->count; f++)
        if (features->features[f].form == SL_FORM_BAG) forgetter->bags[features->features[f].at] = f;
    return SL_OK;
}

sl_status sl_forgetter_init(sl_forgetter *forgetter, const sl_features *features, double probability,
                            const sl_allocator *allocator) {
    *forgetter = (sl_forgetter){.allocator = *allocator,
                                .features = features,
                                .share = (uint32_t)lround(probability * 65536),
                                .missing.allocator = *allocator};
    SL_TRY(encode_missing(forgetter));
    return list_bags(forgetter);
}

void sl_forgetter_free(sl_forgetter *forgetter) {
    if (!forgetter->features) return;
    SL_FREE_ARRAY(&forgetter->allocator, forgetter->bags, forgetter->features->bag_count);
    sl_rows_buffer_free(&forgetter->missing);
    *forgetter = (sl_forgetter){0};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Choosing what to forget
 * ------------------------------------------------------------------------------------------------------------- */

/* The draws of one row, four per 64-bit word. */
typedef struct draws {
    uint64_t seed, first; /* number of the row's first word */
    size_t word;          /* number of the word in `bits`; SIZE_MAX: none yet */
    uint64_t bits;
} draws;

static uint32_t draw_bits(draws *d, size_t number) {
    if (number / DRAWS != d->word) {
        d->word = number / DRAWS;
        d->bits = sl_random_at(d->seed, d->first + d->word);
    }
    return (uint32_t)(d->bits >> 16 * (number % DRAWS)) & 0xffff;
}

/* Random number that chooses among a feature's unseen ids. The draw that forgot the value would not do: it is below the
 * share, so it would choose only the first ids. */
static uint64_t bucket_of(const draws *d, size_t number) {
    return sl_random_at(~d->seed, d->first * DRAWS + number);
}

static draws draws_of(const sl_forgetter *forgetter, uint64_t seed, size_t row) {
    size_t words = (SIDE_DRAWS + forgetter->features->count + DRAWS - 1) / DRAWS;
    return (draws){seed, row * words, SIZE_MAX, 0};
}

static size_t unseen_ids(const sl_feature *feature) {
    const sl_feature_spec *spec = feature->spec;
    int coded = spec->type == SL_FEATURE_CATEGORICAL || spec->type == SL_FEATURE_MULTI;
    return coded && (spec->coding == SL_CODING_FITTED || spec->coding == SL_CODING_LISTED) ? spec->oov : 0;
}

/* The sides that a row forgets, as masks: sides without any value, and sides with unseen categories. */
typedef struct forgotten_sides {
    unsigned missing, unseen;
} forgotten_sides;

static forgotten_sides draw_forgotten_sides(const sl_forgetter *forgetter, draws *d) {
    static const unsigned sides[SIDE_DRAWS] = {1u << SL_SIDE_USER, 1u << SL_SIDE_ITEM,
                                               1u << SL_SIDE_USER | 1u << SL_SIDE_ITEM};
    forgotten_sides out = {0, 0};
    for (size_t i = 0; i < SIDE_DRAWS; i++) {
        uint32_t drawn = draw_bits(d, i);
        if (drawn < forgetter->share) *(drawn % 2 ? &out.unseen : &out.missing) |= sides[i];
    }
    return out;
}

/* Decides what happens to a value. A missing number is encoded as the mean, which needs no training. Its indicator
 * does.
 * Parameters: `drawn` is the feature's draw. */
static fate fate_of(const sl_forgetter *forgetter, const sl_feature *feature, forgotten_sides sides, uint32_t drawn) {
    int unseen = unseen_ids(feature) > 0;
    if (sides.missing >> feature->side & 1) return MISSING;
    if (feature->spec->type == SL_FEATURE_VECTOR || feature->spec->type == SL_FEATURE_SCORE) return KEPT;
    if (feature->form == SL_FORM_DENSE) return feature->width > 1 && drawn < forgetter->share ? MISSING : KEPT;
    if (sides.unseen >> feature->side & 1) return unseen ? UNSEEN : MISSING;
    if (drawn >= forgetter->share) return KEPT;
    return drawn % 2 && unseen ? UNSEEN : MISSING;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Forgetting single values
 * ------------------------------------------------------------------------------------------------------------- */

static uint32_t unseen_id(const sl_feature *feature, uint64_t bucket) {
    return (uint32_t)(1 + bucket % unseen_ids(feature));
}

static void forget_single(const sl_forgetter *forgetter, const sl_feature *feature, fate how, uint64_t bucket,
                          float *dense, uint32_t *ids) {
    const sl_rows_buffer *missing = &forgetter->missing;
    if (feature->form == SL_FORM_ID)
        ids[feature->at] = how == UNSEEN ? unseen_id(feature, bucket) : missing->ids[feature->at];
    else if (feature->form == SL_FORM_DENSE)
        memcpy(dense + feature->at, missing->dense + feature->at, feature->width * sizeof *dense);
}

/* Computes the crosses again, in the order of the spec, because a cross may contain a cross. */
static void cross_again(const sl_features *features, uint32_t *ids) {
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->spec->type == SL_FEATURE_CROSS && feature->form == SL_FORM_ID)
            sl_cross_single(features, feature, ids);
    }
}

static void forget_rows(const sl_forgetter *forgetter, sl_minibatch *minibatch, const sl_forget_step *at, size_t from,
                        size_t to) {
    const sl_features *features = forgetter->features;
    for (size_t r = from; r < to; r++) {
        draws d = draws_of(forgetter, at->seed, at->first_row + r);
        forgotten_sides sides = draw_forgotten_sides(forgetter, &d);
        float *dense = minibatch->dense + r * features->dense_width;
        uint32_t *ids = minibatch->ids + r * features->id_count;
        int changed = 0;
        for (size_t f = 0; f < features->count; f++) {
            const sl_feature *feature = &features->features[f];
            if (feature->spec->type == SL_FEATURE_CROSS) continue;
            fate how = fate_of(forgetter, feature, sides, draw_bits(&d, SIDE_DRAWS + f));
            if (how == KEPT) continue;
            forget_single(forgetter, feature, how, bucket_of(&d, SIDE_DRAWS + f), dense, ids);
            changed = 1;
        }
        if (changed) cross_again(features, ids);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Forgetting bags, and closing the gaps they leave
 * ------------------------------------------------------------------------------------------------------------- */

/* Moves a bag's ids from place `from` to place `to`, at or before it. Returns how many ids are left. */
static size_t move_bag(const sl_feature *feature, uint32_t *ids, size_t to, size_t from, size_t count, fate how,
                       uint64_t bucket) {
    if (how == MISSING) return 0;
    for (size_t i = 0; i < count; i++)
        ids[to + i] = how == UNSEEN ? unseen_id(feature, bucket) : ids[from + i];
    return count;
}

/* Moves the bags of a mini-batch to the front, one after the other, as some become shorter. */
typedef struct bag_packing {
    const sl_forgetter *forgetter;
    sl_minibatch *minibatch;
    size_t from, end; /* place of the next bag's ids before the move */
    size_t used;      /* ids moved so far: the next bag moves here */
} bag_packing;

/* Moves the rest of the next bag. Returns how many ids are left of it. */
static size_t forget_bag(const bag_packing *p, size_t row, size_t bag, forgotten_sides sides, draws *d) {
    const sl_features *features = p->forgetter->features;
    sl_minibatch *minibatch = p->minibatch;
    size_t number = p->forgetter->bags[bag];
    const sl_feature *feature = &features->features[number];
    if (feature->spec->type == SL_FEATURE_CROSS)
        return sl_cross_bag(features, feature, minibatch->ids + row * features->id_count,
                            minibatch->bag_start + row * features->bag_count, minibatch->bag_ids,
                            minibatch->bag_ids + p->used);
    fate how = fate_of(p->forgetter, feature, sides, draw_bits(d, SIDE_DRAWS + number));
    uint64_t bucket = bucket_of(d, SIDE_DRAWS + number);
    return move_bag(feature, minibatch->bag_ids, p->used, p->from, p->end - p->from, how, bucket);
}

static void forget_bags(const sl_forgetter *forgetter, sl_minibatch *minibatch, const sl_forget_step *at) {
    size_t bags = forgetter->features->bag_count;
    uint32_t *start = minibatch->bag_start;
    bag_packing p = {.forgetter = forgetter, .minibatch = minibatch, .from = start[0]};
    for (size_t r = 0; r < minibatch->rows.rows; r++, start += bags) {
        draws d = draws_of(forgetter, at->seed, at->first_row + r);
        forgotten_sides sides = draw_forgotten_sides(forgetter, &d);
        for (size_t b = 0; b < bags; b++) {
            p.end = start[b + 1];
            start[b] = (uint32_t)p.used;
            p.used += forget_bag(&p, r, b, sides, &d);
            /* A cross of this bag reads the bag's new end in start[b + 1]. p.from keeps the next bag's old start. */
            start[b + 1] = (uint32_t)p.used;
            p.from = p.end;
        }
    }
}

void sl_forget_values(const sl_forgetter *forgetter, sl_minibatch *minibatch, const sl_forget_step *at) {
    size_t count = minibatch->rows.rows, threads = at->threads;
    if (!forgetter->share) return;
    sl_forget_step own = *at;
    own.seed = sl_random_at(sl_random_at(at->seed, STREAM_FORGET), at->step);
    if (threads == 1 || count < ROWS_FOR_THREADS) {
        forget_rows(forgetter, minibatch, &own, 0, count);
    } else {
#pragma omp parallel for schedule(static) num_threads((int)threads)
        for (size_t t = 0; t < threads; t++)
            forget_rows(forgetter, minibatch, &own, count * t / threads, count * (t + 1) / threads);
    }
    if (forgetter->features->bag_count) forget_bags(forgetter, minibatch, &own);
}
