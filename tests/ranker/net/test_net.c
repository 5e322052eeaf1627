/* Nets for serving, against the reference: every activation, any number of rows, the first layer in parts. Predictions
 * must not allocate, make primitives, or crash after fork(). The link counts the library's allocations and its calls
 * for oneDNN primitives. */
#include "base/memory.h"
#include "base/random.h"
#include "ranker/net/net.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/net_reference.h"
#include "tests/support/system_calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static size_t primitives_made;

#ifdef SL_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>

dnnl_status_t __real_dnnl_primitive_create(dnnl_primitive_t *out, const_dnnl_primitive_desc_t desc);
dnnl_status_t __wrap_dnnl_primitive_create(dnnl_primitive_t *out, const_dnnl_primitive_desc_t desc);
dnnl_status_t __wrap_dnnl_primitive_create(dnnl_primitive_t *out, const_dnnl_primitive_desc_t desc) {
    __atomic_add_fetch(&primitives_made, 1, __ATOMIC_RELAXED); /* several threads' runs make theirs at once */
    return __real_dnnl_primitive_create(out, desc);
}
#endif

enum { MOST_ROWS = 700 };

static const sl_net_shape shapes[] = {{4, {133, 128, 64, 32, 1}, SL_RELU},
                                      {3, {45, 37, 19, 3}, SL_RELU},
                                      {3, {45, 37, 19, 3}, SL_GELU},
                                      {3, {45, 37, 19, 3}, SL_TANH},
                                      {2, {16, 33, 1}, SL_LINEAR},
                                      {1, {29, 2}, SL_RELU},
                                      {9, {5, 4, 3, 9, 8, 7, 6, 5, 4, 1}, SL_TANH},
                                      {3, {200, 1024, 256, 1}, SL_RELU}};
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const size_t row_counts[] = {1, 2, 3, 4, 5, 7, 8, 13, 31, 64, 67, 85, 127, 129, 500, 513, MOST_ROWS};
enum { ROW_COUNTS = sizeof row_counts / sizeof *row_counts };

/* A net of random weights, a run over random inputs, and the expected outputs. */
typedef struct fixture {
    sl_allocator allocator;
    sl_net_shape shape;
    float *weights, *inputs, *out;
    double *expected;
    sl_net *net;
    sl_net_run *run;
} fixture;

static void make_fixture(fixture *f, const sl_net_shape *shape, const sl_allocator *allocator) {
    *f = (fixture){.allocator = sl_allocator_of(allocator), .shape = *shape};
    size_t in = shape->width[0], out = shape->width[shape->layers];
    f->weights = reference_weights(shape, 3);
    f->inputs = reference_numbers(MOST_ROWS * in, 1, 4);
    f->out = malloc(MOST_ROWS * out * sizeof *f->out);
    f->expected = malloc(MOST_ROWS * out * sizeof *f->expected);
    double *weights = reference_doubles(f->weights, sl_net_size(shape));
    double *inputs = reference_doubles(f->inputs, MOST_ROWS * in);
    for (size_t r = 0; r < MOST_ROWS; r++)
        reference_forward(shape, weights, inputs + r * in, f->expected + r * out);
    free(weights);
    free(inputs);
    ck_ok(sl_net_create(shape, f->weights, NULL, &f->allocator, &f->net));
    ck_ok(sl_net_run_create(f->net, MOST_ROWS, &f->allocator, &f->run));
}

static void free_fixture(fixture *f) {
    sl_net_run_free(f->run);
    sl_net_free(f->net);
    free(f->weights);
    free(f->inputs);
    free(f->out);
    free(f->expected);
}

/* Returns the number of outputs of rows `first` on that are off by more than rounding. */
static size_t wrong_rows(const fixture *f, size_t first, size_t rows) {
    size_t outputs = f->shape.width[f->shape.layers], wrong = 0;
    for (size_t i = 0; i < rows * outputs; i++)
        wrong += !(fabs((double)f->out[i] - f->expected[first * outputs + i]) < 2e-5);
    return wrong;
}

static sl_status forward(fixture *f, size_t first, size_t rows) {
    size_t in = f->shape.width[0];
    memcpy(sl_net_run_input(f->run), f->inputs + first * in, rows * in * sizeof(float));
    return sl_net_run_forward(f->run, rows, f->out);
}

