/* Objects of all-reduce: the algorithms that they choose among, by the bytes of a sum. */
#include "cluster/allreduce/allreduce.h"
#include "base/random.h"
#include "cluster/allreduce/scheme.h"

#include <math.h>

/* Algorithms of an object at most. */
enum { CHOICES_MAX = 32 };

/* One algorithm of an object, for sums of up to `max_count` numbers. */
typedef struct choice {
    size_t max_count;
    sl_allreduce_params params;
    sl_scheme scheme;
} choice;

struct sl_allreduce {
    sl_allocator allocator;
    sl_comm comm; /* a copy of the caller's */
    size_t max_count, choice_count;
    choice *choices; /* by rising max_count; the last one serves max_count */
};

static choice *choice_for(const sl_allreduce *reduce, size_t count) {
    size_t i = 0;
    while (i + 1 < reduce->choice_count && count > reduce->choices[i].max_count)
        i++;
    return &reduce->choices[i];
}

/* ---- Life ---- */

/* Fails if the ranks give different parameters: their transfers would not meet. */
static sl_status check_alike(const sl_comm *comm, const sl_allreduce_params *params, size_t max_count) {
    const size_t given[] = {
        params->algorithm,        params->rows,        params->columns,       params->wire,  params->lane, params->sync,
        params->put_reduces != 0, params->shared != 0, params->machine_ranks, params->chunk, max_count};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        hash = sl_random_mix(hash + given[i] + i);
    uint64_t least = hash, most = hash;
    SL_TRY(sl_comm_min(comm, &least));
    SL_TRY(sl_comm_max(comm, &most));
    if (least == most) return SL_OK;
    return sl_fail(SL_EINVAL, "the ranks give an all-reduce different parameters or counts; give all the same");
}

/* Adds an algorithm for sums of up to max_count numbers. */
static sl_status add_choice(sl_allreduce *reduce, const sl_allreduce_params *params, size_t max_count) {
    choice *added = &reduce->choices[reduce->choice_count];
    *added = (choice){.max_count = max_count, .params = *params};
    sl_status status = sl_scheme_choose(&added->params, reduce->comm.ranks);
    SL_TRY(sl_comm_agree(&reduce->comm, status));
    reduce->choice_count++;
    status = sl_scheme_create(&reduce->comm, &added->params, max_count, &reduce->allocator, &added->scheme);
    return sl_comm_agree(&reduce->comm, status);
}

/* Bytes up to which a sum takes less time than the start of many messages. */
enum { SMALL_BYTES = 4096 };

/* The algorithms of `auto` without a table: MPI's own for few bytes, else the one of the fewest steps. */
static sl_status add_by_rule(sl_allreduce *reduce, const sl_allreduce_params *params) {
    const size_t ranks = reduce->comm.ranks, small = SMALL_BYTES / sl_wire_size(params->wire);
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

static sl_status set_up(sl_allreduce *reduce, const sl_allreduce_params *params) {
    sl_status status = SL_OK;
    reduce->choices = sl_mem_array(&reduce->allocator, CHOICES_MAX, sizeof *reduce->choices, &status);
    SL_TRY(sl_comm_agree(&reduce->comm, status));
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
    SL_FREE_ARRAY(&allocator, reduce->choices, CHOICES_MAX);
    sl_comm_free(&reduce->comm);
    SL_FREE(&allocator, reduce);
}

/* ---- Run ---- */

sl_status sl_allreduce_run(sl_allreduce *reduce, float *numbers, size_t count) {
    if (count > reduce->max_count)
        return sl_fail(SL_EINVAL, "an all-reduce of at most %zu numbers gets %zu", reduce->max_count, count);
    return sl_scheme_run(&choice_for(reduce, count)->scheme, numbers, count);
}

sl_allreduce_params sl_allreduce_used(const sl_allreduce *reduce, size_t count) {
    return choice_for(reduce, count)->scheme.params;
}

sl_allreduce_cost sl_allreduce_cost_of(const sl_allreduce *reduce, size_t count) {
    sl_allreduce_cost cost = {.messages = 0};
    sl_scheme_cost(&choice_for(reduce, count)->scheme, count, &cost);
    return cost;
}

double sl_allreduce_bound(const sl_allreduce *reduce, size_t count) {
    const sl_allreduce_cost cost = sl_allreduce_cost_of(reduce, count);
    return expm1((double)cost.sums * log1p(0x1p-24) + (double)cost.roundings * log1p(0x1p-8));
}
