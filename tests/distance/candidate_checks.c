/* Compares the kernels of a walk's candidates with a plain list of all candidates offered, and checks the kernels of
 * codes. */
#include "distance/levels.h"
#include "tests/distance/kernel_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With more than MANY candidates, tiers find the best in other ways. */
enum { ROOM = 16000, MANY = 10000, BEHIND = 32 };

typedef struct plain {
    float scores[ROOM];
    uint32_t ids[ROOM];
    int open[ROOM];
    size_t count;
    float threshold;
    float near[SL_BEST_SCORES]; /* of all that was ever admitted */
} plain;

/* Arrays that end before a page that no one may touch. */
typedef struct arrays {
    guarded memory[5];
    sl_candidates all;
} arrays;

static float *array_of(guarded *memory, size_t n) {
    *memory = guarded_new(n * sizeof(float));
    float *at = (float *)(void *)memory->end - n;
    for (size_t i = 0; i < n; i++)
        at[i] = 7; /* left by another walk */
    return at;
}

static arrays arrays_new(void) {
    arrays a = {0};
    a.all.scores = array_of(&a.memory[0], ROOM + BEHIND);
    a.all.open = array_of(&a.memory[1], ROOM + BEHIND);
    a.all.ids = (uint32_t *)(void *)array_of(&a.memory[2], ROOM + BEHIND);
    a.all.tops = array_of(&a.memory[3], (ROOM + BEHIND) / 16 + BEHIND);
    a.all.peaks = array_of(&a.memory[4], (ROOM + BEHIND) / 256 + BEHIND);
    return a;
}

static size_t differences(const plain *want, const sl_candidates *have) {
    size_t wrong = 0;
    for (size_t i = 0; i < want->count && i < have->count; i++) {
        float open = want->open[i] ? want->scores[i] : -INFINITY;
        wrong += memcmp(&want->scores[i], &have->scores[i], sizeof(float)) != 0 || want->ids[i] != have->ids[i] ||
                 memcmp(&open, &have->open[i], sizeof open) != 0;
    }
    return wrong;
}

static void offer(const sl_kernels *kernels, plain *want, sl_candidates *all, size_t n, check_count *count) {
    float scores[300];
    uint32_t ids[300];
    for (size_t i = 0; i < n; i++) {
        scores[i] = any_score();
        ids[i] = (uint32_t)random_bits();
        if (!(scores[i] > want->threshold)) continue;
        want->scores[want->count] = scores[i];
        want->ids[want->count] = ids[i];
        want->open[want->count++] = 1;
        float last = scores[i];
        for (size_t j = 0; j < SL_BEST_SCORES; j++) {
            if (!(last > want->near[j])) continue;
            float moved = want->near[j];
            want->near[j] = last;
            last = moved;
        }
    }
    kernels->walk.admit(all, scores, ids, n);
    size_t wrong = differences(want, all);
    for (size_t j = 0; j < all->best_count; j++)
        wrong += want->near[j] != all->best_scores[j];
    expect(count, all->count == want->count && !wrong, "%s admits of %zu: %zu there, not %zu; %zu differ",
           sl_isa_name(kernels->isa), n, all->count, want->count, wrong);
}

static void take_best(const sl_kernels *kernels, plain *want, sl_candidates *all, check_count *count) {
    float most = -INFINITY;
    for (size_t i = 0; i < want->count; i++)
        if (want->open[i] && want->scores[i] > most) most = want->scores[i];
    size_t place = kernels->walk.best(all);
    if (most == -INFINITY || place == SL_NO_PLACE) {
        expect(count, place == SL_NO_PLACE && most == -INFINITY, "%s best of %zu: place %zu, best %g",
               sl_isa_name(kernels->isa), want->count, place, (double)most);
        return;
    }
    int right = place < want->count && want->open[place] && want->scores[place] == most;
    expect(count, right, "%s best of %zu: place %zu does not hold %g", sl_isa_name(kernels->isa), want->count, place,
           (double)most);
    if (right) want->open[place] = 0;
    expect(count, !differences(want, all), "%s best of %zu: others have changed", sl_isa_name(kernels->isa),
           want->count);
}

