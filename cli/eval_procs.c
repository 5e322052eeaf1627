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

/* A process says this when it is ready, and after each pass. */
typedef struct answer {
    int status;
    char message[1024]; /* where status is not EXIT_DONE */
    eval_point point;
} answer;

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

/* The life of one process: open, say so, then a pass for each request until the other side closes or one fails. */
static void serve(const eval_task *task, size_t number, int socket, float *latencies) {
    answer answer = {.status = EXIT_DONE};
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = task->place;
    params.log = report_log(&params.log_ctx);
    sl_index *index;
    eval_threads *threads = NULL;
    request request;
    report_keep(answer.message, sizeof answer.message);
    sl_status opened = sl_index_open(task->index_path, &params, &index);
    if (opened != SL_OK)
        answer.status = report_status(task->index_path, opened);
    else
        answer.status = eval_threads_create(task, index, number * task->threads, &threads);
    while (send_all(socket, &answer, sizeof answer) && answer.status == EXIT_DONE &&
           receive_all(socket, &request, sizeof request))
        answer.status = eval_threads_pass(threads, request.ef, request.start_ns, latencies, &answer.point);
    eval_threads_free(threads);
    sl_index_free(index);
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
        serve(procs->task, number, sockets[1], latencies);
        _exit(EXIT_DONE);
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

/* Why a process does not answer. */
static int report_silence(process *process) {
    int how = 0;
    if (interrupted()) return report_interrupted();
    while (waitpid(process->pid, &how, 0) < 0 && errno == EINTR)
        ;
    process->pid = 0;
    if (!WIFSIGNALED(how)) return report_failure("a measuring process ended with status %d", WEXITSTATUS(how));
    return report_failure("a measuring process was ended by signal %d (%s)", WTERMSIG(how), strsignal(WTERMSIG(how)));
}

static int take_answer(process *process, eval_point *point) {
    answer answer;
    if (!receive_all(process->socket, &answer, sizeof answer)) return report_silence(process);
    if (answer.status != EXIT_DONE) return report_failure("%s", answer.message);
    *point = answer.point;
    /* A signal may have come between two waits. */
    return interrupted() ? report_interrupted() : EXIT_DONE;
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
    eval_point ready;
    for (size_t i = 0; status == EXIT_DONE && i < task->procs; i++)
        status = take_answer(&procs->processes[i], &ready);
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
        int status = take_answer(&procs->processes[i], &part);
        if (status != EXIT_DONE) return status;
        /* Every process asked the same queries. */
        point->recall = part.recall;
        point->evaluations = part.evaluations;
        point->qps += part.qps;
    }
    return EXIT_DONE;
}
