/* Training of dense layers: gradients against finite differences in double arithmetic, dropout, threads, faults. */
#include "base/memory.h"
#include "base/random.h"
#include "ranker/net/net.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/net_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const sl_net_shape shapes[] = {{3, {7, 9, 5, 1}, SL_RELU}, {3, {7, 9, 5, 3}, SL_GELU},
                                      {3, {7, 9, 5, 2}, SL_TANH}, {3, {7, 9, 5, 2}, SL_LINEAR},
                                      {1, {11, 3}, SL_RELU},      {9, {4, 5, 6, 5, 4, 6, 5, 4, 3, 1}, SL_TANH},
                                      {2, {1, 1, 1}, SL_TANH}};
enum { SHAPES = sizeof shapes / sizeof *shapes };
/* Enough work for a second thread. */
static const sl_net_shape large = {3, {200, 300, 130, 2}, SL_RELU};

typedef struct fixture {
    sl_allocator allocator;
    sl_net_shape shape;
    size_t rows, in, outputs, size;
    float *weights, *inputs, *logits, *output_gradient, *gradient;
    sl_net_trainer *trainer;
} fixture;

static void make_fixture(fixture *f, const sl_net_shape *shape, size_t rows, size_t threads, double dropout) {
    *f = (fixture){.allocator = sl_allocator_of(NULL), .shape = *shape, .rows = rows};
    f->in = shape->width[0];
    f->outputs = shape->width[shape->layers];
    f->size = sl_net_size(shape);
    f->weights = reference_weights(shape, 5);
    f->inputs = reference_numbers(rows * f->in, 1, 6);
    f->output_gradient = reference_numbers(rows * f->outputs, 1, 7);
    f->logits = malloc(rows * f->outputs * sizeof(float));
    f->gradient = malloc(f->size * sizeof(float));
    for (size_t i = 0; i < f->size; i++)
        f->gradient[i] = NAN;
    ck_ok(sl_net_trainer_create(shape, rows, threads, dropout, &f->allocator, &f->trainer));
}

static void free_fixture(fixture *f) {
    sl_net_trainer_free(f->trainer);
    free(f->weights);
    free(f->inputs);
    free(f->output_gradient);
    free(f->logits);
    free(f->gradient);
}

static sl_status forward(fixture *f, uint64_t seed, uint64_t step) {
    memcpy(sl_net_trainer_input(f->trainer), f->inputs, f->rows * f->in * sizeof(float));
    return sl_net_trainer_forward(f->trainer, f->weights, f->rows, seed, step, f->logits);
}

static sl_status forward_backward(fixture *f, uint64_t seed, uint64_t step) {
    sl_status status = forward(f, seed, step);
    if (status != SL_OK) return status;
    return sl_net_trainer_backward(f->trainer, f->weights, f->output_gradient, f->gradient);
}

/* Returns a loss whose gradient by the logits is output_gradient, in double arithmetic. */
static double loss_of(const fixture *f, const double *weights, const double *inputs) {
    double out[8], loss = 0;
    for (size_t r = 0; r < f->rows; r++) {
        reference_forward(&f->shape, weights, inputs + r * f->in, out);
        for (size_t o = 0; o < f->outputs; o++)
            loss += out[o] * (double)f->output_gradient[r * f->outputs + o];
    }
    return loss;
}

static double slope_at(const fixture *f, double *number, const double *weights, const double *inputs) {
    const double h = 1e-5;
    double at = *number;
    *number = at + h;
    double up = loss_of(f, weights, inputs);
    *number = at - h;
    double down = loss_of(f, weights, inputs);
    *number = at;
    return (up - down) / (2 * h);
}

