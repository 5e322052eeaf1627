#include "cli/common/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t signal_came, keyboard_came;

static void on_signal(int number) {
    if (number == SIGINT) keyboard_came = 1;
    signal_came = 1;
}

void interrupt_install(void) {
    /* SA_RESETHAND gives the second signal its default effect. Without SA_RESTART a blocked read returns. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    /* A signal that was ignored stays ignored: SIGHUP under nohup, SIGINT in the background of a script. */
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before;
        const int ignored = sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (!ignored) sigaction(numbers[i], &action, NULL);
    }
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_IGN);
#endif
}

int interrupted(void) {
    return signal_came;
}

int interrupted_by_keyboard(void) {
    return keyboard_came;
}
