/* All-reduces measured in turn: what `allreduce` and `tune` do. */
#ifndef SL_CLUSTER_COMMANDS_REDUCE_RACE_H
#define SL_CLUSTER_COMMANDS_REDUCE_RACE_H

#include "cluster/allreduce/allreduce.h"
#include "cluster/allreduce/tuning.h"

/* Rounds of a race at most. */
enum { RACE_ROUNDS_MAX = 1000 };

/* One all-reduce that takes part. */
typedef struct racer {
    sl_allreduce_params params; /* asked for */
    sl_allreduce_params used;   /* what runs: another one if windows failed */
    sl_allreduce *reduce;
    double *seconds; /* of each round: the slowest rank's */
    size_t rounds;
    double median, least, most;         /* of the rounds */
    sl_comm_counts sent;                /* that this rank sent in one sum */
    sl_allreduce_cost cost;             /* by formula */
    double error, bound;                /* of --verify: share of the sum of magnitudes */
    int is_wrong, sends_other, differs; /* beyond the bound; other counts than the formula; bits differ by rank */
} racer;

/* Makes the racers' objects for sums of `count` numbers. All ranks call all of these together. */
sl_status race_prepare(racer *racers, size_t racer_count, size_t count);
/* Frees an object, and keeps its times. race_prepare makes it again. */
void race_rest(racer *racer);
/* Frees the objects and the times. */
void race_end(racer *racers, size_t racer_count);

/* Runs a sum of each racer and keeps its time. */
sl_status race_round(racer *racers, size_t racer_count, float *numbers, size_t count);
/* Computes median, least and most of the rounds. */
void race_rank(racer *racers, size_t racer_count);
/* Compares a racer's sums with exact ones on every rank, and its counts with the formula. */
sl_status race_verify(racer *racer, float *numbers, size_t count);

/* Adds all shapes, lanes and synchronisations that fit the ranks, with and without shared memory as the machines allow.
 * `job`: of sl_tuning_describe. Returns the number of racers, of at most `room`. */
size_t race_all(const sl_allreduce_params *base, const sl_tuning *job, racer *racers, size_t room);

#endif
