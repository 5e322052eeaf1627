#include "cli/common/ending.h"
#include "cli/common/interrupt.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/index/storage.h"
#include "cli/search/eval.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct request {
    eval_setting setting;
    int batch;
} request;

/* A process sends this when it is ready, and after each pass. */
typedef struct answer {
    int status;
    char message[1024]; /* set if status is not EXIT_DONE */
    eval_pass pass;
    sl_index_numa numa; /* set for a task with a policy */
} answer;

typedef struct process {
    pid_t pid;  /* 0: ended and waited for */
    int socket; /* socket to the process; -1: closed */
    sl_index_numa numa;
} process;

struct eval_procs {
    const eval_task *task;
    eval_gate *gate;
    size_t count, wanted;
    struct pollfd *waits; /* `wanted` entries, like the processes */
    process processes[];
};

/* Returns 1 when all is sent, 0 if the other side is gone or this process was interrupted. */
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

/* Runs one process: opens the index, says so, and runs a pass for each request, until the other side closes or a pass
 * fails. */
static void serve_passes(const eval_task *task, size_t number, int socket, eval_gate *gate, float *latencies) {
    answer answer = {.status = EXIT_DONE};
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = task->place;
    params.numa = task->numa.policy;
    params.numa_node = task->numa.node;
    params.prefault = task->prefault;
    params.tier = task->tier;
    params.log = report_log(&params.log_ctx);
    sl_index *index;
    eval_threads *threads = NULL;
    request request;
    report_keep(answer.message, sizeof answer.message, 0);
    sl_status opened = sl_index_open(task->index_path, &params, &index);
    if (opened != SL_OK)
        answer.status = report_status(task->index_path, opened);
    else
        answer.status = await_tier(index, task->index_path);
    if (answer.status == EXIT_DONE) answer.status = eval_threads_create(task, index, number * task->threads, &threads);
    if (answer.status == EXIT_DONE && task->numa.policy)
        answer.status = numa_of_index(index, task->index_path, &answer.numa);
    while (send_all(socket, &answer, sizeof answer) && answer.status == EXIT_DONE &&
           receive_all(socket, &request, sizeof request))
        answer.status =
            eval_threads_pass(threads, request.setting, gate, request.batch ? NULL : latencies, &answer.pass);
    eval_threads_free(threads);
    sl_index_free(index);
}

/* Ignores signals of the terminal, which reach the whole process group. The process that the user started handles
 * them. */
static void leave_signals_to_parent(void) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    shortened_leave_to_parent();
}

static int report_unstarted(const eval_procs *procs, size_t number) {
    return report_failure("cannot start process %zu of %zu: %s; ask for fewer", number + 1, procs->wanted,
                          strerror(errno));
}

static int start_process(eval_procs *procs, float *latencies) {
    size_t number = procs->count;
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return report_unstarted(procs, number);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        leave_signals_to_parent();
        /* Closes the other processes' sockets. If they stayed open here, those processes would not notice that the
         * parent is gone. */
        for (size_t i = 0; i < procs->count; i++)
            close(procs->processes[i].socket);
        close(sockets[0]);
        serve_passes(procs->task, number, sockets[1], procs->gate, latencies + number * procs->task->nq);
        _exit(EXIT_DONE);
    }
    int status = pid < 0 ? report_unstarted(procs, number) : EXIT_DONE;
    close(sockets[1]);
    if (pid < 0)
        close(sockets[0]);
    else
        procs->processes[procs->count++] = (process){.pid = pid, .socket = sockets[0]};
    return status;
}

/* Reports why a process does not answer. */
static int report_silence(process *process) {
    int how = 0;
    if (interrupted()) return report_interrupted();
    while (waitpid(process->pid, &how, 0) < 0 && errno == EINTR)
        ;
    process->pid = 0;
    if (WIFEXITED(how) && WEXITSTATUS(how) == EXIT_SHORTENED) return report_failure("%s", SHORTENED);
    if (!WIFSIGNALED(how)) return report_failure("a measuring process ended with status %d", WEXITSTATUS(how));
    return report_failure("a measuring process was ended by signal %d (%s)", WTERMSIG(how), strsignal(WTERMSIG(how)));
}

