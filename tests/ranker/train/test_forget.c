/* Forgetting in a training step: which values, how often, and what they become. The model then scores unknown values as
 * usual ones. */
#include "ranker/train/train_loop.h"
#include "tests/support/check_main.h"
#include "tests/support/planted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 16000, OOV = 3, SEEDS = 5 };

#define MIXED                                                                                                          \
    "{\"label\": {\"column\": \"click\"}, \"features\": ["                                                             \
    "{\"name\": \"x\", \"type\": \"numeric\"},"                                                                        \
    "{\"name\": \"y\", \"type\": \"numeric\", \"indicator\": true, \"side\": \"item\"},"                               \
    "{\"name\": \"xs\", \"type\": \"bucket\", \"column\": \"x\", \"boundaries\": [-1, 0, 1]},"                         \
    "{\"name\": \"a\", \"type\": \"categorical\", \"oov\": 3},"                                                        \
    "{\"name\": \"b\", \"type\": \"categorical\", \"hash\": 50, \"side\": \"item\"},"                                  \
    "{\"name\": \"tags\", \"type\": \"multi\", \"oov\": 3, \"side\": \"item\"},"                                       \
    "{\"name\": \"ab\", \"type\": \"cross\", \"of\": [\"a\", \"b\"], \"hash\": 5000},"                                 \
    "{\"name\": \"abx\", \"type\": \"cross\", \"of\": [\"ab\", \"xs\"], \"hash\": 5000},"                              \
    "{\"name\": \"atags\", \"type\": \"cross\", \"of\": [\"a\", \"tags\"], \"hash\": 5000}],"                          \
    "\"wide\": {}, \"deep\": null, \"train\": {\"forget\": %s, \"validation\": 0, \"batch\": 16000}}"
enum { X, Y, XS, A, B, TAGS, AB, ABX, ATAGS };

static planted rows;

static void set_up(void) {
    planted_make(&rows, ROWS, 1);
}

static void tear_down(void) {
    planted_free(&rows);
}

static sl_trainer *trainer_of(const char *forget) {
    char spec[2000];
    sl_features *features;
    sl_trainer *trainer;
    sl_train_params params;
    sl_train_params_init(&params);
    params.threads = 1;
    snprintf(spec, sizeof spec, MIXED, forget);
    ck_assert_msg(sl_train_fit(spec, &rows.source, &params, NULL, &features) == SL_OK, "%s", sl_last_error());
    ck_assert_msg(sl_trainer_create(features, &rows.source, NULL, &params, NULL, &trainer) == SL_OK, "%s",
                  sl_last_error());
    return trainer;
}

/* All rows in order, as that step of a training sees them. */
static void forget(sl_trainer *trainer, uint64_t seed, uint64_t step, size_t threads) {
    const sl_dataset *data = &trainer->data;
    ck_assert_int_eq(sl_minibatch_gather(&trainer->minibatch, data, data->train, data->train_count, threads), SL_OK);
    sl_forget_values(&trainer->forgetter, &trainer->minibatch, &(sl_forget_step){seed, step, 0, threads});
}

static const sl_feature *feature_of(const sl_trainer *trainer, size_t number) {
    return &trainer->features->features[number];
}

static uint32_t id_of(const sl_trainer *trainer, size_t row, size_t number, int before) {
    const uint32_t *ids = before ? trainer->data.rows.ids : trainer->minibatch.ids;
    return ids[row * trainer->features->id_count + feature_of(trainer, number)->at];
}

static const float *dense_of(const sl_trainer *trainer, size_t row, size_t number, int before) {
    const float *dense = before ? trainer->data.rows.dense : trainer->minibatch.dense;
    return dense + row * trainer->features->dense_width + feature_of(trainer, number)->at;
}

static const uint32_t *bag_of(const sl_trainer *trainer, size_t row, size_t number, int before, size_t *count) {
    const uint32_t *start = before ? trainer->data.rows.bag_start : trainer->minibatch.bag_start;
    const uint32_t *ids = before ? trainer->data.rows.bag_ids : trainer->minibatch.bag_ids;
    start += row * trainer->features->bag_count + feature_of(trainer, number)->at;
    *count = start[1] - start[0];
    return ids + start[0];
}