START_TEST(gradients_are_slopes) {
    for (size_t rows = 1; rows <= 21; rows += 4) {
        fixture f;
        make_fixture(&f, &shapes[_i], rows, 1, 0);
        double *weights = reference_doubles(f.weights, f.size), *inputs = reference_doubles(f.inputs, rows * f.in);
        ck_ok(forward_backward(&f, 1, 1));
        double expected[8];
        for (size_t r = 0; r < rows; r++) {
            reference_forward(&f.shape, weights, inputs + r * f.in, expected);
            for (size_t o = 0; o < f.outputs; o++)
                ck_assert_double_eq_tol((double)f.logits[r * f.outputs + o], expected[o], 1e-5);
        }
        for (size_t i = 0; i < f.size; i++)
            ck_assert_double_eq_tol((double)f.gradient[i], slope_at(&f, &weights[i], weights, inputs), 3e-5);
        const float *by_inputs = sl_net_trainer_input_gradient(f.trainer);
        for (size_t i = 0; i < rows * f.in; i++)
            ck_assert_double_eq_tol((double)by_inputs[i], slope_at(&f, &inputs[i], weights, inputs), 3e-5);
        free(weights);
        free(inputs);
        free_fixture(&f);
    }
}
END_TEST

/* A trainer for many rows is used for fewer, then for more again. */
START_TEST(batches_of_any_size) {
    fixture f, small;
    make_fixture(&f, &shapes[0], 64, 1, 0);
    ck_ok(forward_backward(&f, 0, 0));
    make_fixture(&small, &shapes[0], 17, 1, 0);
    ck_ok(forward_backward(&small, 0, 0));
    f.rows = 17;
    memcpy(f.inputs, small.inputs, 17 * f.in * sizeof(float));
    memcpy(f.output_gradient, small.output_gradient, 17 * f.outputs * sizeof(float));
    ck_ok(forward_backward(&f, 0, 0));
    ck_assert_mem_eq(f.gradient, small.gradient, f.size * sizeof(float));
    f.rows = 0;
    ck_ok(forward_backward(&f, 0, 0));
    for (size_t i = 0; i < f.size; i++)
        ck_assert(f.gradient[i] == 0);
    f.rows = 65;
    ck_assert_int_eq(sl_net_trainer_forward(f.trainer, f.weights, 65, 0, 0, f.logits), SL_EINVAL);
    free_fixture(&f);
    free_fixture(&small);
}
END_TEST

/* A large batch has the sums of its parts. */
START_TEST(large_batches_are_sums) {
    enum { ROWS = 1301, PART = 301 };
    fixture whole, part;
    make_fixture(&whole, &shapes[_i], ROWS, 1, 0);
    make_fixture(&part, &shapes[_i], 500, 1, 0);
    double *sums = calloc(whole.size, sizeof *sums);
    ck_ok(forward_backward(&whole, 0, 0));
    for (size_t first = 0; first < ROWS; first += part.rows) {
        part.rows = first ? 500 : PART;
        memcpy(part.inputs, whole.inputs + first * part.in, part.rows * part.in * sizeof(float));
        memcpy(part.output_gradient, whole.output_gradient + first * part.outputs,
               part.rows * part.outputs * sizeof(float));
        ck_ok(forward_backward(&part, 0, 0));
        for (size_t i = 0; i < part.size; i++)
            sums[i] += (double)part.gradient[i];
        for (size_t i = 0; i < part.rows * part.outputs; i++)
            ck_assert_float_eq_tol(part.logits[i], whole.logits[first * part.outputs + i], 1e-5f);
        for (size_t i = 0; i < part.rows * part.in; i++)
            ck_assert_float_eq_tol(sl_net_trainer_input_gradient(part.trainer)[i],
                                   sl_net_trainer_input_gradient(whole.trainer)[first * part.in + i], 1e-5f);
    }
    for (size_t i = 0; i < whole.size; i++)
        ck_assert_double_eq_tol((double)whole.gradient[i], sums[i], 5e-4);
    free(sums);
    free_fixture(&whole);
    free_fixture(&part);
}
END_TEST