static int read_answer(process *process, eval_pass *pass) {
    answer answer;
    if (!receive_all(process->socket, &answer, sizeof answer)) return report_silence(process);
    if (answer.status != EXIT_DONE) return report_failure("%s", answer.message);
    *pass = answer.pass;
    process->numa = answer.numa;
    return EXIT_DONE;
}

/* Reads answers in any order: one process may end silently while another waits for it at the gate. */
static int read_answers(eval_procs *procs, size_t count, eval_pass *passes) {
    for (size_t i = 0; i < count; i++)
        procs->waits[i] = (struct pollfd){procs->processes[i].socket, POLLIN, 0};
    for (size_t left = count; left;) {
        /* A signal may have come between two waits. */
        if (interrupted()) return report_interrupted();
        if (poll(procs->waits, count, -1) < 0) {
            if (errno == EINTR) continue;
            return report_failure("cannot wait for the measuring processes: %s", strerror(errno));
        }
        for (size_t i = 0; i < count; i++) {
            if (procs->waits[i].fd < 0 || !procs->waits[i].revents) continue;
            int status = read_answer(&procs->processes[i], &passes[i]);
            if (status != EXIT_DONE) return status;
            procs->waits[i].fd = -1;
            left--;
        }
    }
    return interrupted() ? report_interrupted() : EXIT_DONE;
}

/* Closes the process's socket, which ends an idle process. */
static void end_process(process *process) {
    close(process->socket);
    while (process->pid && waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void eval_procs_free(eval_procs *procs) {
    if (!procs) return;
    for (size_t i = 0; i < procs->count; i++)
        if (procs->processes[i].pid) kill(procs->processes[i].pid, SIGTERM);
    for (size_t i = 0; i < procs->count; i++)
        end_process(&procs->processes[i]);
    free(procs->waits);
    free(procs);
}

int eval_procs_create(const eval_task *task, eval_gate *gate, float *latencies, eval_procs **out) {
    size_t wanted = 0;
    *out = NULL;
    for (size_t i = 0; i < task->groups; i++)
        if (task->procs[i] > wanted) wanted = task->procs[i];
    eval_procs *procs = allocate(1, sizeof *procs + wanted * sizeof *procs->processes);
    if (!procs) return EXIT_FAILED;
    procs->task = task;
    procs->gate = gate;
    procs->wanted = wanted;
    procs->waits = allocate(wanted, sizeof *procs->waits);
    eval_pass *ready = allocate(wanted, sizeof *ready);
    int status = procs->waits && ready ? EXIT_DONE : EXIT_FAILED;
    while (status == EXIT_DONE && procs->count < wanted)
        status = start_process(procs, latencies);
    if (status == EXIT_DONE) status = read_answers(procs, wanted, ready);
    free(ready);
    if (status == EXIT_DONE)
        *out = procs;
    else
        eval_procs_free(procs);
    return status;
}

int eval_procs_pass(eval_procs *procs, size_t count, eval_setting setting, int batch, eval_pass *passes) {
    request request = {setting, batch};
    for (size_t i = 0; i < count; i++)
        if (!send_all(procs->processes[i].socket, &request, sizeof request))
            return report_silence(&procs->processes[i]);
    return read_answers(procs, count, passes);
}

void eval_procs_keep(eval_procs *procs, size_t count) {
    while (procs->count > count)
        end_process(&procs->processes[--procs->count]);
}

const sl_index_numa *eval_procs_numa(const eval_procs *procs) {
    return &procs->processes[0].numa;
}

pid_t eval_procs_id(const eval_procs *procs, size_t number) {
    return procs->processes[number].pid;
}