/* How often each case occurred. */
typedef struct tally {
    size_t kept, missing, unseen;
} tally;

/* A single value stays, becomes missing, or becomes a bucket of unseen values. */
static void count_id(const sl_trainer *trainer, size_t row, size_t number, uint32_t missing, uint32_t oov, tally *t) {
    uint32_t before = id_of(trainer, row, number, 1), now = id_of(trainer, row, number, 0);
    if (now == before)
        t->kept++;
    else if (now == missing)
        t->missing++;
    else {
        ck_assert_uint_ge(now, 1);
        ck_assert_uint_le(now, oov);
        t->unseen++;
    }
}

/* A nonempty bag stays, becomes empty, or repeats an unseen value as often as it had ids. */
static void count_bag(const sl_trainer *trainer, size_t row, tally *t) {
    size_t before, now;
    const uint32_t *old = bag_of(trainer, row, TAGS, 1, &before), *ids = bag_of(trainer, row, TAGS, 0, &now);
    if (before == 0) {
        ck_assert_uint_eq(now, 0);
        return;
    }
    if (now == 0) {
        t->missing++;
        return;
    }
    ck_assert_uint_eq(now, before);
    int unseen = ids[0] <= OOV;
    for (size_t i = 0; i < now; i++)
        ck_assert_uint_eq(ids[i], unseen ? ids[0] : old[i]);
    t->unseen += (size_t)unseen;
    t->kept += (size_t)!unseen;
}