START_TEST(threads_change_rounding_alone) {
    double dropout = _i & 1 ? 0.25 : 0;
    sl_net_shape shape = large;
    shape.activation = _i & 2 ? SL_GELU : SL_RELU;
    fixture one, two;
    make_fixture(&one, &shape, 403, 1, dropout);
    make_fixture(&two, &shape, 403, 2, dropout);
    ck_ok(forward_backward(&one, 9, 4));
    ck_ok(forward_backward(&two, 9, 4));
    for (size_t i = 0; i < one.size; i++)
        ck_assert_float_eq_tol(one.gradient[i], two.gradient[i], 2e-4f);
    for (size_t i = 0; i < one.rows * one.outputs; i++)
        ck_assert_float_eq_tol(one.logits[i], two.logits[i], 1e-4f);
    float *first = malloc(two.size * sizeof *first);
    memcpy(first, two.gradient, two.size * sizeof *first);
    for (size_t again = 0; again < 5; again++) {
        ck_ok(forward_backward(&two, 9, 4));
        ck_assert_mem_eq(first, two.gradient, two.size * sizeof *first);
    }
    free(first);
    free_fixture(&one);
    free_fixture(&two);
}
END_TEST

static double share_different(const fixture *a, const float *logits) {
    size_t different = 0;
    for (size_t i = 0; i < a->rows * a->outputs; i++)
        different += a->logits[i] != logits[i];
    return (double)different / (double)(a->rows * a->outputs);
}

START_TEST(dropout_is_by_seed_and_step) {
    fixture f;
    make_fixture(&f, &large, 100, 1, 0.3);
    size_t size = f.rows * f.outputs * sizeof(float);
    float *first = malloc(size);
    ck_ok(forward(&f, 3, 8));
    memcpy(first, f.logits, size);
    ck_ok(forward(&f, 3, 8));
    ck_assert_mem_eq(first, f.logits, size);
    ck_ok(forward(&f, 3, 9));
    ck_assert_double_gt(share_different(&f, first), 0.9);
    ck_ok(forward(&f, 4, 8));
    ck_assert_double_gt(share_different(&f, first), 0.9);
    /* Seed 0 turns dropout off. */
    fixture none;
    make_fixture(&none, &large, 100, 1, 0);
    ck_ok(forward(&none, 3, 8));
    ck_ok(forward(&f, 0, 8));
    ck_assert_mem_eq(none.logits, f.logits, size);
    free(first);
    free_fixture(&f);
    free_fixture(&none);
}
END_TEST

/* Over many steps, a linear net's mean logits are those without dropout. */
START_TEST(dropout_keeps_the_mean) {
    enum { STEPS = 4000 };
    fixture f, none;
    make_fixture(&f, &shapes[3], 3, 1, 0.4);
    make_fixture(&none, &shapes[3], 3, 1, 0);
    ck_ok(forward(&none, 1, 1));
    double mean[6] = {0}, square[6] = {0};
    for (uint64_t step = 0; step < STEPS; step++) {
        ck_ok(forward(&f, 1, step));
        for (size_t i = 0; i < 6; i++) {
            mean[i] += (double)f.logits[i] / STEPS;
            square[i] += (double)f.logits[i] * (double)f.logits[i] / STEPS;
        }
    }
    for (size_t i = 0; i < 6; i++) {
        double variance = square[i] - mean[i] * mean[i];
        ck_assert_double_gt(variance, 1e-3);
        ck_assert_double_eq_tol(mean[i], (double)none.logits[i], 5 * sqrt(variance / STEPS));
    }
    free_fixture(&f);
    free_fixture(&none);
}
END_TEST

/* Differentiates the net's own forward with the same seed and step. The test above covers ReLU's corners. */
START_TEST(dropout_has_its_gradient) {
    const float h = 0.01f;
    fixture f;
    make_fixture(&f, &shapes[1 + _i], 13, 1, 0.4);
    ck_ok(forward_backward(&f, 2, 6));
    float *gradient = malloc(f.size * sizeof *gradient);
    memcpy(gradient, f.gradient, f.size * sizeof *gradient);
    size_t zero = 0;
    for (size_t i = 0; i < f.size; i++) {
        double loss[2] = {0};
        float at = f.weights[i];
        for (size_t side = 0; side < 2; side++) {
            f.weights[i] = side ? at + h : at - h;
            ck_ok(forward(&f, 2, 6));
            for (size_t j = 0; j < f.rows * f.outputs; j++)
                loss[side] += (double)(f.logits[j] * f.output_gradient[j]);
        }
        f.weights[i] = at;
        ck_assert_double_eq_tol((double)gradient[i], (loss[1] - loss[0]) / (2 * (double)h), 2e-3);
        zero += gradient[i] == 0;
    }
    ck_assert_uint_lt(zero, f.size / 2);
    free(gradient);
    free_fixture(&f);
}
END_TEST

