#include "cluster/commands/reduce_race.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "cli/common/interrupt.h"
#include "cli/common/percentiles.h"
#include "cluster/commands/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Life ---- */

static sl_status prepare(racer *racer, size_t count) {
    if (!racer->seconds) racer->seconds = calloc(RACE_ROUNDS_MAX, sizeof *racer->seconds);
    SL_TRY(sl_comm_agree(ranks(), racer->seconds ? SL_OK : sl_fail(SL_ENOMEM, "no memory for the rounds' times")));
    SL_TRY(sl_allreduce_create(ranks(), &racer->params, count, &racer->reduce));
    racer->used = sl_allreduce_used(racer->reduce, count);
    racer->cost = sl_allreduce_cost_of(racer->reduce, count);
    racer->bound = sl_allreduce_bound(racer->reduce, count);
    return SL_OK;
}

sl_status race_prepare(racer *racers, size_t racer_count, size_t count) {
    for (size_t i = 0; i < racer_count; i++)
        SL_TRY(prepare(&racers[i], count));
    return SL_OK;
}

void race_rest(racer *racer) {
    sl_allreduce_free(racer->reduce);
    racer->reduce = NULL;
}

void race_end(racer *racers, size_t racer_count) {
    for (size_t i = 0; i < racer_count; i++) {
        race_rest(&racers[i]);
        free(racers[i].seconds);
        racers[i].seconds = NULL;
    }
}

/* ---- Times ---- */

/* Times one sum. The slowest rank counts. */
static sl_status time_sum(racer *racer, float *numbers, size_t count) {
    SL_TRY(sl_comm_barrier(ranks()));
    const int64_t begin = sl_now_ns();
    SL_TRY(sl_allreduce_run(racer->reduce, numbers, count));
    uint64_t taken = (uint64_t)(sl_now_ns() - begin);
    SL_TRY(sl_comm_max(ranks(), &taken));
    if (racer->rounds < RACE_ROUNDS_MAX) racer->seconds[racer->rounds++] = (double)taken * 1e-9;
    return SL_OK;
}

sl_status race_round(racer *racers, size_t racer_count, float *numbers, size_t count) {
    SL_TRY(sl_comm_agree(ranks(), interrupted() ? sl_fail(SL_ECANCELED, "interrupted") : SL_OK));
    /* Sums of zeros stay small, however often they are summed. */
    memset(numbers, 0, count * sizeof *numbers);
    for (size_t i = 0; i < racer_count; i++)
        SL_TRY(time_sum(&racers[i], numbers, count));
    return SL_OK;
}

void race_rank(racer *racers, size_t racer_count) {
    for (size_t i = 0; i < racer_count; i++) {
        if (!racers[i].rounds) continue;
        racers[i].median = median(racers[i].seconds, racers[i].rounds);
        racers[i].least = racers[i].seconds[0];
        racers[i].most = racers[i].seconds[racers[i].rounds - 1];
    }
}

/* ---- Proof ---- */

/* Number i of a rank: of both signs, and of magnitudes that differ by three powers of ten. */
static float number_of(size_t rank, size_t i) {
    const uint64_t bits = sl_random_at(rank, i);
    return ((bits & 1) ? 1.0f : 1e-3f) * (float)((double)(bits >> 40) * 0x1p-23 - 1.0);
}

/* The largest difference from sums in double precision, as a share of the sum of magnitudes. */
static double error_of(const float *numbers, size_t count) {
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double sum = 0, magnitude = 0;
        for (size_t r = 0; r < ranks()->ranks; r++) {
            sum += (double)number_of(r, i);
            magnitude += fabs((double)number_of(r, i));
        }
        const double error = fabs((double)numbers[i] - sum);
        /* A sum that is no number is wrong too. */
        if (magnitude > 0 && !(error <= worst * magnitude)) worst = error / magnitude;
    }
    return worst;
}

sl_status race_verify(racer *racer, float *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = number_of(ranks()->rank, i);
    const sl_comm_counts before = sl_comm_counted(ranks());
    SL_TRY(sl_allreduce_run(racer->reduce, numbers, count));
    const sl_comm_counts after = sl_comm_counted(ranks());
    racer->sent = (sl_comm_counts){after.messages - before.messages, after.bytes - before.bytes};
    racer->error = error_of(numbers, count);
    uint64_t least = sl_crc32c(0, numbers, count * sizeof *numbers), most = least;
    uint64_t faults[2] = {!(racer->error <= racer->bound * (1 + 1e-9)),
                          racer->sent.messages != racer->cost.messages || racer->sent.bytes != racer->cost.bytes};
    SL_TRY(sl_comm_min(ranks(), &least));
    SL_TRY(sl_comm_max(ranks(), &most));
    SL_TRY(sl_comm_sum_counts(ranks(), faults, 2));
    racer->differs = least != most;
    racer->is_wrong = faults[0] > 0;
    racer->sends_other = faults[1] > 0;
    return SL_OK;
}

/* ---- All racers ---- */

typedef struct lineup {
    racer *racers;
    size_t count, room;
} lineup;

static void add(lineup *all, const sl_allreduce_params *params) {
    if (all->count < all->room) all->racers[all->count++] = (racer){.params = *params};
}

static void add_windows(lineup *all, sl_allreduce_params params) {
    params.algorithm = SL_ALLREDUCE_TORUS_PUT;
    for (params.sync = SL_SYNC_FENCE; params.sync <= SL_SYNC_PSCW; params.sync++)
        for (params.put_reduces = 0; params.put_reduces <= 1; params.put_reduces++)
            if (params.columns > 1) add(all, &params);
}

/* All algorithms among `on_wire` ranks. */
static void add_algorithms(lineup *all, sl_allreduce_params params, size_t on_wire) {
    for (int a = SL_ALLREDUCE_MPI; a < SL_ALLREDUCE_COUNT; a++) {
        params.algorithm = (sl_allreduce_algorithm)a;
        if (a != SL_ALLREDUCE_TORUS && a != SL_ALLREDUCE_TORUS_PUT) add(all, &params);
    }
    for (params.rows = 1; params.rows <= on_wire; params.rows++) {
        params.columns = on_wire / params.rows;
        if (params.rows * params.columns != on_wire) continue;
        params.algorithm = SL_ALLREDUCE_TORUS;
        params.lane = SL_LANE_HALVING;
        add(all, &params);
        add_windows(all, params);
        params.lane = SL_LANE_RING;
        if (params.rows > 1 && params.columns > 1) add(all, &params);
    }
}

size_t race_all(const sl_allreduce_params *base, const sl_tuning *job, racer *racers, size_t room) {
    lineup all = {.racers = racers, .room = room};
    sl_allreduce_params params = *base;
    params.rows = params.columns = 0;
    params.shared = 0;
    add_algorithms(&all, params, job->ranks);
    if (job->machine_ranks < 2) return all.count;
    params.shared = 1;
    params.algorithm = SL_ALLREDUCE_MPI;
    if (job->machines > 1)
        add_algorithms(&all, params, job->machines);
    else
        add(&all, &params);
    return all.count;
}
