#include "cli/common/ending.h"

#include "cli/common/interrupt.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int end_as_asked(int status) {
    sigset_t set;
    if (!interrupted_by_keyboard()) return status;
    output_remove_unfinished();
    (void)fflush(NULL);
    signal(SIGINT, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGINT);
    /* The first process of a container has no default action. */
    return 128 + SIGINT;
}

static char shortened_line[sizeof SHORTENED + 64];
static volatile sig_atomic_t shortened_silent;

/* Calls only functions that are safe in a signal handler. */
static void on_bus(int number, siginfo_t *info, void *context) {
    static volatile int reporting;
    (void)context;
    if (info->si_code != BUS_ADRERR) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    /* Several threads may read the file. The first one prints the line and ends them all. */
    while (__atomic_exchange_n(&reporting, 1, __ATOMIC_SEQ_CST))
        pause();
    if (shortened_silent) _exit(EXIT_SHORTENED);
    output_remove_unfinished();
    if (progress_is_shown()) (void)!write(STDERR_FILENO, "\r\033[K", 4);
    (void)!write(STDERR_FILENO, shortened_line, strlen(shortened_line));
    _exit(EXIT_FAILED);
}

void shortened_install(const char *command) {
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    snprintf(shortened_line, sizeof shortened_line, "%s %s: %s\n", report_program_name(), command, SHORTENED);
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

void shortened_leave_to_parent(void) {
    shortened_silent = 1;
}