START_TEST(nan_is_not_hidden) {
    fixture f;
    make_fixture(&f, &shapes[_i], 20, 1, 0);
    f.weights[0] = NAN;
    ck_ok(forward_backward(&f, 1, 1));
    ck_assert(isnan(f.logits[0]));
    free_fixture(&f);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Operands of 16 bits
 * ------------------------------------------------------------------------------------------------------------- */

/* BF16 and F16 in turn, and each one's unit of the last place. */
static sl_dtype type_of(int i) {
    return i % 2 ? SL_F16 : SL_BF16;
}

static double unit_of(sl_dtype type) {
    return type == SL_F16 ? 0x1p-11 : 0x1p-8;
}

static double norm(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += pow((double)a[i] - (b ? (double)b[i] : 0), 2);
    return sqrt(sum);
}

/* Gradients are within some units of the last place of F32's, and not equal to them. */
START_TEST(operands_of_16_bits) {
    sl_dtype type = type_of(_i);
    sl_net_shape shape = large;
    shape.activation = (sl_activation)(_i / 2);
    double dropout = shape.activation == SL_GELU ? 0.2 : 0;
    fixture exact, rounded;
    make_fixture(&exact, &shape, 101, 1, dropout);
    make_fixture(&rounded, &shape, 101, 1, dropout);
    ck_ok(sl_net_trainer_set_type(rounded.trainer, type));
    ck_assert_int_eq(sl_net_trainer_emulates(rounded.trainer), !sl_net_multiplies(type));
    ck_ok(forward_backward(&exact, 9, 4));
    ck_ok(forward_backward(&rounded, 9, 4));
    size_t inputs = exact.rows * exact.in, outputs = exact.rows * exact.outputs;
    const float *by_inputs[] = {sl_net_trainer_input_gradient(exact.trainer),
                                sl_net_trainer_input_gradient(rounded.trainer)};
    double far[] = {norm(exact.logits, rounded.logits, outputs) / norm(exact.logits, NULL, outputs),
                    norm(exact.gradient, rounded.gradient, exact.size) / norm(exact.gradient, NULL, exact.size),
                    norm(by_inputs[0], by_inputs[1], inputs) / norm(by_inputs[0], NULL, inputs)};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_double_gt(far[i], 0.01 * unit_of(type));
        ck_assert_double_lt(far[i], 32 * unit_of(type));
    }
    free_fixture(&exact);
    free_fixture(&rounded);
}
END_TEST

/* Numbers that 16 bits hold are not rounded, so the products are F32's, except for the order of sums. */
START_TEST(whole_numbers_stay_exact) {
    const sl_net_shape shape = {2, {6, 5, 2}, SL_LINEAR};
    fixture exact, rounded;
    make_fixture(&exact, &shape, 9, 1, 0);
    make_fixture(&rounded, &shape, 9, 1, 0);
    ck_ok(sl_net_trainer_set_type(rounded.trainer, type_of(_i)));
    fixture *both[] = {&exact, &rounded};
    for (size_t b = 0; b < 2; b++) {
        for (size_t i = 0; i < exact.size; i++)
            both[b]->weights[i] = (float)((int)(i * 7 % 5) - 2);
        for (size_t i = 0; i < exact.rows * exact.in; i++)
            both[b]->inputs[i] = (float)((int)(i * 5 % 3) - 1);
        for (size_t i = 0; i < exact.rows * exact.outputs; i++)
            both[b]->output_gradient[i] = (float)((int)(i * 3 % 5) - 2) * 0.25f;
        ck_ok(forward_backward(both[b], 0, 0));
    }
    ck_assert_mem_eq(exact.logits, rounded.logits, exact.rows * exact.outputs * sizeof(float));
    ck_assert_mem_eq(exact.gradient, rounded.gradient, exact.size * sizeof(float));
    ck_assert_mem_eq(sl_net_trainer_input_gradient(exact.trainer), sl_net_trainer_input_gradient(rounded.trainer),
                     exact.rows * exact.in * sizeof(float));
    free_fixture(&exact);
    free_fixture(&rounded);
}
END_TEST

