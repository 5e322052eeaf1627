#define _GNU_SOURCE
/* query_worker INDEX SOCKET [WORKERS]: answers queries over a Unix socket, by one process a physical core.
 *
 * The parent listens and forks; each worker pins itself to a core of its own, opens the index, and takes connections
 * from the common socket. All of them map one file, so its pages are in memory once. No worker writes to memory that
 * another reads. SIGTERM or SIGINT ends them all.
 *
 * A request is a u32 k and dim f32 in the machine's byte order. The answer is a u32 count, then that many u64 ids and
 * f32 scores, best first. A count of 2^32 - 1 means that the worker refused the request and closes the connection. A
 * worker serves a connection until the other side closes it.
 *
 * numactl chooses where the kernel places the pages. `numactl --interleave=all query_worker ...` spreads them over the
 * nodes, which is best if workers of several nodes share one index. */
#include <shortlist.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WORKERS = 1024, MOST_K = 1000, EF = 100 };

/* ---------------------------------------------------------------------------------------------------------------
 * Cores
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns whether this CPU is the first of its physical core. Says yes if the system doesn't show the cores. */
static int is_first_of_core(size_t cpu) {
    char path[96];
    size_t first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "r");
    if (!file) return 1;
    if (fscanf(file, "%zu", &first) != 1) first = cpu;
    fclose(file);
    return first == cpu;
}

/* Lists the cores this process may use, each by its first CPU. Returns how many. */
static size_t find_cores(size_t *cores) {
    cpu_set_t allowed;
    size_t count = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE && count < MOST_WORKERS; cpu++)
        if (CPU_ISSET(cpu, &allowed) && is_first_of_core(cpu)) cores[count++] = cpu;
    return count;
}

static void pin_to_cpu(size_t cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) perror("query_worker: cannot pin a worker");
}

/* ---------------------------------------------------------------------------------------------------------------
 * A worker
 * ------------------------------------------------------------------------------------------------------------- */

struct worker {
    sl_index *index;
    sl_searcher *searcher;
    size_t dim;
    float *query;
    uint64_t ids[MOST_K];
    float scores[MOST_K];
};

static int read_all(int socket, void *data, size_t size) {
    ssize_t got;
    do
        got = recv(socket, data, size, MSG_WAITALL);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

static int write_all(int socket, const void *data, size_t size) {
    const char *from = data;
    while (size) {
        ssize_t sent = send(socket, from, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return 0;
        from += sent;
        size -= (size_t)sent;
    }
    return 1;
}

/* Returns 1 after an answer, 0 if the connection is over. */
static int answer_request(struct worker *worker, int socket, uint32_t k) {
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = EF > k ? EF : k;
    uint32_t count = UINT32_MAX;
    if (k == 0 || k > MOST_K ||
        sl_searcher_search(worker->searcher, worker->query, SL_F32, k, &params, worker->ids, worker->scores, NULL) !=
            SL_OK) {
        (void)write_all(socket, &count, sizeof count);
        return 0;
    }
    for (count = 0; count < k && worker->ids[count] != SL_NO_ID;)
        count++;
    return write_all(socket, &count, sizeof count) && write_all(socket, worker->ids, count * sizeof *worker->ids) &&
           write_all(socket, worker->scores, count * sizeof *worker->scores);
}

static void serve_connection(struct worker *worker, int socket) {
    uint32_t k;
    while (read_all(socket, &k, sizeof k) && read_all(socket, worker->query, worker->dim * sizeof *worker->query) &&
           answer_request(worker, socket, k)) {
    }
    close(socket);
}

static int open_index(struct worker *worker, const char *path) {
    sl_index_stats stats = {.struct_size = sizeof stats};
    if (sl_index_open(path, NULL, &worker->index) != SL_OK || sl_index_get_stats(worker->index, &stats) != SL_OK ||
        sl_searcher_create(worker->index, MOST_K, &worker->searcher) != SL_OK) {
        fprintf(stderr, "query_worker: %s\n", sl_last_error());
        return 0;
    }
    worker->dim = stats.dim;
    worker->query = malloc(stats.dim * sizeof *worker->query);
    return worker->query != NULL;
}

/* Runs a worker, which ends with its parent. */
static int run_worker(const char *path, int listener, size_t cpu) {
    static struct worker worker;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    pin_to_cpu(cpu);
    if (!open_index(&worker, path)) return 1;
    for (;;) {
        int socket = accept(listener, NULL, NULL);
        if (socket >= 0)
            serve_connection(&worker, socket);
        else if (errno != EINTR && errno != ECONNABORTED)
            return 1;
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * The parent
 * ------------------------------------------------------------------------------------------------------------- */

static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "query_worker: %s: the path of a socket has fewer than %zu bytes\n", path,
                sizeof address.sun_path);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, SOMAXCONN) != 0) {
        fprintf(stderr, "query_worker: cannot listen at %s: %s\n", path, strerror(errno));
        return -1;
    }
    return listener;
}

int main(int argc, char **argv) {
    size_t cores[MOST_WORKERS];
    pid_t workers[MOST_WORKERS];
    size_t core_count = find_cores(cores);
    long wanted = argc == 4 ? strtol(argv[3], NULL, 10) : (long)core_count;
    if (argc < 3 || argc > 4 || wanted < 1 || wanted > (long)core_count) {
        fprintf(stderr, "usage: query_worker INDEX SOCKET [WORKERS]\nup to %zu workers here, one a core\n", core_count);
        return 2;
    }
    int listener = listen_at(argv[2]);
    if (listener < 0) return 1;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    size_t count = 0;
    for (; count < (size_t)wanted; count++) {
        workers[count] = fork();
        if (workers[count] == 0) {
            sigprocmask(SIG_UNBLOCK, &signals, NULL);
            _exit(run_worker(argv[1], listener, cores[count]));
        }
        if (workers[count] < 0) break;
    }
    /* A worker ends by itself only if it can't open the index. */
    int came = SIGCHLD;
    if (count == (size_t)wanted) sigwait(&signals, &came);
    for (size_t i = 0; i < count; i++)
        kill(workers[i], SIGTERM);
    while (wait(NULL) > 0 || errno == EINTR) {
    }
    unlink(argv[2]);
    return came == SIGCHLD;
}