/* Crosses use the ids after forgetting. */
static void check_crosses(const sl_trainer *trainer, size_t row) {
    const uint32_t a = id_of(trainer, row, A, 0), b = id_of(trainer, row, B, 0);
    const uint32_t ab = sl_cross_id(feature_of(trainer, AB), (uint32_t[]){a, b}, 2);
    ck_assert_uint_eq(id_of(trainer, row, AB, 0), ab);
    ck_assert_uint_eq(id_of(trainer, row, ABX, 0),
                      sl_cross_id(feature_of(trainer, ABX), (uint32_t[]){ab, id_of(trainer, row, XS, 0)}, 2));
    size_t count, crossed;
    const uint32_t *tags = bag_of(trainer, row, TAGS, 0, &count), *ids = bag_of(trainer, row, ATAGS, 0, &crossed);
    ck_assert_uint_eq(crossed, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(ids[i], sl_cross_id(feature_of(trainer, ATAGS), (uint32_t[]){a, tags[i]}, 2));
}

/* Checks a share of some thousand draws, within five standard deviations. */
static void expect_share(size_t found, size_t of, double share, const char *what) {
    double spread = sqrt(share * (1 - share) / (double)of);
    ck_assert_msg(fabs((double)found / (double)of - share) < 5 * spread, "%s: %zu of %zu, which should be %g", what,
                  found, of, share);
}

START_TEST(a_share_is_forgotten) {
    /* A value is forgotten alone, with its side, or with both sides. A side is forgotten whole, or only its
     * categories. */
    const double p = 0.2, any = 1 - 0.8 * 0.8 * 0.8, side = 1 - 0.9 * 0.9, own = 0.9 * 0.9 * 0.8;
    const double unseen = 0.9 * 0.9 - 0.8 * 0.8 + 0.8 * 0.8 * 0.1;
    sl_trainer *trainer = trainer_of("0.2");
    tally a = {0}, b = {0}, xs = {0}, tags = {0};
    size_t told = 0, x_known = 0, whole = 0;
    forget(trainer, 3, 11, 1);
    for (size_t r = 0; r < ROWS; r++) {
        const float *x = dense_of(trainer, r, X, 0), *y = dense_of(trainer, r, Y, 0);
        count_id(trainer, r, A, 0, OOV, &a);
        count_id(trainer, r, B, 0, 0, &b);
        count_id(trainer, r, XS, 4, 0, &xs);
        count_bag(trainer, r, &tags);
        check_crosses(trainer, r);
        /* A number is forgotten with its side, or alone if an indicator shows that. */
        x_known += x[0] == dense_of(trainer, r, X, 1)[0];
        ck_assert(x[0] == dense_of(trainer, r, X, 1)[0] || x[0] == 0);
        ck_assert(y[1] == 1 ? y[0] == 0 : y[0] == dense_of(trainer, r, Y, 1)[0]);
        told += y[1] == 1;
        size_t count;
        (void)bag_of(trainer, r, TAGS, 0, &count);
        whole += y[1] == 1 && id_of(trainer, r, B, 0) == 0 && count == 0;
    }
    expect_share(a.missing + a.unseen, ROWS, any, "a");
    expect_share(a.unseen, ROWS, unseen, "a, unseen");
    expect_share(b.missing, ROWS, any, "b");
    expect_share(xs.missing, ROWS, any, "buckets of x");
    expect_share(told, ROWS, 1 - own, "y");
    expect_share(ROWS - x_known, ROWS, side, "x");
    size_t filled = tags.kept + tags.missing + tags.unseen;
    expect_share(tags.missing + tags.unseen, filled, any, "tags");
    expect_share(tags.unseen, filled, unseen, "tags, unseen");
    ck_assert_double_gt((double)whole / ROWS, side * (1 - p / 10)); /* the item's side at once */
    sl_trainer_free(trainer);
}
END_TEST

static int same_batch(const sl_trainer *one, const sl_trainer *other) {
    const sl_features *features = one->features;
    size_t bags = ROWS * features->bag_count;
    return memcmp(one->minibatch.dense, other->minibatch.dense, ROWS * features->dense_width * sizeof(float)) == 0 &&
           memcmp(one->minibatch.ids, other->minibatch.ids, ROWS * features->id_count * sizeof(uint32_t)) == 0 &&
           memcmp(one->minibatch.bag_start, other->minibatch.bag_start, (bags + 1) * sizeof(uint32_t)) == 0 &&
           memcmp(one->minibatch.bag_ids, other->minibatch.bag_ids,
                  one->minibatch.bag_start[bags] * sizeof(uint32_t)) == 0;
}

START_TEST(seed_and_step_decide) {
    sl_trainer *one = trainer_of("0.05"), *other = trainer_of("0.05");
    forget(one, 3, 11, 1);
    forget(other, 3, 11, 3);
    ck_assert(same_batch(one, other));
    forget(other, 3, 12, 1);
    ck_assert(!same_batch(one, other));
    forget(other, 4, 11, 1);
    ck_assert(!same_batch(one, other));
    /* Steps count since the training began, so each epoch forgets other values. */
    sl_trainer *trainers[] = {one, other};
    for (size_t t = 0; t < 2; t++) {
        sl_dataset_shuffle(&trainers[t]->data, 1, 0);
        ck_assert_int_eq(sl_trainer_forward(trainers[t]), SL_OK);
    }
    ck_assert(same_batch(one, other));
    other->position.epoch = 1;
    ck_assert_int_eq(sl_trainer_forward(other), SL_OK);
    ck_assert(!same_batch(one, other));
    sl_trainer_free(one);
    sl_trainer_free(other);
}
END_TEST

/* Of a mini-batch that ranks share, a rank forgets in its rows what one process forgets there. */
START_TEST(rows_of_a_higher_rank_have_later_places) {
    sl_trainer *whole = trainer_of("0.4"), *rank = trainer_of("0.4");
    const sl_dataset *data = &rank->data;
    const size_t first = data->train_count / 3, count = data->train_count - first;
    forget(whole, 7, 2, 1);
    ck_assert_int_eq(sl_minibatch_gather(&rank->minibatch, data, data->train + first, count, 1), SL_OK);
    sl_forget_values(&rank->forgetter, &rank->minibatch, &(sl_forget_step){7, 2, first, 1});
    const size_t ids = rank->features->id_count * sizeof(uint32_t);
    ck_assert_mem_eq(rank->minibatch.ids, whole->minibatch.ids + first * rank->features->id_count, count * ids);
    for (size_t r = 0; r < count; r++) {
        size_t own, expected;
        const uint32_t *bag = bag_of(rank, r, TAGS, 0, &own), *other = bag_of(whole, first + r, TAGS, 0, &expected);
        ck_assert_uint_eq(own, expected);
        if (own) ck_assert_mem_eq(bag, other, own * sizeof *bag);
    }
    sl_trainer_free(whole);
    sl_trainer_free(rank);
}
END_TEST

START_TEST(nothing_is_forgotten_at_0) {
    sl_trainer *trainer = trainer_of("0"), *plain = trainer_of("0.5");
    const sl_dataset *data = &plain->data;
    forget(trainer, 3, 11, 1);
    ck_assert_int_eq(sl_minibatch_gather(&plain->minibatch, data, data->train, data->train_count, 1), SL_OK);
    ck_assert(same_batch(trainer, plain));
    forget(plain, 3, 11, 1);
    ck_assert(!same_batch(trainer, plain));
    sl_trainer_free(trainer);
    sl_trainer_free(plain);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What a model says of what it does not know
 * ------------------------------------------------------------------------------------------------------------- */

/* A fifth of the rows is positive. `coding` is of a and b. */
#define UNBALANCED                                                                                                     \
    "{\"label\": {\"column\": \"value\", \"at_least\": 11.6}, \"features\": ["                                         \
    "{\"name\": \"x\", \"type\": \"numeric\"},"                                                                        \
    "{\"name\": \"a\", \"type\": \"categorical\", \"dim\": 8, %s},"                                                    \
    "{\"name\": \"b\", \"type\": \"categorical\", \"dim\": 8, \"side\": \"item\", %s},"                                \
    "{\"name\": \"tags\", \"type\": \"multi\", \"dim\": 4, \"side\": \"item\"}],"                                      \
    "\"deep\": %s, \"train\": {\"epochs\": 5, \"batch\": 64, \"validation\": 0}}"

typedef enum hiding { UNSEEN, MISSING } hiding;

/* The mean score of rows with unseen or missing values in the columns that `hidden` names, separated by spaces. */
static double mean_score(const sl_ranker *ranker, const planted *on, const char *hidden, hiding how) {
    sl_table table = on->table;
    sl_column columns[PLANTED_COLUMNS];
    sl_predictor *predictor;
    int32_t *strange = calloc(on->rows, sizeof *strange);
    uint8_t *none = calloc(on->rows / 8 + 1, 1);
    float *scores = malloc(on->rows * sizeof *scores);
    double sum = 0;
    memcpy(columns, on->columns, sizeof columns);
    table.columns = columns;
    for (size_t r = 0; r < on->rows; r++)
        strange[r] = 1000 + (int32_t)r % 97;
    for (size_t c = 0; c < PLANTED_COLUMNS; c++) {
        char word[16];
        snprintf(word, sizeof word, " %s ", columns[c].name);
        if (!strstr(hidden, word)) continue;
        if (how == UNSEEN && columns[c].type == SL_COLUMN_I32)
            columns[c].values = strange;
        else
            columns[c].valid = none;
    }
    ck_assert_int_eq(sl_predictor_create(ranker, NULL, &predictor), SL_OK);
    ck_assert_msg(sl_predictor_predict(predictor, &table, scores) == SL_OK, "%s", sl_last_error());
    for (size_t r = 0; r < on->rows; r++)
        sum += (double)scores[r];
    sl_predictor_free(predictor);
    free(strange);
    free(none);
    free(scores);
    return sum / (double)on->rows;
}

/* Over seeds, the mean score is near the rate if categories are unseen or missing. That holds for one column, for all,
 * and for all of an item's, as for a candidate that the item table lacks. With random weights for unknown values, the
 * spread about the rate was 0.15 and 0.14; it is 0.06. */
START_TEST(what_is_unknown_is_scored_as_usual) {
    static const char *const codings[] = {"\"oov\": 1", "\"hash\": 500"};
    static const char *const hidden[] = {" a ", " b ", " a b ", " b tags ", " a b tags "};
    const char *coding = codings[_i];
    char spec[2000];
    double base = 0, squares = 0;
    size_t cases = 0;
    for (size_t r = 0; r < rows.rows; r++)
        base += (double)(rows.value[r] >= 11.6f) / (double)rows.rows;
    ck_assert(base > 0.2 && base < 0.3);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        sl_ranker *ranker;
        sl_train_params params;
        sl_train_params_init(&params);
        params.threads = 1;
        params.seed = seed;
        snprintf(spec, sizeof spec, UNBALANCED, coding, coding,
                 sl_net_has_onednn() ? "{\"hidden\": [16, 8], \"embedding_init\": 0.5}" : "null");
        ck_assert_msg(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL) == SL_OK, "%s",
                      sl_last_error());
        for (size_t h = 0; h < sizeof hidden / sizeof *hidden; h++)
            for (hiding how = UNSEEN; how <= MISSING; how++, cases++) {
                double off = mean_score(ranker, &rows, hidden[h], how) - base;
                squares += off * off;
                ck_assert_msg(fabs(off) < 0.25, "seed %llu, %s of%s: %g off the rate, which is %g",
                              (unsigned long long)seed, how == MISSING ? "none" : "others", hidden[h], off, base);
            }
        sl_ranker_free(ranker);
    }
    double spread = sqrt(squares / (double)cases);
    ck_assert_msg(spread < 0.09, "scores are spread by %g about the rate of %g", spread, base);
}
END_TEST

