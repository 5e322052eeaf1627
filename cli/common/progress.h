/* The progress of a long call, on stderr: a bar on a terminal, or lines every few seconds with --progress. */
#ifndef CLI_COMMON_PROGRESS_H
#define CLI_COMMON_PROGRESS_H

#include <stdint.h>

typedef struct progress {
    const char *what; /* "building" */
    const char *unit; /* "vectors" */
    uint64_t total, done;
    uint64_t base, span; /* of the current call: units done before it, and its own units; span 0: all */
    double started, shown;
    int shows, bar;
} progress;

/* Starts the stage `what` of `total` units; 0: not known yet. `wanted` is --progress. */
void progress_begin(progress *progress, const char *what, const char *unit, uint64_t total, int wanted);

/* Says that the current call does `span` units after the first `base`, for work done in blocks. */
void progress_part(progress *progress, uint64_t base, uint64_t span);

/* The library's sl_progress_fn, with a progress as its context. Shows the stage's progress when done/total of the
 * current call is done. If nobody knows the total, shows the units. Cancels once the process is interrupted. */
int progress_step(void *ctx, uint64_t done, uint64_t total);

/* Takes the bar off the terminal at the end of the stage. `whole`: the stage came to its end. */
void progress_end(progress *progress, int whole);

/* Takes a bar off the terminal so that a line can be printed in its place. */
void progress_clear(void);

/* Tells whether there is a bar; a signal handler may ask. */
int progress_is_shown(void);

#endif