START_TEST(forward_is_the_reference) {
    fixture f;
    make_fixture(&f, &shapes[_i], NULL);
    for (size_t n = 0; n < ROW_COUNTS; n++) {
        size_t rows = row_counts[n], outputs = f.shape.width[f.shape.layers];
        for (size_t i = 0; i < MOST_ROWS * outputs; i++)
            f.out[i] = -77;
        ck_ok(forward(&f, MOST_ROWS - rows, rows));
        ck_assert_uint_eq(wrong_rows(&f, MOST_ROWS - rows, rows), 0);
        for (size_t i = rows * outputs; i < MOST_ROWS * outputs; i++)
            ck_assert(f.out[i] == -77);
    }
    free_fixture(&f);
}
END_TEST

START_TEST(every_small_batch) {
    fixture f;
    make_fixture(&f, &shapes[_i], NULL);
    for (size_t rows = 0; rows <= 67; rows++) {
        ck_ok(forward(&f, rows, rows));
        ck_assert_uint_eq(wrong_rows(&f, rows, rows), 0);
    }
    ck_assert_int_eq(sl_net_run_forward(f.run, MOST_ROWS + 1, f.out), SL_EINVAL);
    free_fixture(&f);
}
END_TEST

/* The inputs as the user's columns, the item's and, if asked, the pair's. */
static void check_parts(fixture *f, size_t rows, int with_pair) {
    size_t in = f->shape.width[0], width = f->shape.width[1];
    size_t user_end = in / 3, item_end = with_pair ? in - in / 4 : in;
    float *user = malloc(width * sizeof *user), *items = malloc(MOST_ROWS * width * sizeof *items);
    float *pairs = malloc(MOST_ROWS * width * sizeof *pairs);
    const void *pointers[MOST_ROWS];
    /* All rows get the first row's user columns, so that the whole forward gives the expected outputs. */
    float *input = sl_net_run_input(f->run);
    memcpy(input, f->inputs, rows * in * sizeof(float));
    for (size_t r = 0; r < rows; r++)
        memcpy(input + r * in, f->inputs, user_end * sizeof(float));
    float *whole = malloc(MOST_ROWS * f->shape.width[f->shape.layers] * sizeof *whole);
    ck_ok(sl_net_run_forward(f->run, rows, whole));
    ck_ok(sl_net_run_first(f->run, &(sl_first_part){0, user_end, 1}, f->inputs, in, 1, user));
    ck_ok(sl_net_run_first(f->run, &(sl_first_part){user_end, item_end - user_end, 0}, f->inputs + user_end, in, rows,
                           items));
    ck_ok(
        sl_net_run_first(f->run, &(sl_first_part){item_end, in - item_end, 0}, f->inputs + item_end, in, rows, pairs));
    for (size_t r = 0; r < rows; r++)
        pointers[r] = items + r * width;
    ck_ok(
        sl_net_run_rest(f->run, user, &(sl_item_rows){SL_F32, pointers, NULL}, with_pair ? pairs : NULL, rows, f->out));
    for (size_t i = 0; i < rows * f->shape.width[f->shape.layers]; i++)
        ck_assert_float_eq_tol(f->out[i], whole[i], 1e-5f);
    free(user);
    free(items);
    free(pairs);
    free(whole);
}

START_TEST(parts_make_the_whole) {
    fixture f;
    make_fixture(&f, &shapes[_i], NULL);
    for (size_t n = 0; n < ROW_COUNTS; n++) {
        check_parts(&f, row_counts[n], 0);
        check_parts(&f, row_counts[n], 1);
    }
    float out[1];
    ck_assert_int_eq(sl_net_run_first(f.run, &(sl_first_part){f.shape.width[0], 1, 0}, f.inputs, 1, 1, out), SL_EINVAL);
    free_fixture(&f);
}
END_TEST

/* Items' rows of a type, and the floats they stand for. Gaps between rows keep one from passing for another. */
typedef struct item_rows {
    uint8_t *bytes;
    float *floats;
    const void *rows[MOST_ROWS], *same[MOST_ROWS];
    float scales[MOST_ROWS];
} item_rows;

static void make_rows(item_rows *items, sl_dtype type, size_t width) {
    size_t size = type == SL_BF16 ? 2 : 1;
    items->bytes = malloc(MOST_ROWS * width * size);
    items->floats = malloc(MOST_ROWS * width * sizeof(float));
    for (size_t r = 0; r < MOST_ROWS; r++) {
        size_t at = (r * 331 + 7) % MOST_ROWS * width;
        items->rows[r] = items->bytes + at * size;
        items->same[r] = items->floats + at;
        items->scales[r] = 0.01f * (float)(1 + r % 5);
        for (size_t i = 0; i < width; i++) {
            uint64_t bits = sl_random_at(17 + type, at + i);
            if (type == SL_BF16) {
                uint16_t half = (uint16_t)((bits & 0x807f) | (0x3c80 + (bits >> 20 & 0x2ff)));
                uint32_t whole = (uint32_t)half << 16;
                memcpy(items->bytes + 2 * (at + i), &half, sizeof half);
                memcpy(items->floats + at + i, &whole, sizeof whole);
            } else {
                int8_t code = (int8_t)(bits & 0xff);
                memcpy(items->bytes + at + i, &code, 1);
                items->floats[at + i] = (float)code * items->scales[r];
            }
        }
    }
}

