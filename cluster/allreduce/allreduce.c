/* Objects of all-reduce: the algorithms that they choose among, by the bytes of a sum. */
#include "cluster/allreduce/allreduce.h"
#include "base/random.h"
#include "cluster/allreduce/scheme.h"
#include "cluster/allreduce/shared.h"
#include "cluster/allreduce/tuning.h"

#include <math.h>
#include <stdio.h>

/* Algorithms of an object at most. */
enum { CHOICES_MAX = SL_TUNING_MAX };

/* One algorithm of an object, for sums of up to `max_count` numbers. */
typedef struct choice {
    size_t max_count;
    int is_shared;            /* ranks of a machine add up first */
    uint64_t sums, roundings; /* of a number, on all ranks alike */
    sl_scheme scheme;         /* of the ranks on the wire; none on the others */
} choice;

struct sl_allreduce {
    sl_allocator allocator;
    sl_comm comm; /* a copy of the caller's */
    sl_shared shared;
    int has_shared; /* the window for ranks of a machine is there */
    size_t max_count, choice_count;
    choice *choices; /* by rising max_count; the last one serves max_count */
};

static choice *choice_for(const sl_allreduce *reduce, size_t count) {
    size_t i = 0;
    while (i + 1 < reduce->choice_count && count > reduce->choices[i].max_count)
        i++;
    return &reduce->choices[i];
}

/* ---- Algorithms ---- */

static uint64_t hash_of_table(const sl_tuning *table) {
    uint64_t hash = table->ranks + table->count;
    for (size_t i = 0; i < table->count; i++) {
        const sl_allreduce_params *params = &table->entries[i].params;
        hash = sl_random_mix(hash + table->entries[i].bytes) + params->algorithm + 16 * params->rows;
        hash = sl_random_mix(hash + params->columns) + params->lane + 2 * params->sync;
        hash += 4 * (uint64_t)(params->put_reduces != 0) + 8 * (uint64_t)(params->shared != 0);
    }
    return hash;
}

/* Fails if the ranks give different parameters: their transfers would not meet. */
static sl_status check_alike(const sl_comm *comm, const sl_allreduce_params *params, size_t max_count) {
    const size_t given[] = {
        params->algorithm,        params->rows,        params->columns,       params->wire,  params->lane, params->sync,
        params->put_reduces != 0, params->shared != 0, params->machine_ranks, params->chunk, max_count};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        hash = sl_random_mix(hash + given[i] + i);
    if (params->tuning) hash = sl_random_mix(hash + hash_of_table(params->tuning));
    uint64_t least = hash, most = hash;
    SL_TRY(sl_comm_min(comm, &least));
    SL_TRY(sl_comm_max(comm, &most));
    if (least == most) return SL_OK;
    return sl_fail(SL_EINVAL, "the ranks give an all-reduce different parameters or counts; give all the same");
}

/* The ranks that go on the wire for a choice, and whether this one does. */
static const sl_comm *wire_of(const sl_allreduce *reduce, int is_shared) {
    return is_shared ? &reduce->shared.leaders : &reduce->comm;
}
static size_t wire_ranks(const sl_allreduce *reduce, int is_shared) {
    return is_shared ? reduce->shared.machines : reduce->comm.ranks;
}
static int is_on_wire(const sl_allreduce *reduce, const choice *choice) {
    return !choice->is_shared || reduce->shared.ranks.rank == 0;
}

/* Adds an algorithm for sums of up to max_count numbers. */
static sl_status add_choice(sl_allreduce *reduce, const sl_allreduce_params *params, size_t max_count) {
    choice *added = &reduce->choices[reduce->choice_count];
    sl_allreduce_params chosen = *params;
    sl_allreduce_cost cost = {.messages = 0};
    const int is_shared = params->shared && reduce->has_shared;
    sl_status status = sl_scheme_choose(&chosen, wire_ranks(reduce, is_shared));
    SL_TRY(sl_comm_agree(&reduce->comm, status));
    *added = (choice){.max_count = max_count, .is_shared = is_shared, .scheme.op = MPI_OP_NULL};
    reduce->choice_count++;
    if (is_on_wire(reduce, added)) {
        status = sl_scheme_create(wire_of(reduce, is_shared), &chosen, max_count, &reduce->allocator, &added->scheme);
        if (status == SL_OK && max_count) sl_scheme_cost(&added->scheme, 1, &cost);
    }
    SL_TRY(sl_comm_agree(&reduce->comm, status));
    /* The others learn what the windows' proof has left. */
    uint64_t left[] = {cost.sums, cost.roundings, added->scheme.params.algorithm};
    SL_TRY(sl_comm_broadcast(&reduce->comm, left, sizeof left, 0));
    chosen.algorithm = (sl_allreduce_algorithm)left[2];
    added->scheme.params = chosen;
    added->sums = left[0] + (is_shared ? reduce->shared.most - 1 : 0);
    added->roundings = left[1];
    return SL_OK;
}

