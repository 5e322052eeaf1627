/* A killed training resumes to the same bits, and refuses another training's checkpoint. The link wraps a step of the
 * wide part, so that the step can end the process. */
#define _GNU_SOURCE
#include "base/random.h"
#include "ranker/train/train_state.h"
#include "tests/support/check_main.h"
#include "tests/support/hostile.h"
#include "tests/support/planted.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLICK "\"column\": \"click\""
#define ADAM  "\"hidden\": [8, 6], \"optimizer\": \"adam\", \"dropout\": 0.2"
#define GRAD  "\"hidden\": [8]"
#define TRAIN "\"epochs\": 3, \"batch\": 50, \"validation\": 0.2"

static planted rows, other_rows;
static scratch place;
static size_t kill_at, steps;
static sl_train_precision precision;

void __real_sl_wide_apply(sl_sparse_trainer *trainer, float *wide, float *bias, double rate);
void __wrap_sl_wide_apply(sl_sparse_trainer *trainer, float *wide, float *bias, double rate);

void __wrap_sl_wide_apply(sl_sparse_trainer *trainer, float *wide, float *bias, double rate) {
    if (++steps == kill_at) raise(SIGKILL);
    __real_sl_wide_apply(trainer, wide, bias, rate);
}

static void set_up(void) {
    planted_make(&rows, 300, 1);
    planted_make(&other_rows, 300, 2);
    scratch_open(&place);
    precision = SL_TRAIN_DEFAULT;
}

static void tear_down(void) {
    planted_free(&rows);
    planted_free(&other_rows);
    scratch_close(&place);
}

/* The results of a training. */
typedef struct outcome {
    sl_ranker *ranker;
    sl_train_report report;
} outcome;

static sl_train_params checkpointed(size_t every, int resume) {
    sl_train_params params;
    sl_train_params_init(&params);
    params.threads = 1;
    params.checkpoint = place.path;
    params.checkpoint_steps = every;
    params.resume = resume;
    params.precision = precision;
    return params;
}

static outcome train(const char *spec, const sl_train_params *params) {
    outcome o = {.report = {.struct_size = sizeof o.report}};
    sl_status status = sl_ranker_train(spec, &rows.source, NULL, params, &o.ranker, &o.report);
    ck_assert_msg(status == SL_OK, "%s: %s", sl_status_name(status), sl_last_error());
    return o;
}

/* Two NaNs are the same. */
static int same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void expect_same(const outcome *a, const outcome *b) {
    ck_assert_uint_eq(a->report.epochs, b->report.epochs);
    ck_assert_uint_eq(a->report.best_epoch, b->report.best_epoch);
    ck_assert(same(a->report.train_loss, b->report.train_loss));
    ck_assert(same(a->report.valid_loss, b->report.valid_loss));
    ck_assert(same(a->report.valid_auc, b->report.valid_auc));
    for (size_t i = 0; i < sl_ranker_tensor_count(a->ranker); i++) {
        sl_tensor one, other;
        ck_assert_int_eq(sl_ranker_get_tensor(a->ranker, i, &one), SL_OK);
        ck_assert_int_eq(sl_ranker_get_tensor(b->ranker, i, &other), SL_OK);
        ck_assert_mem_eq(one.data, other.data, one.rows * one.columns * sizeof(float));
    }
}

/* Runs a training in a child and kills it at a step, or after some microseconds. Returns whether it was killed. */
static int killed_training(const char *spec, size_t every, size_t at_step, useconds_t after) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        sl_train_params params = checkpointed(every, 1);
        sl_ranker *ranker;
        kill_at = at_step;
        steps = 0;
        _exit(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL) != SL_OK);
    }
    if (after) {
        usleep(after);
        kill(child, SIGKILL);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* Kills at steps `stride` apart. */
static void check_steps(const char *label, const char *wide, const char *deep, const char *how, size_t stride) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, label, wide, deep, how, "");
    sl_train_params plain = checkpointed(0, 0);
    plain.checkpoint = NULL;
    steps = 0;
    outcome whole = train(spec, &plain);
    size_t all = steps;
    ck_assert_uint_ge(all, 10);
    for (size_t every = 0; every <= 2; every++)
        for (size_t at = 1; at <= all; at += stride + every) {
            ck_assert(killed_training(spec, every, at, 0));
            sl_train_params params = checkpointed(every, 1);
            steps = 0;
            outcome rest = train(spec, &params);
            /* The training resumed from the last checkpoint, not from the beginning. */
            if (every == 1) ck_assert_uint_eq(steps, all - at + 1);
            expect_same(&whole, &rest);
            sl_ranker_free(rest.ranker);
            ck_assert_int_eq(unlink(place.path), 0);
        }
    sl_ranker_free(whole.ranker);
}