/* A net that continues from parts in bf16 or bytes gives the same bits as from the floats they stand for. */
START_TEST(parts_of_any_type_are_their_floats) {
    static const sl_dtype types[] = {SL_BF16, SL_I8};
    static item_rows items;
    fixture f;
    make_fixture(&f, &shapes[_i], NULL);
    size_t width = f.shape.width[1], outputs = f.shape.width[f.shape.layers];
    float *user = reference_numbers(width, 1, 5), *pairs = reference_numbers(MOST_ROWS * width, 1, 6);
    float *same = malloc(MOST_ROWS * outputs * sizeof *same);
    for (size_t t = 0; t < 2; t++) {
        make_rows(&items, types[t], width);
        const sl_item_rows typed = {types[t], items.rows, items.scales}, floats = {SL_F32, items.same, NULL};
        for (size_t n = 0; n < ROW_COUNTS; n++) {
            for (int with_pair = 0; with_pair < 2; with_pair++) {
                ck_ok(sl_net_run_rest(f.run, user, &typed, with_pair ? pairs : NULL, row_counts[n], f.out));
                ck_ok(sl_net_run_rest(f.run, user, &floats, with_pair ? pairs : NULL, row_counts[n], same));
                ck_assert_mem_eq(f.out, same, row_counts[n] * outputs * sizeof *same);
            }
        }
        free(items.bytes);
        free(items.floats);
    }
    free(user);
    free(pairs);
    free(same);
    free_fixture(&f);
}
END_TEST

/* A part with NaN or infinity affects its own row alone, whatever its type. */
START_TEST(a_part_of_nan_stays_in_its_row) {
    fixture f;
    make_fixture(&f, &shapes[_i], NULL);
    size_t width = f.shape.width[1], outputs = f.shape.width[f.shape.layers];
    float *user = reference_numbers(width, 1, 5);
    uint16_t *halves = calloc(2 * width, sizeof *halves);
    int8_t *bytes = calloc(2 * width, 1);
    for (size_t i = 0; i < width; i++)
        halves[width + i] = 0x7fc0;
    const void *half_rows[9], *byte_rows[9];
    float scales[9];
    for (size_t r = 0; r < 9; r++) {
        half_rows[r] = halves + (r == 5 ? width : 0);
        byte_rows[r] = bytes;
        scales[r] = r == 5 ? NAN : 1;
    }
    const sl_item_rows rows[] = {{SL_BF16, half_rows, NULL}, {SL_I8, byte_rows, scales}};
    for (size_t t = 0; t < 2; t++) {
        ck_ok(sl_net_run_rest(f.run, user, &rows[t], NULL, 9, f.out));
        for (size_t o = 0; o < 9 * outputs; o++)
            ck_assert_int_eq(isnan(f.out[o]) != 0, o / outputs == 5);
    }
    free(user);
    free(halves);
    free(bytes);
    free_fixture(&f);
}
END_TEST

/* No columns: a product without terms. */
START_TEST(an_empty_part_is_the_bias) {
    fixture f;
    make_fixture(&f, &shapes[1], NULL);
    float out[3 * 37];
    const float *bias = f.weights + sl_net_bias_at(&f.shape, 0);
    ck_ok(sl_net_run_first(f.run, &(sl_first_part){0, 0, 1}, f.inputs, 1, 3, out));
    for (size_t r = 0; r < 3; r++)
        ck_assert_mem_eq(out + r * 37, bias, 37 * sizeof *bias);
    ck_ok(sl_net_run_first(f.run, &(sl_first_part){45, 0, 0}, f.inputs, 1, 3, out));
    for (size_t i = 0; i < 3 * 37; i++)
        ck_assert(out[i] == 0);
    free_fixture(&f);
}
END_TEST

START_TEST(the_same_call_gives_the_same_bits) {
    fixture f;
    make_fixture(&f, &shapes[_i], NULL);
    size_t size = 500 * f.shape.width[f.shape.layers] * sizeof(float);
    float *first = malloc(size);
    ck_ok(forward(&f, 0, 500));
    memcpy(first, f.out, size);
    ck_ok(forward(&f, 100, 31));
    ck_ok(forward(&f, 0, 500));
    ck_assert_mem_eq(first, f.out, size);
    free(first);
    free_fixture(&f);
}
END_TEST