/* Bytes up to which a sum takes less time than the start of many messages. */
enum { SMALL_BYTES = 4096 };

/* The algorithms of `auto` without a table: MPI's own for few bytes, else the one of the fewest steps. */
static sl_status add_by_rule(sl_allreduce *reduce, const sl_allreduce_params *params) {
    const size_t ranks = wire_ranks(reduce, params->shared && reduce->has_shared),
                 small = SMALL_BYTES / sl_wire_size(params->wire);
    sl_allreduce_params rule = *params;
    rule.algorithm = SL_ALLREDUCE_MPI;
    rule.rows = rule.columns = 0;
    SL_TRY(add_choice(reduce, &rule, reduce->max_count < small ? reduce->max_count : small));
    if (reduce->max_count <= small) return SL_OK;
    const int is_power = (ranks & (ranks - 1)) == 0;
    rule.algorithm = is_power ? SL_ALLREDUCE_RABENSEIFNER : SL_ALLREDUCE_TORUS;
    rule.lane = SL_LANE_HALVING;
    rule.columns = is_power ? 0 : ranks;
    return add_choice(reduce, &rule, reduce->max_count);
}

/* ---- `auto` by a table ---- */

/* Finds the caller's table, if it is of a job like this one. */
static sl_status find_table(const sl_allreduce *reduce, const sl_allreduce_params *params, const sl_tuning **table) {
    sl_tuning job;
    char why[256], line[320];
    if (!params->tuning) return SL_OK;
    SL_TRY(sl_tuning_describe(&reduce->comm, params->wire, &job));
    if (sl_tuning_fits(params->tuning, &job, why, sizeof why)) {
        *table = params->tuning;
        return SL_OK;
    }
    snprintf(line, sizeof line, "all-reduce: the table of 'tune' is not used: %s", why);
    if (params->log && reduce->comm.rank == 0) params->log(params->log_ctx, SL_LOG_WARN, line);
    return SL_OK;
}

static int uses_shared(const sl_tuning *table) {
    for (size_t i = 0; i < table->count; i++)
        if (table->entries[i].params.shared) return 1;
    return 0;
}

static sl_status add_by_table(sl_allreduce *reduce, const sl_allreduce_params *params, const sl_tuning *table) {
    for (size_t i = 0; i < table->count; i++) {
        const sl_tuning_entry *entry = &table->entries[i];
        const size_t count = entry->bytes / sizeof(float);
        const int is_last = i + 1 == table->count || count >= reduce->max_count;
        sl_allreduce_params chosen = entry->params;
        chosen.wire = params->wire;
        chosen.machine_ranks = params->machine_ranks;
        chosen.chunk = params->chunk;
        chosen.log = params->log;
        chosen.log_ctx = params->log_ctx;
        SL_TRY(add_choice(reduce, &chosen, is_last ? reduce->max_count : count));
        if (is_last) return SL_OK;
    }
    return SL_OK;
}

/* ---- Life ---- */

/* Sums a few numbers through the window. Returns SL_EIO if one is wrong. */
static sl_status try_shared(sl_shared *shared) {
    float numbers[2 * SL_CACHE_LINE];
    const size_t count = shared->chunk < 2 * SL_CACHE_LINE ? shared->chunk : 2 * SL_CACHE_LINE;
    const size_t ranks = shared->ranks.ranks;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)(i * (shared->ranks.rank + 1));
    SL_TRY(sl_shared_reduce(shared, numbers, count));
    SL_TRY(sl_shared_spread(shared, numbers, count));
    for (size_t i = 0; i < count; i++)
        if (numbers[i] != (float)(i * (ranks * (ranks + 1) / 2)))
            return sl_fail(SL_EIO, "a sum through shared memory is wrong");
    return SL_OK;
}

