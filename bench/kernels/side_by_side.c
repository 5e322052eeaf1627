#include "side_by_side.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

#define L1_BYTES  16384u
#define L1_IDS    512u
#define PASSES    40u
#define MAX_ROUND 1000u

/* The same vectors in the peer's form: signed, each on its own cache lines. */
typedef struct pairing {
    setup ours;
    int8_t *rows, *query;
    size_t pitch, dim;
    float *out;
} pairing;

static void pairing_free(pairing *p) {
    setup_free(&p->ours);
    free(p->rows);
    free(p->query);
    free(p->out);
}

static int pairing_init(pairing *p, const block *b, size_t dim) {
    memset(p, 0, sizeof *p);
    if (!setup_init(&p->ours, b, L1_BYTES, dim, SL_CODES_I8, L1_IDS)) return 0;
    p->dim = dim;
    p->pitch = (dim + 63) / 64 * 64;
    p->rows = aligned_alloc(64, p->ours.rows * p->pitch);
    p->query = aligned_alloc(64, p->pitch);
    p->out = malloc(L1_IDS * sizeof *p->out);
    if (!p->rows || !p->query || !p->out) return 0;
    const sl_code_rows *rows = &p->ours.codec.rows;
    for (size_t r = 0; r < p->ours.rows; r++)
        for (size_t i = 0; i < dim; i++)
            p->rows[r * p->pitch + i] = (int8_t)(rows->base[r * rows->pitch + i] ^ 0x80);
    memcpy(p->query, p->ours.query.code, dim);
    p->ours.query.scale = 1;
    return 1;
}

static double run_ours(const sl_kernels *kernels, pairing *p) {
    double start = now_ns();
    for (size_t pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; i < L1_IDS; i += BATCH)
            kernels->score[SL_CODES_I8](&p->ours.codec.rows, &p->ours.query, p->ours.ids + i, BATCH, 0,
                                        p->ours.out + i);
    return (now_ns() - start) / (PASSES * L1_IDS);
}

static double run_peer(const peer *other, pairing *p) {
    double start = now_ns();
    for (size_t pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; i < L1_IDS; i += BATCH)
            other->dots(p->query, p->rows, p->pitch, p->dim, p->ours.ids + i, BATCH, p->out + i);
    return (now_ns() - start) / (PASSES * L1_IDS);
}

static void summarise(double *ours, double *theirs, double *ratios, size_t n, comparison *out) {
    qsort(ours, n, sizeof *ours, by_value);
    qsort(theirs, n, sizeof *theirs, by_value);
    qsort(ratios, n, sizeof *ratios, by_value);
    *out = (comparison){ours[n / 2],   theirs[n / 2],     ratios[n / 20],        ratios[n / 4],
                        ratios[n / 2], ratios[3 * n / 4], ratios[n - 1 - n / 20]};
}

int compare(const sl_kernels *kernels, const peer *other, size_t dim, size_t rounds, comparison *out) {
    static double ours[MAX_ROUND], theirs[MAX_ROUND], ratios[MAX_ROUND];
    if (rounds > MAX_ROUND) rounds = MAX_ROUND;
    block b;
    pairing p;
    if (!block_map(&b, L1_BYTES, 0)) return 0;
    int ok = pairing_init(&p, &b, dim);
    if (ok) {
        run_ours(kernels, &p);
        run_peer(other, &p);
        ok = memcmp(p.out, p.ours.out, L1_IDS * sizeof *p.out) == 0;
    }
    for (size_t r = 0; ok && r < rounds; r++) {
        /* Who goes first alternates. */
        if (r % 2) theirs[r] = run_peer(other, &p);
        ours[r] = run_ours(kernels, &p);
        if (r % 2 == 0) theirs[r] = run_peer(other, &p);
        ratios[r] = ours[r] / theirs[r];
    }
    if (ok) summarise(ours, theirs, ratios, rounds, out);
    pairing_free(&p);
    block_unmap(&b);
    return ok;
}