START_TEST(nan_stays_in_its_row) {
    fixture f;
    make_fixture(&f, &shapes[_i], NULL);
    size_t outputs = f.shape.width[f.shape.layers];
    memcpy(sl_net_run_input(f.run), f.inputs, 67 * f.shape.width[0] * sizeof(float));
    sl_net_run_input(f.run)[5 * f.shape.width[0]] = NAN;
    ck_ok(sl_net_run_forward(f.run, 67, f.out));
    for (size_t o = 0; o < outputs; o++)
        ck_assert(isnan(f.out[5 * outputs + o]));
    memcpy(f.out + 5 * outputs, f.out + 4 * outputs, outputs * sizeof(float));
    for (size_t i = 0; i < 67 * outputs; i++)
        ck_assert(i / outputs == 5 || fabs((double)f.out[i] - f.expected[i]) < 2e-5);
    free_fixture(&f);
}
END_TEST

/* Large inputs are valid, though their squares overflow. */
START_TEST(large_inputs_are_numbers) {
    fixture f;
    make_fixture(&f, &shapes[_i], NULL);
    size_t outputs = f.shape.width[f.shape.layers];
    memcpy(sl_net_run_input(f.run), f.inputs, 9 * f.shape.width[0] * sizeof(float));
    sl_net_run_input(f.run)[5 * f.shape.width[0]] = 1e25f;
    ck_ok(sl_net_run_forward(f.run, 9, f.out));
    for (size_t o = 0; o < 9 * outputs; o++)
        ck_assert(isfinite(f.out[o]));
    free_fixture(&f);
}
END_TEST

START_TEST(a_warm_run_takes_nothing) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    fixture f;
    make_fixture(&f, &shapes[_i], &memory.allocator);
    size_t width = f.shape.width[1];
    float *items = malloc(500 * width * sizeof *items);
    const void *pointers[500];
    for (size_t r = 0; r < 500; r++)
        pointers[r] = items + r * width;
    sl_status status = SL_OK;
    size_t calls = 0, system_before = 0, made = 0;
    for (size_t round = 0; round < 3; round++) {
        if (round == 1) {
            calls = memory.calls;
            system_before = system_calls();
            made = primitives_made;
        }
        for (size_t n = 0; n < ROW_COUNTS && status == SL_OK; n++)
            status = forward(&f, 0, row_counts[n]);
        if (status == SL_OK)
            status = sl_net_run_first(f.run, &(sl_first_part){0, f.shape.width[0], 1}, f.inputs, f.shape.width[0], 500,
                                      items);
        if (status == SL_OK)
            status = sl_net_run_rest(f.run, items, &(sl_item_rows){SL_F32, pointers, NULL}, NULL, 500, f.out);
    }
    size_t system_after = system_calls();
    ck_ok(status);
    ck_assert_uint_eq(memory.calls, calls);
    ck_assert_uint_eq(system_after, system_before);
    ck_assert_uint_gt(system_before, 0);
    ck_assert_uint_eq(primitives_made, made);
    ck_assert_int_eq(made > 0, sl_net_has_onednn());
    free(items);
    free_fixture(&f);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

/* More shapes of products than a run keeps. */
START_TEST(forgotten_products_are_made_again) {
    sl_net_shape shape = {1, {1200, 2}, SL_RELU};
    fixture f;
    make_fixture(&f, &shape, NULL);
    float first[2], again[2];
    ck_ok(sl_net_run_first(f.run, &(sl_first_part){0, 1, 1}, f.inputs, 1200, 1, first));
    for (size_t count = 2; count < 1200; count++) {
        float out[2];
        ck_ok(sl_net_run_first(f.run, &(sl_first_part){0, count, 1}, f.inputs, 1200, 1, out));
    }
    ck_ok(sl_net_run_first(f.run, &(sl_first_part){0, 1, 1}, f.inputs, 1200, 1, again));
    ck_assert_mem_eq(first, again, sizeof first);
    ck_ok(forward(&f, 0, 500));
    ck_assert_uint_eq(wrong_rows(&f, 0, 500), 0);
    free_fixture(&f);
}
END_TEST