START_TEST(killed_at_every_step_it_goes_on_to_the_same_bits) {
    check_steps(CLICK, "", ADAM, TRAIN, 1);
    check_steps("\"column\": \"kind\", \"loss\": \"multiclass\"", "", GRAD, TRAIN ", \"schedule\": \"cosine\"", 4);
    check_steps("\"column\": \"value\", \"loss\": \"squared\"", "\"l1\": 0.01", NULL, TRAIN, 5);
    check_steps(CLICK, NULL, GRAD, "\"epochs\": 3, \"batch\": 50, \"validation\": 0", 5);
    precision = SL_TRAIN_BF16;
    check_steps(CLICK, "", ADAM, TRAIN, 4);
    precision = SL_TRAIN_FP16;
    check_steps(CLICK, "", ADAM, TRAIN, 4);
}
END_TEST

START_TEST(killed_whenever_it_goes_on_to_the_same_bits) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, "", ADAM, "\"epochs\": 12, \"batch\": 50, \"patience\": 0", "");
    sl_train_params params = checkpointed(2, 1);
    outcome whole = train(spec, &params);
    ck_assert_int_eq(unlink(place.path), 0);
    for (size_t round = 0; round < 3; round++) {
        /* Kills it again and again, until one gets through. */
        for (size_t i = 0; i < 4; i++)
            (void)killed_training(spec, 2, 0, 1000 + (useconds_t)(sl_random_at(round, i) % 60000));
        outcome rest = train(spec, &params);
        expect_same(&whole, &rest);
        sl_ranker_free(rest.ranker);
        ck_assert_int_eq(unlink(place.path), 0);
    }
    sl_ranker_free(whole.ranker);
}
END_TEST

typedef struct patience {
    size_t calls, last;
} patience;

static int cancel_late(void *ctx, uint64_t done, uint64_t total) {
    patience *p = ctx;
    (void)done, (void)total;
    return ++p->calls >= p->last;
}

START_TEST(cancelled_it_goes_on_to_the_same_bits) {
    char spec[PLANTED_SPEC];
    /* Long enough for several calls of progress. */
    planted_spec(spec, CLICK, "", ADAM, "\"epochs\": 500, \"batch\": 10, \"patience\": 0", "");
    sl_train_params params = checkpointed(0, 1);
    outcome whole = train(spec, &params);
    ck_assert_int_eq(unlink(place.path), 0);
    for (size_t last = 1; last <= 3; last++) {
        patience p = {0, last};
        sl_train_params cancelled = params;
        cancelled.progress = cancel_late;
        cancelled.progress_ctx = &p;
        sl_ranker *none;
        sl_status status = sl_ranker_train(spec, &rows.source, NULL, &cancelled, &none, NULL);
        ck_assert_int_eq(status, SL_ECANCELED);
        ck_assert_ptr_null(none);
        outcome rest = train(spec, &params);
        expect_same(&whole, &rest);
        sl_ranker_free(rest.ranker);
        ck_assert_int_eq(unlink(place.path), 0);
    }
    sl_ranker_free(whole.ranker);
}
END_TEST

