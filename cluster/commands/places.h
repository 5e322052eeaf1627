/* Where the ranks of the job run: machines, CPUs, threads. */
#ifndef SL_CLUSTER_COMMANDS_PLACES_H
#define SL_CLUSTER_COMMANDS_PLACES_H

#include "base/status.h"

#include <stdio.h>

/* Where a rank runs. */
typedef struct place {
    char host[128];
    char cpus[256]; /* that the system lets it use: "0-3,8"; and the sockets that they lie in */
    char sockets[64];
    uint64_t cpu_count, threads;
} place;

/* Gathers the places of all ranks, to be freed by free(). `threads`: of this rank; 0: as many as it may use. */
sl_status places_gather(size_t threads, place **out);
/* The threads of this rank: `asked`. If that is 0 and the environment has no OMP_NUM_THREADS: this rank's CPUs, shared
 * with the other ranks of the machine that have the same CPUs. If it has one: 0, by which calls of the library take
 * OMP_NUM_THREADS. Every rank calls it. */
sl_status places_threads(size_t asked, size_t *out);
void places_print(FILE *file, const place *places);

#endif
