#define _GNU_SOURCE
#include "cluster/commands/places.h"

#include "base/thread.h"
#include "cluster/commands/ranks.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Appends a range of numbers, "3" or "3-5". */
static void append_range(char *text, size_t size, size_t first, size_t last) {
    size_t used = strlen(text);
    const char *comma = used ? "," : "";
    if (first == last)
        snprintf(text + used, size - used, "%s%zu", comma, first);
    else
        snprintf(text + used, size - used, "%s%zu-%zu", comma, first, last);
}

/* Writes the numbers in a set as ranges. */
static void write_ranges(const cpu_set_t *set, char *text, size_t size) {
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        size_t first = i;
        if (!CPU_ISSET(i, set)) continue;
        while (i + 1 < CPU_SETSIZE && CPU_ISSET(i + 1, set))
            i++;
        append_range(text, size, first, i);
    }
}

/* Returns the socket of a CPU, as Linux numbers them; CPU_SETSIZE if it does not say. */
static size_t socket_of(size_t cpu) {
    char path[96];
    size_t socket = CPU_SETSIZE;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/physical_package_id", cpu);
    FILE *file = fopen(path, "r");
    if (!file) return CPU_SETSIZE;
    if (fscanf(file, "%zu", &socket) != 1) socket = CPU_SETSIZE;
    fclose(file);
    return socket < CPU_SETSIZE ? socket : CPU_SETSIZE;
}

static void describe_cpus(place *place) {
    cpu_set_t cpus, sockets;
    CPU_ZERO(&cpus);
    CPU_ZERO(&sockets);
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return;
    place->cpu_count = (uint64_t)CPU_COUNT(&cpus);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        const size_t socket = CPU_ISSET(cpu, &cpus) ? socket_of(cpu) : CPU_SETSIZE;
        if (socket < CPU_SETSIZE) CPU_SET(socket, &sockets);
    }
    write_ranges(&cpus, place->cpus, sizeof place->cpus);
    write_ranges(&sockets, place->sockets, sizeof place->sockets);
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
    /* Every rank gathers, because the environments of machines may differ. */
    sl_status status = places_gather(0, &all);
    if (status != SL_OK) {
        free(all);
        return status;
    }
    const place *mine = &all[comm->rank];
    size_t sharing = 0;
    for (size_t r = 0; r < comm->ranks; r++)
        sharing += strcmp(all[r].host, mine->host) == 0 && strcmp(all[r].cpus, mine->cpus) == 0;
    if (!asked && !getenv("OMP_NUM_THREADS")) *out = mine->cpu_count > sharing ? (size_t)mine->cpu_count / sharing : 1;
    free(all);
    return SL_OK;
}

/* Returns how many ranks run on the same sockets of the same machine. */
static size_t ranks_beside(const place *places, size_t rank) {
    size_t count = 0;
    for (size_t r = 0; r < ranks()->ranks; r++)
        count += strcmp(places[r].host, places[rank].host) == 0 && strcmp(places[r].sockets, places[rank].sockets) == 0;
    return count;
}

void places_print(FILE *file, const place *places) {
    for (size_t r = 0; r < ranks()->ranks; r++)
        fprintf(file, "rank %zu: %s, socket %s (%zu ranks), CPUs %s, %llu threads\n", r, places[r].host,
                *places[r].sockets ? places[r].sockets : "?", ranks_beside(places, r), places[r].cpus,
                (unsigned long long)places[r].threads);
}