/* A finished training, stopped early or not, does not train on. With more epochs it does. */
START_TEST(a_finished_training_is_only_opened) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, "", ADAM, TRAIN, "");
    sl_train_params params = checkpointed(0, 1);
    outcome whole = train(spec, &params);
    steps = 0;
    outcome again = train(spec, &params);
    ck_assert_uint_eq(steps, 0);
    ck_assert_uint_eq(again.report.epochs, 3);
    expect_same(&whole, &again);
    params.epochs = 4;
    outcome longer = train(spec, &params);
    ck_assert_uint_eq(longer.report.epochs, 4);
    ck_assert_uint_gt(steps, 0);
    /* Without resume it begins again, and the file is the new training's. */
    params = checkpointed(0, 0);
    steps = 0;
    outcome anew = train(spec, &params);
    ck_assert_uint_eq(steps, 15);
    expect_same(&whole, &anew);
    sl_ranker_free(whole.ranker);
    sl_ranker_free(again.ranker);
    sl_ranker_free(longer.ranker);
    sl_ranker_free(anew.ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Checkpoints that are not this training's
 * ------------------------------------------------------------------------------------------------------------- */

static void refuse(const char *spec, const planted *on, uint64_t seed, sl_status wanted, const char *says) {
    sl_train_params params = checkpointed(0, 1);
    sl_ranker *ranker;
    params.seed = seed;
    size_t size, after;
    unsigned char *bytes = file_read(place.path, &size);
    sl_status status = sl_ranker_train(spec, &on->source, NULL, &params, &ranker, NULL);
    ck_assert_msg(status == wanted, "%s: %s", sl_status_name(status), sl_last_error());
    ck_assert_ptr_null(ranker);
    ck_assert_msg(strstr(sl_last_error(), says) && strstr(sl_last_error(), place.path), "%s", sl_last_error());
    unsigned char *kept = file_read(place.path, &after);
    ck_assert_uint_eq(size, after);
    ck_assert_mem_eq(bytes, kept, size);
    free(bytes);
    free(kept);
}

START_TEST(other_trainings_are_refused) {
    char spec[PLANTED_SPEC], other[PLANTED_SPEC];
    planted_spec(spec, CLICK, "", ADAM, TRAIN, "");
    sl_train_params params = checkpointed(0, 0);
    outcome whole = train(spec, &params);
    planted_spec(other, CLICK, "", ADAM ", \"rate\": 0.002", TRAIN, "");
    refuse(other, &rows, 0, SL_EFORMAT, "another spec");
    planted_spec(other, CLICK, "", GRAD, TRAIN, "");
    refuse(other, &rows, 0, SL_EFORMAT, "another spec");
    refuse(spec, &rows, 77, SL_EFORMAT, "another seed");
    refuse(spec, &other_rows, 0, SL_EFORMAT, "other rows");
    /* Changes one label of one row. */
    rows.click[17] = 1 - rows.click[17];
    refuse(spec, &rows, 0, SL_EFORMAT, "other rows");
    rows.click[17] = 1 - rows.click[17];
    /* A model is not a checkpoint. Neither is an index, a text or an empty file. */
    ck_assert_int_eq(sl_ranker_save(whole.ranker, place.path, NULL), SL_OK);
    refuse(spec, &rows, 0, SL_EFORMAT, "finished model");
    file_write(place.path, "some text that is no model", 26);
    refuse(spec, &rows, 0, SL_EFORMAT, "not a Shortlist");
    sl_ranker_free(whole.ranker);
}
END_TEST

/* Precision and loss scale come from the checkpoint unless params give others. */
START_TEST(the_precision_is_kept) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, "", ADAM, TRAIN, "");
    const sl_train_precision kept[] = {SL_TRAIN_F32, SL_TRAIN_BF16, SL_TRAIN_FP16, SL_TRAIN_FP16};
    const double scales[] = {0, 0, 0, 16};
    const sl_train_precision unset[] = {SL_TRAIN_DEFAULT, SL_TRAIN_AUTO};
    for (size_t k = 0; k < 4; k++) {
        sl_train_params params = checkpointed(0, 0);
        params.precision = kept[k];
        params.loss_scale = scales[k];
        outcome whole = train(spec, &params);
        params.epochs = 1;
        outcome part = train(spec, &params);
        sl_ranker_free(part.ranker);
        size_t size;
        unsigned char *bytes = file_read(place.path, &size);
        for (size_t u = 0; u < 2; u++) {
            sl_train_params rest = checkpointed(0, 1);
            rest.precision = unset[u];
            outcome resumed = train(spec, &rest);
            ck_assert_int_eq(resumed.report.precision, kept[k]);
            ck_assert_double_eq(resumed.report.loss_scale, whole.report.loss_scale);
            expect_same(&whole, &resumed);
            sl_ranker_free(resumed.ranker);
            file_write(place.path, bytes, size);
        }
        for (size_t other = 0; other < 4; other++) {
            sl_train_params asked = checkpointed(0, 1);
            sl_ranker *ranker;
            asked.precision = kept[other];
            asked.loss_scale = scales[other];
            sl_status status = sl_ranker_train(spec, &rows.source, NULL, &asked, &ranker, NULL);
            ck_assert_int_eq(status, other == k ? SL_OK : SL_EFORMAT);
            if (other != k)
                ck_assert_ptr_nonnull(
                    strstr(sl_last_error(), kept[other] == kept[k] ? "loss scale" : sl_train_precision_name(kept[k])));
            sl_ranker_free(ranker);
            file_write(place.path, bytes, size);
        }
        free(bytes);
        sl_ranker_free(whole.ranker);
    }
}
END_TEST

START_TEST(damaged_checkpoints_are_refused) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, "", ADAM, TRAIN, "");
    sl_train_params params = checkpointed(0, 0);
    outcome whole = train(spec, &params);
    size_t size;
    unsigned char *bytes = file_read(place.path, &size);
    sl_ranker *ranker;
    params.resume = 1;
    for (size_t cut = 0; cut < size; cut += size / 40 + 1) {
        file_write(place.path, bytes, cut);
        sl_status status = sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL);
        ck_assert_int_eq(status, cut < 8 ? status : SL_ECORRUPT);
        ck_assert_int_ne(status, SL_OK);
    }
    /* The last section is the training's state. */
    for (size_t i = 0; i < 20; i++) {
        unsigned char *at = &bytes[size - 100 - i * 97];
        *at ^= 0x10;
        file_write(place.path, bytes, size);
        ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL), SL_ECORRUPT);
        *at ^= 0x10;
    }
    free(bytes);
    sl_ranker_free(whole.ranker);
}
END_TEST

