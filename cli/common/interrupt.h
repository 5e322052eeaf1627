/* Interruption by a signal. */
#ifndef CLI_COMMON_INTERRUPT_H
#define CLI_COMMON_INTERRUPT_H

/* Makes the first SIGINT, SIGTERM or SIGHUP only set a flag, so that the current work can undo itself. A second signal
 * ends the process at once. A write beyond RLIMIT_FSIZE becomes an error instead of a signal. */
void interrupt_install(void);
/* Returns whether the first signal has come. */
int interrupted(void);
/* Returns whether the first signal was SIGINT. */
int interrupted_by_keyboard(void);

#endif