static sl_status live(const fixture *f, const sl_allocator *allocator, float *out) {
    sl_net *net = NULL;
    sl_net_run *run = NULL;
    sl_status status = sl_net_create(&f->shape, f->weights, NULL, allocator, &net);
    if (status == SL_OK) status = sl_net_run_create(net, 500, allocator, &run);
    if (status == SL_OK) {
        memcpy(sl_net_run_input(run), f->inputs, 500 * f->shape.width[0] * sizeof(float));
        for (size_t rows = 1; rows <= 500 && status == SL_OK; rows += 11)
            status = sl_net_run_forward(run, rows, out);
        if (status == SL_OK) status = sl_net_run_forward(run, 500, out);
    }
    sl_net_run_free(run);
    sl_net_free(net);
    return status;
}

START_TEST(every_allocation_may_fail) {
    fixture f;
    make_fixture(&f, &shapes[1], NULL);
    sl_status status = SL_ENOMEM;
    for (size_t fail_at = 1; status == SL_ENOMEM; fail_at++) {
        fault_allocator memory;
        fault_allocator_init(&memory, fail_at);
        status = live(&f, &memory.allocator, f.out);
        ck_assert_uint_eq(memory.live_blocks, 0);
        ck_assert_uint_lt(fail_at, 1000);
        if (fail_at == 1) ck_assert_int_eq(status, SL_ENOMEM);
    }
    ck_ok(status);
    ck_assert_uint_eq(wrong_rows(&f, 0, 500), 0);
    sl_net_run *run;
    ck_assert_int_eq(sl_net_run_create(f.net, SIZE_MAX / 2, &f.allocator, &run), SL_ENOMEM);
    ck_assert_ptr_null(run);
    free_fixture(&f);
}
END_TEST

/* The parent has used threads. Its child can serve with the parent's runs and with its own. */
START_TEST(a_child_serves) {
    fixture f;
    make_fixture(&f, &shapes[0], NULL);
#ifdef _OPENMP
    omp_set_num_threads(2);
    int team = 0;
#pragma omp parallel
#pragma omp atomic
    team++;
    ck_assert_int_eq(team, 2);
#endif
    ck_ok(forward(&f, 0, 500));
#ifdef _OPENMP
    ck_assert_int_eq(omp_get_max_threads(), 2);
#endif
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        int good = forward(&f, 0, 500) == SL_OK && wrong_rows(&f, 0, 500) == 0;
        good = good && forward(&f, 0, 77) == SL_OK && wrong_rows(&f, 0, 77) == 0;
        good = good && live(&f, &f.allocator, f.out) == SL_OK && wrong_rows(&f, 0, 500) == 0;
        _exit(good ? 0 : 1);
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    free_fixture(&f);
}
END_TEST

/* Several runs share one net at once. */
START_TEST(runs_share_a_net) {
    fixture f;
    make_fixture(&f, &shapes[0], NULL);
    size_t failed = 0;
#pragma omp parallel for num_threads(4) reduction(+ : failed)
    for (size_t t = 0; t < 4; t++) {
        fixture mine = f;
        mine.out = malloc(MOST_ROWS * sizeof *mine.out);
        if (sl_net_run_create(f.net, MOST_ROWS, &f.allocator, &mine.run) != SL_OK) {
            failed++;
        } else {
            for (size_t rows = 1 + t; rows < 300; rows += 7)
                failed += forward(&mine, rows, rows) != SL_OK || wrong_rows(&mine, rows, rows);
            sl_net_run_free(mine.run);
        }
        free(mine.out);
    }
    ck_assert_uint_eq(failed, 0);
    free_fixture(&f);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("net");
    tcase_add_loop_test(tests, forward_is_the_reference, 0, SHAPES);
    tcase_add_loop_test(tests, every_small_batch, 0, SHAPES - 1);
    tcase_add_loop_test(tests, parts_make_the_whole, 0, SHAPES);
    tcase_add_loop_test(tests, parts_of_any_type_are_their_floats, 0, SHAPES);
    tcase_add_loop_test(tests, a_part_of_nan_stays_in_its_row, 0, SHAPES);
    tcase_add_test(tests, an_empty_part_is_the_bias);
    tcase_add_loop_test(tests, the_same_call_gives_the_same_bits, 0, SHAPES);
    tcase_add_loop_test(tests, nan_stays_in_its_row, 0, SHAPES);
    tcase_add_loop_test(tests, large_inputs_are_numbers, 0, 2);
    tcase_add_loop_test(tests, a_warm_run_takes_nothing, 0, SHAPES);
    tcase_add_test(tests, forgotten_products_are_made_again);
    tcase_add_test(tests, every_allocation_may_fail);
    TCase *threads = tcase_create("threads");
    tcase_add_test(threads, a_child_serves);
    tcase_add_test(threads, runs_share_a_net);
    return check_main("net", (TCase *[]){tests, threads}, 2);
}
