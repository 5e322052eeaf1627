#define _GNU_SOURCE
#include "rows.h"

#include "base/random.h"
#include "distance/codec/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE  ((size_t)2 << 20)
#define MAX_CHUNKS 8192u

/* Gives the bytes of the whole process on huge pages: the block is all that lies there. */
static size_t huge_bytes(void) {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    if (!file) return 0;
    char line[256];
    size_t kib = 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "AnonHugePages: %zu kB", &kib) == 1) break;
    fclose(file);
    return kib << 10;
}

int block_map(block *b, size_t size, int huge_pages) {
    b->size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    size_t before = huge_bytes();
    uint8_t *whole = mmap(NULL, b->size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) return 0;
    size_t lead = (HUGE_PAGE - (uintptr_t)whole % HUGE_PAGE) % HUGE_PAGE;
    if (lead) munmap(whole, lead);
    if (lead < HUGE_PAGE) munmap(whole + lead + b->size, HUGE_PAGE - lead);
    b->base = whole + lead;
    madvise(b->base, b->size, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (size_t i = 0; i < b->size; i += 8) {
        uint64_t bits = sl_random_at(1, i);
        memcpy(b->base + i, &bits, sizeof bits);
    }
    b->huge = huge_bytes() - before;
    return 1;
}

void block_unmap(block *b) {
    munmap(b->base, b->size);
}

/* The block's random bytes are codes already; what follows them in a row must be floats of ordinary size. */
static void fill_rows(const setup *s, uint8_t *base) {
    const float one = 1;
    const sl_codec *c = &s->codec;
    for (size_t r = 0; r < s->rows; r++) {
        uint8_t *row = base + r * c->rows.pitch;
        if (c->codes == SL_CODES_F32)
            for (size_t k = 0; k < c->rows.width; k += 4)
                memcpy(row + k, &one, 4);
        memcpy(row + c->rows.factor, &one, 4);
    }
}

int setup_init(setup *s, const block *b, size_t bytes, size_t dim, sl_codes codes, size_t id_count) {
    memset(s, 0, sizeof *s);
    if (sl_codec_init(&s->codec, dim, SL_METRIC_IP, SL_F32, codes) != SL_OK) return 0;
    sl_codec *c = &s->codec;
    c->rows.base = b->base;
    s->rows = (bytes - SL_ROW_STEP) / c->rows.pitch;
    fill_rows(s, b->base);
    s->id_count = id_count;
    s->ids = malloc(id_count * sizeof *s->ids);
    s->out = malloc(id_count * sizeof *s->out);
    s->query_buffer = aligned_alloc(64, sl_query_size(c));
    float *floats = malloc(2 * dim * sizeof *floats);
    if (!s->ids || !s->out || !s->query_buffer || !floats) {
        free(floats);
        setup_free(s);
        return 0;
    }
    for (size_t i = 0; i < id_count; i++)
        s->ids[i] = (uint32_t)(sl_random_at(2, i) % s->rows);
    float norm2;
    for (size_t i = 0; i < dim; i++)
        floats[i] = (float)(sl_random_unit(3, i) - 0.5);
    sl_encode_query(c, floats, SL_F32, s->query_buffer, floats + dim, &s->query, &norm2);
    free(floats);
    return 1;
}

void setup_free(setup *s) {
    free(s->ids);
    free(s->out);
    free(s->query_buffer);
}

double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double time_scores(const sl_kernels *kernels, const setup *s, size_t batch, size_t ahead, size_t rounds) {
    static double times[MAX_CHUNKS];
    sl_score_fn *score = kernels->score[s->codec.codes];
    size_t count = 0;
    for (size_t round = 0; round < rounds; round++)
        for (size_t chunk = 0; chunk + CHUNK <= s->id_count && count < MAX_CHUNKS; chunk += CHUNK) {
            double start = now_ns();
            for (size_t i = chunk; i < chunk + CHUNK; i += batch)
                score(&s->codec.rows, &s->query, s->ids + i, batch, ahead, s->out + i);
            times[count++] = (now_ns() - start) / CHUNK;
        }
    qsort(times, count, sizeof *times, by_value);
    return times[count / 4];
}