/* The best stay, in their order. Then the list follows what the kernel chose among equals. */
static void keep_best(const sl_kernels *kernels, plain *want, sl_candidates *all, uint32_t wanted, check_count *count) {
    uint32_t most = wanted + (uint32_t)(random_bits() % 3 * wanted / 4);
    static float sorted[ROOM];
    size_t before = want->count, kept = 0, wrong = 0;
    memcpy(sorted, want->scores, before * sizeof *sorted);
    qsort(sorted, before, sizeof *sorted, falling);
    kernels->walk.keep(all, wanted, most);
    for (size_t i = 0; i < before && kept < all->count; i++) {
        if (want->ids[i] != all->ids[kept] || want->scores[i] != all->scores[kept]) continue;
        want->scores[kept] = want->scores[i];
        want->ids[kept] = want->ids[i];
        want->open[kept++] = want->open[i];
    }
    want->count = kept;
    wrong += kept != all->count || differences(want, all);
    float *left = malloc((kept + 1) * sizeof *left);
    memcpy(left, all->scores, kept * sizeof *left);
    qsort(left, kept, sizeof *left, falling);
    for (size_t i = 0; i < kept; i++)
        wrong += left[i] != sorted[i];
    expect(count, !wrong && (before <= most ? kept == before : kept >= wanted && kept <= most),
           "%s keeps %zu of %zu for %u to %u: %zu wrong", sl_isa_name(kernels->isa), kept, before, wanted, most, wrong);
    int right = kept == before ? all->threshold == want->threshold
                               : all->threshold >= sorted[kept] && kept && !(all->threshold > left[kept - 1]);
    expect(count, right, "%s keeps %zu of %zu: threshold %g", sl_isa_name(kernels->isa), kept, before,
           (double)all->threshold);
    want->threshold = all->threshold;
    free(left);
}

void check_candidates(const sl_kernels *kernels, check_count *count) {
    static plain want;
    arrays a = arrays_new();
    size_t most = 0;
    for (uint64_t round = 0; round < 60; round++) {
        size_t large = round % 10 == 9 ? 10 : 1;
        kernels->walk.empty(&a.all);
        a.all.best_count = round % (SL_BEST_SCORES + 1);
        want.count = 0;
        want.threshold = -INFINITY;
        for (size_t j = 0; j < SL_BEST_SCORES; j++)
            want.near[j] = -INFINITY;
        take_best(kernels, &want, &a.all, count);
        for (uint64_t turn = 0; turn < 40 * large; turn++) {
            size_t n = (size_t)(random_bits() % (turn % 5 ? 40 : 300));
            if (want.count + n <= ROOM) offer(kernels, &want, &a.all, n, count);
            for (uint64_t pops = random_bits() % 4; pops; pops--)
                take_best(kernels, &want, &a.all, count);
            float bound = any_score();
            size_t from = 0;
            for (size_t i = 0; i < want.count; i++)
                from += want.scores[i] >= bound;
            expect(count, kernels->walk.at_least(a.all.scores, a.all.count, bound) == from, "%s counts from %g",
                   sl_isa_name(kernels->isa), (double)bound);
            most = want.count > most ? want.count : most;
            if (large == 1 ? random_bits() % 4 == 0 : want.count > MANY)
                keep_best(kernels, &want, &a.all, 1 + (uint32_t)(random_bits() % (round % 2 ? 30 : 400) * large),
                          count);
        }
        for (size_t left = large > 1 ? 200 : want.count + 1; left; left--)
            take_best(kernels, &want, &a.all, count);
    }
    expect(count, most > 10000, "no more than %zu candidates at the end",
           most); /* tiers differ from some thousand on */
    for (size_t i = 0; i < sizeof a.memory / sizeof *a.memory; i++)
        guarded_free(&a.memory[i]);
}

