/* Progress of a long call on stderr: a bar on a terminal, or with --progress a line every few seconds. */
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

/* Starts the stage `what` of `total` units; 0: unknown. `wanted` is --progress. */
void progress_begin(progress *progress, const char *what, const char *unit, uint64_t total, int wanted);

/* Says which part of the work the current call does: `span` units after the first `base`. */
void progress_part(progress *progress, uint64_t base, uint64_t span);

/* An sl_progress_fn, with a progress as its context. Shows the progress of the stage, or the units if the total is
 * unknown. Cancels the call after an interruption. */
int progress_step(void *ctx, uint64_t done, uint64_t total);

/* Removes the bar at the end of the stage. `whole`: the stage is complete. */
void progress_end(progress *progress, int whole);

/* Removes the bar, so that a line can be printed in its place. */
void progress_clear(void);

/* Returns whether there is a bar. A signal handler may ask. */
int progress_is_shown(void);

#endif