/* Makes the shared window. The ranks go on the wire one by one if it fails. */
static sl_status set_up_shared(sl_allreduce *reduce, const sl_allreduce_params *params) {
    char line[SL_ERROR_SIZE + 128];
    sl_status status = sl_shared_create(&reduce->comm, params, reduce->max_count, &reduce->shared);
    status = sl_comm_agree(&reduce->comm, status);
    if (status == SL_OK && reduce->max_count) status = sl_comm_agree(&reduce->comm, try_shared(&reduce->shared));
    reduce->has_shared = status == SL_OK;
    reduce->shared.is_proven = 1;
    if (status == SL_OK || sl_comm_is_broken(&reduce->comm)) return status;
    snprintf(line, sizeof line, "all-reduce: every rank goes on the wire, since %s", sl_last_error());
    if (params->log && reduce->comm.rank == 0) params->log(params->log_ctx, SL_LOG_WARN, line);
    sl_shared_free(&reduce->shared);
    return SL_OK;
}

static sl_status set_up(sl_allreduce *reduce, const sl_allreduce_params *params) {
    sl_status status = SL_OK;
    const sl_tuning *table = NULL;
    if (params->algorithm == SL_ALLREDUCE_AUTO) SL_TRY(find_table(reduce, params, &table));
    if (table ? uses_shared(table) : params->shared) SL_TRY(set_up_shared(reduce, params));
    reduce->choices = sl_mem_array(&reduce->allocator, CHOICES_MAX, sizeof *reduce->choices, &status);
    SL_TRY(sl_comm_agree(&reduce->comm, status));
    if (table) return add_by_table(reduce, params, table);
    if (params->algorithm == SL_ALLREDUCE_AUTO) return add_by_rule(reduce, params);
    return add_choice(reduce, params, reduce->max_count);
}

sl_status sl_allreduce_create(const sl_comm *comm, const sl_allreduce_params *params, size_t max_count,
                              sl_allreduce **out) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_status status = sl_allreduce_params_check(params);
    *out = NULL;
    SL_TRY(sl_comm_agree(comm, status));
    SL_TRY(check_alike(comm, params, max_count));
    sl_allreduce *reduce = sl_mem_array(&allocator, 1, sizeof *reduce, &status);
    SL_TRY(sl_comm_agree(comm, status));
    *reduce = (sl_allreduce){.allocator = allocator, .max_count = max_count};
    status = sl_comm_split(comm, 0, comm->rank, &reduce->comm);
    if (status == SL_OK) status = set_up(reduce, params);
    if (status == SL_OK)
        *out = reduce;
    else
        sl_allreduce_free(reduce);
    return status;
}

void sl_allreduce_free(sl_allreduce *reduce) {
    if (!reduce) return;
    const sl_allocator allocator = reduce->allocator;
    for (size_t i = 0; i < reduce->choice_count; i++)
        sl_scheme_free(&reduce->choices[i].scheme);
    sl_shared_free(&reduce->shared);
    SL_FREE_ARRAY(&allocator, reduce->choices, CHOICES_MAX);
    sl_comm_free(&reduce->comm);
    SL_FREE(&allocator, reduce);
}

/* ---- Run ---- */

sl_status sl_allreduce_run(sl_allreduce *reduce, float *numbers, size_t count) {
    if (count > reduce->max_count)
        return sl_fail(SL_EINVAL, "an all-reduce of at most %zu numbers gets %zu", reduce->max_count, count);
    choice *chosen = choice_for(reduce, count);
    if (!chosen->is_shared) return sl_scheme_run(&chosen->scheme, numbers, count);
    SL_TRY(sl_shared_reduce(&reduce->shared, numbers, count));
    if (reduce->shared.machines == 1) return SL_OK;
    if (is_on_wire(reduce, chosen)) SL_TRY(sl_scheme_run(&chosen->scheme, numbers, count));
    return sl_shared_spread(&reduce->shared, numbers, count);
}

sl_allreduce_params sl_allreduce_used(const sl_allreduce *reduce, size_t count) {
    const choice *chosen = choice_for(reduce, count);
    sl_allreduce_params used = chosen->scheme.params;
    used.shared = chosen->is_shared;
    return used;
}

sl_allreduce_cost sl_allreduce_cost_of(const sl_allreduce *reduce, size_t count) {
    sl_allreduce_cost cost = {.messages = 0};
    const choice *chosen = choice_for(reduce, count);
    if (is_on_wire(reduce, chosen)) sl_scheme_cost(&chosen->scheme, count, &cost);
    cost.sums = count ? chosen->sums : 0;
    cost.roundings = count ? chosen->roundings : 0;
    return cost;
}

double sl_allreduce_bound(const sl_allreduce *reduce, size_t count) {
    const sl_allreduce_cost cost = sl_allreduce_cost_of(reduce, count);
    return expm1((double)cost.sums * log1p(0x1p-24) + (double)cost.roundings * log1p(0x1p-8));
}