void check_split_byte(const sl_kernels *kernels, check_count *count) {
    enum { MOST = 600 };
    static const float scales[] = {1, 1e-30f, 1e30f, 1e-44f, 0, INFINITY, NAN};
    for (size_t n = 1; n <= MOST; n += n < 70 ? 1 : 53)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            guarded x_memory = guarded_new(n * sizeof(float)), code_memory = guarded_new(n);
            float *x = (float *)(void *)x_memory.end - n, given[MOST], most = 0;
            int8_t *code = (int8_t *)code_memory.end - n;
            for (size_t i = 0; i < n; i++) {
                given[i] = x[i] = random_float() * scales[i % 40 == 7 ? s : s % 5];
                most = isnan(x[i]) ? INFINITY : fabsf(x[i]) > most ? fabsf(x[i]) : most;
            }
            int32_t sum, total = 0;
            float unit = kernels->split_byte(x, n, code, &sum);
            int usable = most / 127 > 0 && isfinite(127 / most) && isfinite(most);
            size_t wrong = usable ? unit != most / 127 : unit != 0;
            for (size_t i = 0; i < n; i++) {
                total += code[i];
                if (!isfinite(given[i])) continue;
                float quotient = unit > 0 ? given[i] * (1 / unit) : 0;
                wrong += code[i] != (int)nearbyintf(quotient) || x[i] != given[i] - (float)code[i] * unit;
            }
            expect(count, !wrong && sum == total, "%s bytes of %zu floats of scale %g: unit %g, sum %d; %zu wrong",
                   sl_isa_name(kernels->isa), n, (double)scales[s], (double)unit, sum, wrong);
            guarded_free(&x_memory);
            guarded_free(&code_memory);
        }
}

/* Every tier has the bits of plain additions in sixteen lanes. */
void check_level_sums(const sl_kernels *kernels, check_count *count) {
    enum { MOST = 600, LANES = 16, BLOCK = 256 };
    for (size_t n = 1; n <= MOST; n += n < 70 ? 1 : 53) {
        guarded memory = guarded_new(n * sizeof(float));
        float *x = (float *)(void *)memory.end - n, products[LANES] = {0}, squares[LANES] = {0};
        const float inverse = 8 / (random_float() + 1.5f);
        double product, square, want_product = 0, want_square = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = i % 50 == 9 ? 1e30f * random_float() : random_float();
            float level = sl_level_at(sl_level_number(x[i], inverse)), floored = floorf(x[i] * inverse);
            floored = floored < -8 ? -8 : floored > 7 ? 7 : floored;
            expect(count, level == 2 * floored + 1, "%g of step 1 / %g has level %g", (double)x[i], (double)inverse,
                   (double)level);
            products[i % BLOCK % LANES] += x[i] * level;
            squares[i % BLOCK % LANES] += level * level;
            if (i % BLOCK != BLOCK - 1 && i != n - 1) continue;
            for (size_t lane = 0; lane < LANES; lane++) {
                want_product += (double)products[lane];
                want_square += (double)squares[lane];
                products[lane] = squares[lane] = 0;
            }
        }
        kernels->level_sums(x, n, inverse, &product, &square);
        expect(count, product == want_product && square == want_square, "%s sums %zu levels to %g, %g",
               sl_isa_name(kernels->isa), n, product, square);
        guarded_free(&memory);
    }
}

void check_sign_bytes(const sl_kernels *kernels, check_count *count) {
    enum { MOST = 600 };
    for (size_t n = 1; n <= MOST; n += n < 70 ? 1 : 53) {
        guarded bytes_memory = guarded_new(n), code_memory = guarded_new(n);
        uint8_t *bytes = (uint8_t *)bytes_memory.end - n;
        int8_t *code = (int8_t *)code_memory.end - n;
        int32_t sum = 0;
        size_t wrong = 0;
        for (size_t i = 0; i < n; i++) {
            bytes[i] = (uint8_t)random_bits();
            sum += bytes[i] - 128;
        }
        const int32_t got = kernels->sign_bytes(bytes, n, code);
        for (size_t i = 0; i < n; i++)
            wrong += code[i] != bytes[i] - 128;
        expect(count, got == sum && !wrong, "%s signs %zu bytes: sum %d; %zu wrong", sl_isa_name(kernels->isa), n, got,
               wrong);
        guarded_free(&bytes_memory);
        guarded_free(&code_memory);
    }
}
