#include "cli/eval.h"

#include "cli/report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Time for a request to reach every process before the pass begins. */
#define START_DELAY_NS 3000000

typedef struct request {
    size_t ef;
    int64_t start_ns;
} request;

typedef struct process {
    pid_t pid;  /* 0: ended and waited for */
    int socket; /* to it; -1: closed */
} process;

struct eval_procs {
    const eval_task *task;
    size_t count;
    process processes[];
};

/* 1 whole, 0 the other side is gone or this process was interrupted. */
static int send_all(int socket, const void *data, size_t size) {
    ssize_t sent;
    do
        sent = send(socket, data, size, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR && !interrupted());
    return sent == (ssize_t)size;
}

static int receive_all(int socket, void *data, size_t size) {
    ssize_t got;
    do
        got = recv(socket, data, size, MSG_WAITALL);
    while (got < 0 && errno == EINTR && !interrupted());
    return got == (ssize_t)size;
}

/* The life of one process: open, say so, then a pass for each request until the other side closes. */
static int serve(const eval_task *task, size_t number, int socket, float *latencies) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = task->place;
    params.log = report_log(&params.log_ctx);
    sl_index *index;
    eval_threads *threads = NULL;
    request request;
    eval_point point = {0};
    sl_status opened = sl_index_open(task->index_path, &params, &index);
    int status = opened == SL_OK ? EXIT_DONE : report_status(task->index_path, opened);
    if (status == EXIT_DONE) status = eval_threads_create(task, index, number * task->threads, &threads);
    while (status == EXIT_DONE && send_all(socket, &point, sizeof point) &&
           receive_all(socket, &request, sizeof request))
        status = eval_threads_pass(threads, request.ef, request.start_ns, latencies, &point);
    eval_threads_free(threads);
    sl_index_free(index);
    return status;
}

/* A signal of the terminal reaches the whole group; the process that was started by the user deals with it. */
static void leave_signals_to_parent(void) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
}

static int start_process(eval_procs *procs, size_t number, float *latencies) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return report_failure("cannot start process %zu of %zu: %s; ask for fewer", number + 1, procs->task->procs,
                              strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        leave_signals_to_parent();
        /* Held open here, the others' sockets would never tell them that the parent is gone. */
        for (size_t i = 0; i < procs->count; i++)
            close(procs->processes[i].socket);
        close(sockets[0]);
        _exit(serve(procs->task, number, sockets[1], latencies));
    }
    close(sockets[1]);
    if (pid < 0) {
        close(sockets[0]);
        return report_failure("cannot start process %zu of %zu: %s; ask for fewer", number + 1, procs->task->procs,
                              strerror(errno));
    }
    procs->processes[procs->count++] = (process){pid, sockets[0]};
    return EXIT_DONE;
}

/* Why a process does not answer; it has reported a failure of its own. */
static int report_silence(process *process) {
    int how = 0;
    if (interrupted()) return report_interrupted();
    while (waitpid(process->pid, &how, 0) < 0 && errno == EINTR)
        ;
    process->pid = 0;
    if (WIFSIGNALED(how))
        return report_failure("a measuring process was ended by signal %d (%s)", WTERMSIG(how),
                              strsignal(WTERMSIG(how)));
    return EXIT_FAILED;
}

void eval_procs_free(eval_procs *procs) {
    if (!procs) return;
    for (size_t i = 0; i < procs->count; i++) {
        close(procs->processes[i].socket);
        if (procs->processes[i].pid) kill(procs->processes[i].pid, SIGTERM);
    }
    for (size_t i = 0; i < procs->count; i++)
        while (procs->processes[i].pid && waitpid(procs->processes[i].pid, NULL, 0) < 0 && errno == EINTR)
            ;
    free(procs);
}

int eval_procs_create(const eval_task *task, float *latencies, eval_procs **out) {
    *out = NULL;
    eval_procs *procs = allocate(1, sizeof *procs + task->procs * sizeof *procs->processes);
    if (!procs) return EXIT_FAILED;
    procs->task = task;
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < task->procs; i++)
        status = start_process(procs, i, latencies + i * task->nq);
    for (size_t i = 0; status == EXIT_DONE && i < task->procs; i++) {
        eval_point ready;
        if (!receive_all(procs->processes[i].socket, &ready, sizeof ready))
            status = report_silence(&procs->processes[i]);
    }
    if (status == EXIT_DONE)
        *out = procs;
    else
        eval_procs_free(procs);
    return status;
}

int eval_procs_pass(eval_procs *procs, size_t ef, eval_point *point) {
    request request = {ef, now_ns() + START_DELAY_NS};
    *point = (eval_point){.ef = ef};
    for (size_t i = 0; i < procs->count; i++)
        if (!send_all(procs->processes[i].socket, &request, sizeof request))
            return report_silence(&procs->processes[i]);
    for (size_t i = 0; i < procs->count; i++) {
        eval_point part;
        if (!receive_all(procs->processes[i].socket, &part, sizeof part)) return report_silence(&procs->processes[i]);
        /* Every process asked the same queries. */
        point->recall = part.recall;
        point->evaluations = part.evaluations;
        point->qps += part.qps;
    }
    return EXIT_DONE;
}
