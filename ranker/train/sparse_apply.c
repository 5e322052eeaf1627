/* Applying: one step per touched weight, by its collected gradient. */
#include "base/prefetch.h"
#include "base/thread.h"
#include "ranker/train/sparse_train.h"

#include <math.h>

/* Touched rows between the prefetch of weights and states and their step. */
enum { ROWS_AHEAD = 4 };

/* ---------------------------------------------------------------------------------------------------------------
 * The wide part
 * ------------------------------------------------------------------------------------------------------------- */

/* One weight's step of FTRL-proximal (McMahan et al. 2013, Algorithm 1). The schedule's factor scales the gradient that
 * is added to z. If it scaled the rate that divides z, it would pull weights to 0 as the factor falls. A weight that
 * did not start at 0 gets the z that yields this weight. */
typedef struct ftrl {
    float rate, beta, l1, l2;
    float share; /* the schedule's factor of the rate */
} ftrl;

static void ftrl_step(const ftrl *by, float *weight, float *z, float *n, float gradient) {
    float w = *weight, squared = gradient * gradient;
    if (*n == 0 && *z == 0 && w != 0) *z = -w * (by->beta / by->rate + by->l2) - copysignf(by->l1, w);
    float root_before = sqrtf(*n), root = sqrtf(*n + squared);
    /* (root - root_before) / rate, without cancellation. */
    float sigma = squared > 0 ? squared / ((root + root_before) * by->rate) : 0;
    *z += by->share * gradient - sigma * w;
    *n += squared;
    if (fabsf(*z) <= by->l1)
        *weight = 0;
    else
        *weight = (copysignf(by->l1, *z) - *z) / ((by->beta + root) / by->rate + by->l2);
}

static void apply_wide(sl_sparse_trainer *trainer, const ftrl *by, float *wide) {
    const sl_row_sums *sums = &trainer->gradients.wide;
    size_t outputs = sums->width;
    float *z = trainer->wide_state, *n = z + trainer->wide_count;
    for (size_t i = 0; i < sums->count; i++) {
        if (i + ROWS_AHEAD < sums->count) {
            size_t ahead = sums->rows[i + ROWS_AHEAD] * outputs;
            sl_prefetch(wide + ahead, 1);
            sl_prefetch(z + ahead, 1);
            sl_prefetch(n + ahead, 1);
        }
        size_t first = sums->rows[i] * outputs;
        for (size_t o = 0; o < outputs; o++)
            ftrl_step(by, &wide[first + o], &z[first + o], &n[first + o], sums->sums[i * outputs + o]);
    }
}

static void apply_bias(sl_sparse_trainer *trainer, const ftrl *by, float *bias) {
    size_t outputs = trainer->features->outputs;
    float *z = trainer->wide_state + 2 * trainer->wide_count, *n = z + outputs;
    ftrl free = *by;
    free.l1 = free.l2 = 0;
    for (size_t o = 0; o < outputs; o++)
        ftrl_step(&free, &bias[o], &z[o], &n[o], trainer->gradients.bias[o]);
}

void sl_wide_apply(sl_sparse_trainer *trainer, float *wide, float *bias, double rate) {
    const sl_spec *spec = trainer->features->spec;
    ftrl by = {.rate = (float)spec->wide_rate,
               .beta = (float)spec->wide_beta,
               .l1 = (float)spec->wide_l1,
               .l2 = (float)spec->wide_l2,
               .share = (float)(rate / spec->wide_rate)};
    apply_wide(trainer, &by, wide);
    apply_bias(trainer, &by, bias);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Embeddings
 * ------------------------------------------------------------------------------------------------------------- */

static void apply_table(sl_sparse_trainer *trainer, size_t table, float *weights, const sl_step *by) {
    const sl_loops *loops = trainer->loops;
    const sl_row_sums *sums = &trainer->gradients.tables[table];
    int adam = trainer->features->spec->optimizer == SL_ADAM;
    const size_t dim = sums->width, owners = sl_row_owners(trainer, table);
    float *state = trainer->table_states[table], *second = state + sl_own_rows(trainer, table) * dim;
    for (size_t i = 0; i < sums->count; i++) {
        if (i + ROWS_AHEAD < sums->count) {
            const size_t ahead = sums->rows[i + ROWS_AHEAD] * dim;
            const size_t state_ahead = owners == 1 ? ahead : sums->rows[i + ROWS_AHEAD] / owners * dim;
            sl_prefetch(weights + ahead, dim * sizeof(float));
            sl_prefetch(state + state_ahead, dim * sizeof(float));
            if (adam) sl_prefetch(second + state_ahead, dim * sizeof(float));
        }
        const size_t at = sums->rows[i] * dim, state_at = owners == 1 ? at : sums->rows[i] / owners * dim;
        const float *gradient = sums->sums + i * dim;
        if (adam)
            loops->adam(weights + at, state + state_at, second + state_at, gradient, dim, by);
        else
            loops->adagrad(weights + at, state + state_at, gradient, dim, by);
    }
}

/* Floats of the sums to apply. */
static size_t floats_to_apply(const sl_sparse_trainer *trainer) {
    size_t floats = 0;
    for (size_t t = 0; t < trainer->features->table_count; t++)
        floats += trainer->gradients.tables[t].count * trainer->gradients.tables[t].width;
    return floats;
}

void sl_embedding_apply(sl_sparse_trainer *trainer, float *const *embeddings, const sl_step *step) {
    size_t count = trainer->features->table_count, threads = sl_sparse_threads(trainer, floats_to_apply(trainer));
    sl_step by = *step;
    by.l2 = 0; /* l2 decays dense weights only: it would miss untouched rows */
    if (threads <= 1) {
        for (size_t t = 0; t < count; t++)
            apply_table(trainer, t, embeddings[t], &by);
        return;
    }
#pragma omp parallel for num_threads((int)threads) schedule(dynamic, 1)
    for (size_t t = 0; t < count; t++)
        apply_table(trainer, t, embeddings[t], &by);
}