/* Validation evaluates the model as served, whatever the steps' type. Back in F32, the bits are the same as before. */
START_TEST(evaluation_is_f32) {
    fixture exact, rounded;
    make_fixture(&exact, &large, 37, 1, 0.5);
    make_fixture(&rounded, &large, 37, 1, 0.5);
    ck_ok(sl_net_trainer_set_type(rounded.trainer, type_of(_i)));
    size_t bytes = exact.rows * exact.outputs * sizeof(float);
    ck_ok(forward(&exact, 0, 0));
    ck_ok(forward(&rounded, 3, 1));
    memcpy(sl_net_trainer_input(rounded.trainer), rounded.inputs, rounded.rows * rounded.in * sizeof(float));
    ck_ok(sl_net_trainer_evaluate(rounded.trainer, rounded.weights, rounded.rows, rounded.logits));
    ck_assert_mem_eq(exact.logits, rounded.logits, bytes);
    ck_assert_int_eq(sl_net_trainer_evaluate(rounded.trainer, rounded.weights, 38, rounded.logits), SL_EINVAL);
    ck_ok(sl_net_trainer_set_type(rounded.trainer, SL_F32));
    ck_assert_int_eq(sl_net_trainer_emulates(rounded.trainer), 0);
    ck_ok(forward_backward(&exact, 3, 1));
    ck_ok(forward_backward(&rounded, 3, 1));
    ck_assert_mem_eq(exact.gradient, rounded.gradient, exact.size * sizeof(float));
    free_fixture(&exact);
    free_fixture(&rounded);
}
END_TEST

START_TEST(threads_round_the_same) {
    fixture one, two;
    make_fixture(&one, &large, 403, 1, 0.25);
    make_fixture(&two, &large, 403, 2, 0.25);
    ck_ok(sl_net_trainer_set_type(one.trainer, type_of(_i)));
    ck_ok(sl_net_trainer_set_type(two.trainer, type_of(_i)));
    ck_ok(forward_backward(&one, 9, 4));
    ck_ok(forward_backward(&two, 9, 4));
    ck_assert_double_lt(norm(one.gradient, two.gradient, one.size), 0.01 * norm(one.gradient, NULL, one.size));
    float *first = malloc(two.size * sizeof *first);
    memcpy(first, two.gradient, two.size * sizeof *first);
    for (size_t again = 0; again < 3; again++) {
        ck_ok(forward_backward(&two, 9, 4));
        ck_assert_mem_eq(first, two.gradient, two.size * sizeof *first);
    }
    free(first);
    free_fixture(&one);
    free_fixture(&two);
}
END_TEST

/* unscale finds a gradient that overflows F16, in whichever layer. */
START_TEST(overflow_is_found) {
    fixture f;
    make_fixture(&f, &shapes[2], 5, 1, 0);
    ck_ok(sl_net_trainer_set_type(f.trainer, SL_F16));
    ck_ok(forward_backward(&f, 0, 0));
    float *before = malloc(f.size * sizeof *before);
    memcpy(before, f.gradient, f.size * sizeof *before);
    ck_assert_int_ne(sl_net_trainer_unscale(f.trainer, f.gradient, 0.5f), 0);
    for (size_t i = 0; i < f.size; i++)
        ck_assert(f.gradient[i] == 0.5f * before[i]);
    for (size_t i = 0; i < f.rows * f.outputs; i++)
        f.output_gradient[i] *= 1e5f;
    ck_ok(forward_backward(&f, 0, 0));
    ck_assert_int_eq(sl_net_trainer_unscale(f.trainer, f.gradient, 0.5f), 0);
    free(before);
    free_fixture(&f);
}
END_TEST