/* Unused buckets of a hash: their embedding is the mean of the rows' embeddings. */
START_TEST(unused_embeddings_are_the_mean) {
    if (!sl_net_has_onednn()) return;
    char spec[2000];
    sl_features *features;
    sl_trainer *trainer;
    sl_train_params params;
    sl_train_params_init(&params);
    params.threads = 1;
    params.epochs = 2;
    snprintf(spec, sizeof spec, UNBALANCED, "\"oov\": 3", "\"hash\": 50", "{\"hidden\": [8], \"embedding_init\": 0.5}");
    ck_assert_msg(sl_train_fit(spec, &rows.source, &params, NULL, &features) == SL_OK, "%s", sl_last_error());
    ck_assert_msg(sl_trainer_create(features, &rows.source, NULL, &params, NULL, &trainer) == SL_OK, "%s",
                  sl_last_error());
    sl_train_loop loop = {.trainer = trainer, .params = &params};
    ck_assert_msg(sl_train_loop_run(&loop) == SL_OK, "%s", sl_last_error());
    const sl_feature *feature = &trainer->features->features[2];
    const float *table = trainer->weights.embeddings[feature->tensor];
    size_t counts[51] = {0}, unused = 0;
    for (size_t i = 0; i < trainer->data.train_count; i++)
        counts[trainer->data.rows.ids[trainer->data.train[i] * trainer->features->id_count + feature->at]]++;
    for (size_t d = 0; d < feature->dim; d++) {
        double mean = 0;
        for (size_t id = 0; id <= 50; id++)
            mean += (double)counts[id] * (double)table[id * feature->dim + d] / (double)trainer->data.train_count;
        for (size_t id = 1; id <= 50; id++) {
            if (counts[id]) continue;
            unused++;
            ck_assert_double_eq_tol((double)table[id * feature->dim + d], mean, 1e-6);
        }
        /* No row lacks a value either, but steps trained the missing value. */
        ck_assert_uint_eq(counts[0], 0);
        ck_assert(fabs((double)table[d] - mean) > 1e-6);
    }
    ck_assert_uint_gt(unused, 30 * feature->dim);
    sl_trainer_free(trainer);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("forgetting");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, a_share_is_forgotten);
    tcase_add_test(all, seed_and_step_decide);
    tcase_add_test(all, nothing_is_forgotten_at_0);
    tcase_add_test(all, rows_of_a_higher_rank_have_later_places);
    tcase_add_loop_test(all, what_is_unknown_is_scored_as_usual, 0, 2);
    tcase_add_test(all, unused_embeddings_are_the_mean);
    return check_main("forget", &all, 1);
}
