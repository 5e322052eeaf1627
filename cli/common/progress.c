#include "cli/common/progress.h"

#include "cli/common/clock.h"
#include "cli/common/interrupt.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH     24
#define LINE_INTERVAL 2.0 /* seconds between lines of --progress if stderr is not a terminal */
#define BAR_INTERVAL  0.1

static volatile sig_atomic_t bar_shown;

void progress_clear(void) {
    if (bar_shown) fputs("\r\033[K", stderr);
    bar_shown = 0;
}

int progress_is_shown(void) {
    return bar_shown;
}

void progress_begin(progress *progress, const char *what, const char *unit, uint64_t total, int wanted) {
    int terminal = isatty(STDERR_FILENO);
    *progress = (struct progress){.what = what, .unit = unit, .total = total, .started = now_seconds()};
    progress->shown = progress->started;
    progress->bar = terminal;
    progress->shows = terminal || wanted;
}

static void show_part(const progress *progress, uint64_t done, double rate) {
    double part = (double)done / (double)progress->total;
    unsigned left = rate > 0 && done < progress->total ? (unsigned)((double)(progress->total - done) / rate) : 0;
    char bar[BAR_WIDTH + 1];
    size_t filled = (size_t)(part * BAR_WIDTH);
    for (size_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    if (progress->bar)
        fprintf(stderr, "\r%s [%s] ", progress->what, bar);
    else
        fprintf(stderr, "%s ", progress->what);
    fprintf(stderr, "%3.0f%%  %" PRIu64 " of %" PRIu64 " %s  %.0f/s  %u:%02u left", 100 * part, done, progress->total,
            progress->unit, rate, left / 60, left % 60);
}

static void show_progress(progress *progress, uint64_t done, double now) {
    double elapsed = now - progress->started;
    double rate = elapsed > 0 ? (double)done / elapsed : 0;
    if (progress->total)
        show_part(progress, done, rate);
    else
        fprintf(stderr, "%s%s %" PRIu64 " %s  %.0f/s", progress->bar ? "\r" : "", progress->what, done, progress->unit,
                rate);
    fputs(progress->bar ? "\033[K" : "\n", stderr);
    fflush(stderr);
    bar_shown = progress->bar;
    progress->shown = now;
}

void progress_part(progress *progress, uint64_t base, uint64_t span) {
    progress->base = base;
    progress->span = span;
}

int progress_step(void *ctx, uint64_t done, uint64_t total) {
    progress *progress = ctx;
    if (!progress->total) progress->total = total;
    double now = now_seconds();
    uint64_t span = progress->span ? progress->span : progress->total;
    uint64_t all = progress->base + (total ? (uint64_t)((double)span * ((double)done / (double)total)) : done);
    if (progress->total && all > progress->total) all = progress->total;
    progress->done = all;
    if (progress->shows && now - progress->shown >= (progress->bar ? BAR_INTERVAL : LINE_INTERVAL))
        show_progress(progress, all, now);
    return interrupted();
}

void progress_end(progress *progress, int whole) {
    double elapsed = now_seconds() - progress->started;
    if (whole && progress->shows && !progress->bar)
        fprintf(stderr, "%s done: %" PRIu64 " %s in %.1f s\n", progress->what,
                progress->total ? progress->total : progress->done, progress->unit, elapsed);
    progress_clear();
}