START_TEST(nan_is_not_hidden_by_16_bits) {
    fixture f;
    make_fixture(&f, &shapes[_i / 2], 20, 1, 0);
    ck_ok(sl_net_trainer_set_type(f.trainer, type_of(_i)));
    f.weights[0] = NAN;
    ck_ok(forward_backward(&f, 1, 1));
    ck_assert(isnan(f.logits[0]));
    free_fixture(&f);
}
END_TEST

static sl_status live(const sl_allocator *allocator, const sl_net_shape *shape, const float *weights, sl_dtype type) {
    sl_net_trainer *trainer = NULL;
    float logits[30], gradient[400], output_gradient[30] = {1};
    sl_status status = sl_net_trainer_create(shape, 10, 1, 0.1, allocator, &trainer);
    if (status == SL_OK) status = sl_net_trainer_set_type(trainer, type);
    if (status == SL_OK) status = sl_net_trainer_forward(trainer, weights, 10, 1, 1, logits);
    if (status == SL_OK) status = sl_net_trainer_backward(trainer, weights, output_gradient, gradient);
    sl_net_trainer_free(trainer);
    return status;
}

START_TEST(every_allocation_may_fail) {
    float *weights = reference_weights(&shapes[_i], 1);
    sl_status status = SL_ENOMEM;
    for (size_t fail_at = 1; status == SL_ENOMEM; fail_at++) {
        fault_allocator memory;
        fault_allocator_init(&memory, fail_at);
        status = live(&memory.allocator, &shapes[_i], weights, (sl_dtype)_i);
        ck_assert_uint_eq(memory.live_blocks, 0);
        ck_assert_uint_lt(fail_at, 1000);
        if (fail_at < 4) ck_assert_int_eq(status, SL_ENOMEM);
    }
    ck_ok(status);
    free(weights);
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_net_trainer *trainer;
    ck_assert_int_eq(sl_net_trainer_create(&shapes[0], SIZE_MAX / 4, 1, 0, &allocator, &trainer), SL_ENOMEM);
    ck_assert_ptr_null(trainer);
}
END_TEST

START_TEST(without_onednn_it_says_so) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_net_trainer *trainer;
    sl_status status = sl_net_trainer_create(&shapes[0], 10, 1, 0, &allocator, &trainer);
    if (sl_net_has_onednn()) {
        ck_ok(status);
        sl_net_trainer_free(trainer);
        return;
    }
    ck_assert_int_eq(status, SL_EUNSUPPORTED);
    ck_assert_ptr_null(trainer);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "install oneDNN"));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("net training");
    tcase_add_test(tests, without_onednn_it_says_so);
    if (sl_net_has_onednn()) {
        tcase_add_loop_test(tests, gradients_are_slopes, 0, SHAPES);
        tcase_add_test(tests, batches_of_any_size);
        tcase_add_loop_test(tests, large_batches_are_sums, 0, SHAPES);
        tcase_add_loop_test(tests, threads_change_rounding_alone, 0, 4);
        tcase_add_test(tests, dropout_is_by_seed_and_step);
        tcase_add_test(tests, dropout_keeps_the_mean);
        tcase_add_loop_test(tests, dropout_has_its_gradient, 0, 3);
        tcase_add_loop_test(tests, nan_is_not_hidden, 0, 4);
        tcase_add_loop_test(tests, operands_of_16_bits, 0, 8);
        tcase_add_loop_test(tests, whole_numbers_stay_exact, 0, 2);
        tcase_add_loop_test(tests, evaluation_is_f32, 0, 2);
        tcase_add_loop_test(tests, threads_round_the_same, 0, 2);
        tcase_add_test(tests, overflow_is_found);
        tcase_add_loop_test(tests, nan_is_not_hidden_by_16_bits, 0, 8);
        tcase_add_loop_test(tests, every_allocation_may_fail, 0, 3);
    }
    return check_main("net training", &tests, 1);
}
