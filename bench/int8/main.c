/* Nets with INT8 layers and with bf16 layers beside the same nets of floats: weights of chance, items spread over a
 * table that no cache holds. Each round runs all three; a ratio is that of the round. Prints JSON. */
#include "base/random.h"
#include "ranker/net/loops.h"
#include "ranker/net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 500, ITEMS = 20000, MOST_ROUNDS = 1000 };
enum { PARTS, WHOLE, ONE, CASES };
enum { FLOATS, INT8, BF16, NETS };

static const char *const names[NETS] = {"f32", "int8", "bf16"};
static const char *const cases[CASES] = {"parts given, 500 rows", "whole, 500 rows", "whole, 1 row"};
static const sl_net_shape shapes[] = {{4, {845, 1024, 512, 256, 1}, SL_RELU}, {4, {133, 128, 64, 32, 1}, SL_RELU}};

typedef struct setting {
    sl_allocator allocator;
    const sl_net_shape *shape;
    float *weights, *table;
    int8_t *codes[SL_MAX_LAYERS];
    float *scales[SL_MAX_LAYERS];
    uint16_t *rounded[SL_MAX_LAYERS];
    sl_net *nets[NETS];
    sl_net_run *runs[NETS];
} setting;

static void check(sl_status status) {
    if (status == SL_OK) return;
    fprintf(stderr, "bench_int8: %s\n", sl_last_error());
    exit(1);
}

static void *room(size_t count, size_t size) {
    void *block = calloc(count, size);
    if (!block) {
        fprintf(stderr, "bench_int8: no memory\n");
        exit(1);
    }
    return block;
}

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static float chance(uint64_t seed, uint64_t at, float size) {
    return (float)(2 * sl_random_unit(seed, at) - 1) * size;
}

static const float most = 0.05f; /* of the weights */

/* The weights of a layer as codes and as bf16 numbers. */
static void code_layer(setting *s, size_t l) {
    size_t in = s->shape->width[l], out = s->shape->width[l + 1];
    const float *weights = s->weights + sl_net_weight_at(s->shape, l);
    s->codes[l] = room(in * out, 1);
    s->scales[l] = room(out, sizeof(float));
    s->rounded[l] = room(in * out, sizeof(uint16_t));
    for (size_t o = 0; o < out; o++)
        s->scales[l][o] = most / 127;
    for (size_t i = 0; i < in * out; i++)
        s->codes[l][i] = (int8_t)(weights[i] * 127 / most);
    sl_loops_get()->narrow(weights, in * out, SL_BF16, s->rounded[l]);
}

static void make(setting *s, const sl_net_shape *shape) {
    sl_layer_codes layers[NETS][SL_MAX_LAYERS] = {{{.type = SL_LAYER_F32}}};
    *s = (setting){.allocator = sl_allocator_of(NULL), .shape = shape};
    s->weights = room(sl_net_size(shape), sizeof(float));
    s->table = room(ITEMS * shape->width[1], sizeof(float));
    for (size_t i = 0; i < sl_net_size(shape); i++)
        s->weights[i] = chance(1, i, most);
    for (size_t i = 0; i < ITEMS * shape->width[1]; i++)
        s->table[i] = chance(2, i, 0.5f);
    for (size_t l = 0; l < shape->layers; l++) {
        code_layer(s, l);
        layers[INT8][l] = (sl_layer_codes){SL_LAYER_INT8, {0.01f, l ? 0 : 128}, s->codes[l], s->scales[l], NULL};
        layers[BF16][l] = (sl_layer_codes){.type = SL_LAYER_BF16, .bf16 = s->rounded[l]};
    }
    for (size_t n = 0; n < NETS; n++) {
        check(sl_net_create(shape, s->weights, layers[n], &s->allocator, &s->nets[n]));
        check(sl_net_run_create(s->nets[n], ROWS, &s->allocator, &s->runs[n]));
        for (size_t i = 0; i < ROWS * shape->width[0]; i++)
            sl_net_run_input(s->runs[n])[i] = chance(3, i, 0.5f);
    }
}

static void drop(setting *s) {
    for (size_t n = 0; n < NETS; n++) {
        sl_net_run_free(s->runs[n]);
        sl_net_free(s->nets[n]);
    }
    for (size_t l = 0; l < s->shape->layers; l++) {
        free(s->codes[l]);
        free(s->scales[l]);
        free(s->rounded[l]);
    }
    free(s->weights);
    free(s->table);
}

/* Runs one net once. Returns the time of a row in microseconds. */
static double run_once(const setting *s, size_t net, int what, uint64_t round) {
    static float out[ROWS];
    const void *rows[ROWS];
    size_t count = what == ONE ? 1 : ROWS;
    for (size_t i = 0; i < ROWS; i++)
        rows[i] = s->table + (size_t)(sl_random_unit(round, i) * ITEMS) * s->shape->width[1];
    const sl_item_rows items = {SL_F32, rows, NULL};
    double start = now_us();
    if (what == PARTS)
        check(sl_net_run_rest(s->runs[net], s->table, &items, NULL, count, out));
    else
        check(sl_net_run_forward(s->runs[net], count, out));
    return (now_us() - start) / (double)count;
}

static int rising(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const setting *s, int what, size_t rounds) {
    static double times[NETS][MOST_ROUNDS], ratios[NETS][MOST_ROUNDS];
    for (size_t n = 0; n < NETS; n++)
        (void)run_once(s, n, what, 0);
    for (size_t r = 0; r < rounds; r++)
        for (size_t n = 0; n < NETS; n++) {
            times[n][r] = run_once(s, n, what, r);
            ratios[n][r] = times[FLOATS][r] / times[n][r];
        }
    printf("  {\"inputs\": %zu, \"case\": \"%s\"", s->shape->width[0], cases[what]);
    for (size_t n = 0; n < NETS; n++) {
        qsort(times[n], rounds, sizeof(double), rising);
        qsort(ratios[n], rounds, sizeof(double), rising);
        printf(", \"%s_us\": %.4g", names[n], times[n][rounds / 2]);
        if (n != FLOATS)
            printf(", \"%s_ratio\": [%.3f, %.3f, %.3f]", names[n], ratios[n][rounds / 4], ratios[n][rounds / 2],
                   ratios[n][3 * rounds / 4]);
    }
    printf("}");
}

int main(int argc, char **argv) {
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 41, shapes_count = sizeof shapes / sizeof *shapes;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = 41;
    printf("[\n");
    for (size_t i = 0; i < shapes_count; i++) {
        setting s;
        make(&s, &shapes[i]);
        for (int what = 0; what < CASES; what++) {
            measure(&s, what, rounds);
            printf(i + 1 == shapes_count && what + 1 == CASES ? "\n" : ",\n");
        }
        drop(&s);
    }
    printf("]\n");
    return 0;
}
