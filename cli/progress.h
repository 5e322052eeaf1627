/* How far a long call is, on stderr: a bar on a terminal, lines every few seconds with --progress, else nothing. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>

typedef struct progress {
    const char *what; /* "building" */
    const char *unit; /* "vectors" */
    uint64_t total, done;
    uint64_t base, span; /* of the call under way: units done before it, and units it is about; span 0: all */
    double started, shown;
    int shows, bar;
} progress;

/* Starts the stage `what`, of `total` units, 0 where that is not known yet; `wanted` is --progress. */
void progress_begin(progress *progress, const char *what, const char *unit, uint64_t total, int wanted);

/* The call under way is about `span` units after the first `base`, for work handed on in blocks. */
void progress_part(progress *progress, uint64_t base, uint64_t span);

/* The library's sl_progress_fn, with a progress as its context: shows how much of the stage is done when done/total of
 * the call under way is, or, where nobody knows the total, how many units are; and cancels once the process is
 * interrupted. */
int progress_step(void *ctx, uint64_t done, uint64_t total);

/* Takes the bar off the terminal at the end of the stage; `whole` says that it came to its end. */
void progress_end(progress *progress, int whole);

/* Takes a bar off the terminal so that a line can be printed in its place. */
void progress_clear(void);

/* Whether there is one; a signal handler may ask. */
int progress_is_shown(void);

#endif
