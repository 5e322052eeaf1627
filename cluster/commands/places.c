#define _GNU_SOURCE
#include "cluster/commands/places.h"

#include "base/thread.h"
#include "cluster/commands/ranks.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Appends the CPUs from first to last, "3" or "3-5". */
static void append_cpus(char *text, size_t size, size_t first, size_t last) {
    size_t used = strlen(text);
    const char *comma = used ? "," : "";
    if (first == last)
        snprintf(text + used, size - used, "%s%zu", comma, first);
    else
        snprintf(text + used, size - used, "%s%zu-%zu", comma, first, last);
}

static void describe_cpus(place *place) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return;
    place->cpu_count = (uint64_t)CPU_COUNT(&set);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        size_t first = cpu;
        if (!CPU_ISSET(cpu, &set)) continue;
        while (cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu + 1, &set))
            cpu++;
        append_cpus(place->cpus, sizeof place->cpus, first, cpu);
    }
}

sl_status places_gather(size_t threads, place **out) {
    const sl_comm *comm = ranks();
    place mine = {.threads = sl_thread_count(threads)};
    snprintf(mine.host, sizeof mine.host, "%s", sl_comm_host(comm));
    describe_cpus(&mine);
    *out = calloc(comm->ranks, sizeof **out);
    SL_TRY(sl_comm_agree(comm, *out ? SL_OK : sl_fail(SL_ENOMEM, "no memory for the list of ranks")));
    return sl_comm_gather(comm, &mine, sizeof mine, *out);
}

sl_status places_threads(size_t asked, size_t *out) {
    const sl_comm *comm = ranks();
    place *all;
    *out = asked;
    if (asked || getenv("OMP_NUM_THREADS")) return SL_OK;
    SL_TRY(places_gather(0, &all));
    const place *mine = &all[comm->rank];
    size_t sharing = 0;
    for (size_t r = 0; r < comm->ranks; r++)
        sharing += strcmp(all[r].host, mine->host) == 0 && strcmp(all[r].cpus, mine->cpus) == 0;
    *out = mine->cpu_count > sharing ? (size_t)mine->cpu_count / sharing : 1;
    free(all);
    return SL_OK;
}

void places_print(FILE *file, const place *places) {
    for (size_t r = 0; r < ranks()->ranks; r++)
        fprintf(file, "rank %zu: %s, CPUs %s, %llu threads\n", r, places[r].host, places[r].cpus,
                (unsigned long long)places[r].threads);
}