/* A check finds a change of any byte. With correct checksums, it checks the numbers. */
START_TEST(checkpoints_are_checked) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, "", ADAM, TRAIN, "");
    sl_train_params params = checkpointed(0, 0);
    outcome whole = train(spec, &params);
    sl_ranker_check_report report = {.struct_size = sizeof report};
    size_t size;
    unsigned char *bytes = file_read(place.path, &size);
    sl_file_header header;
    memcpy(&header, bytes, sizeof header);
    ck_assert_int_eq(sl_ranker_check(place.path, NULL, &report), SL_OK);
    ck_assert_int_eq(report.checkpoint, 1);
    ck_assert_uint_eq(report.bytes_checked, size);
    for (uint64_t i = 0; i < 300; i++) {
        size_t at = (size_t)(sl_random_at(5, i) % size);
        unsigned char changed = (unsigned char)(bytes[at] ^ 1u << sl_random_at(6, i) % 8);
        file_patch(place.path, at, &changed, 1);
        sl_status status = sl_ranker_check(place.path, NULL, &report);
        ck_assert_msg(status == SL_ECORRUPT || (at < 12 && status != SL_OK), "byte %zu: %s", at, sl_last_error());
        file_patch(place.path, at, &bytes[at], 1);
    }
    const sl_file_section *section = &header.sections[header.section_count - 1];
    ck_assert_uint_eq(section->kind, SL_SECTION_TRAINER);
    /* The best epoch is after the last one; fewer weights; a NaN in a state. */
    const uint64_t large = 1000, none = 0, nan = 0x7fc00000;
    /* An unknown precision; fp16 without a loss scale; a loss scale of f32; skipped steps of f32. */
    const uint64_t unknown = 3, fp16 = 2, one = 0x3ff0000000000000;
    const struct {
        size_t at;
        const uint64_t *value;
        size_t width;
    } lies[] = {{32, &large, 8},  {80, &none, 8},     {88, &none, 8},  {96, &none, 8},
                {132, &nan, 4},   {104, &unknown, 1}, {104, &fp16, 1}, {105, &large, 1},
                {106, &large, 2}, {112, &one, 8},     {120, &large, 8}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        unsigned char *changed = file_read(place.path, &size);
        memcpy(changed + section->offset + lies[i].at, lies[i].value, lies[i].width);
        hostile_seal_as(changed, size, &sl_ranker_file);
        file_write(place.path, changed, size);
        ck_assert_int_eq(sl_ranker_check(place.path, NULL, &report), SL_ECORRUPT);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "state of the training"));
        file_write(place.path, bytes, size);
        free(changed);
    }
    free(bytes);
    sl_ranker_free(whole.ranker);
}
END_TEST

START_TEST(a_checkpoint_is_a_model) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, "", GRAD ", \"rate\": 0.3", "\"epochs\": 6, \"batch\": 50, \"patience\": 0", "");
    sl_train_params params = checkpointed(0, 0);
    outcome whole = train(spec, &params);
    outcome opened = {.report = whole.report};
    ck_assert_int_eq(sl_ranker_open(place.path, NULL, &opened.ranker), SL_OK);
    expect_same(&whole, &opened);
    sl_ranker_free(whole.ranker);
    sl_ranker_free(opened.ranker);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_told_at_once) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, "", GRAD, TRAIN, "");
    sl_train_params params = checkpointed(0, 0);
    params.checkpoint = place.folder;
    sl_ranker *ranker;
    steps = 0;
    ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL), SL_EIO);
    ck_assert_uint_eq(steps, 0);
}
END_TEST

int main(void) {
    if (!sl_net_has_onednn()) {
        puts("skipped: this build has no oneDNN, which trains the deep part");
        return 77;
    }
    TCase *all = tcase_create("resume");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, killed_at_every_step_it_goes_on_to_the_same_bits);
    tcase_add_test(all, killed_whenever_it_goes_on_to_the_same_bits);
    tcase_add_test(all, cancelled_it_goes_on_to_the_same_bits);
    tcase_add_test(all, a_finished_training_is_only_opened);
    tcase_add_test(all, other_trainings_are_refused);
    tcase_add_test(all, the_precision_is_kept);
    tcase_add_test(all, damaged_checkpoints_are_refused);
    tcase_add_test(all, checkpoints_are_checked);
    tcase_add_test(all, a_checkpoint_is_a_model);
    tcase_add_test(all, a_file_that_cannot_be_written_is_told_at_once);
    return check_main("resume", &all, 1);
}
