/* The rows of neighbourhoods: cells, parts, copies, reaches. */
#include "cli/common/clock.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cluster/commands/ranks.h"
#include "cluster/commands/split_job.h"
#include "cluster/search/learn_cells.h"
#include "cluster/search/merge_exact.h"
#include "cluster/search/tune_reaches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the sample per cell, and vectors whose neighbours tune the reaches. */
#define ROWS_PER_CELL 64
#define TUNED_ROWS    ((size_t)1000)
#define TUNED_K       ((size_t)10)
/* Groups that a query opens at least and on average. A row that is stored opens all. */
#define OPENED_LEAST 3
#define OPENED_MEAN  6
/* Candidates that a further part expands before the bound counts. */
#define BOUND_AFTER 16
/* A part with more than this times the mean draws a warning. */
#define LARGE_PART 2
/* Bytes of rows that a rank reads at a time. */
#define READ_BYTES ((size_t)16 << 20)

typedef struct moving {
    split_job *job;
    sl_row_layout layout;
    sl_row_place *places; /* of this rank's rows */
    char *block;
    size_t row;
    /* the tuning's vectors */
    size_t tuned, k;
    sl_opening opening; /* of rows that are stored */
    size_t *tuned_rows; /* their rows in the base */
    char *tuned_vectors;
    sl_exact *exact;
} moving;

static size_t cells_of(const split_job *job) {
    const size_t n = job->base->n, parts = job->split.facts.parts;
    size_t cells = job->options->cells < SL_CELLS_MAX / parts ? job->options->cells * parts : SL_CELLS_MAX;
    if (cells > n / 8) cells = n / 8;
    return cells < parts ? parts : cells;
}

/* Reads `count` rows at equal steps through the base, from number `first` of `total` on. rows: where they lie; may be
 * NULL. */
static int read_steps(split_job *job, size_t first, size_t count, size_t total, element type, char *out, size_t *rows) {
    const size_t size = job->base->dim * element_size(type);
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < count; i++) {
        const size_t row = sl_comm_share(job->base->n, first + i, total);
        if (rows) rows[i] = row;
        status = vectors_read(job->base, row, 1, type, 0, out + i * size);
    }
    return status;
}

static int learn_cells(split_job *job) {
    const sl_comm *comm = ranks();
    const size_t n = job->base->n, cells = cells_of(job);
    const size_t total = n < ROWS_PER_CELL * cells ? n : ROWS_PER_CELL * cells;
    const size_t first = sl_comm_share(total, comm->rank, comm->ranks);
    sl_cell_sample sample = {.first = first,
                             .count = sl_comm_share(total, comm->rank + 1, comm->ranks) - first,
                             .total = total,
                             .dim = job->base->dim,
                             .metric = (sl_metric)job->options->metric};
    float *rows = allocate(sample.count, sample.dim * sizeof *rows);
    int status = rows ? read_steps(job, first, sample.count, total, ELEMENT_F32, (char *)rows, NULL) : EXIT_FAILED;
    sample.rows = rows;
    if (status == EXIT_DONE) {
        sl_status checked = sl_cell_sample_check(&sample, n);
        if (checked != SL_OK) status = report_status(job->base_path, checked);
    }
    status = ranks_agree(status);
    if (status == EXIT_DONE) {
        sl_status learnt =
            sl_cells_learn(comm, &sample, cells, job->split.facts.parts, job->options->threads, &job->split.cells);
        if (learnt != SL_OK)
            status = learnt == SL_EVALUE ? report_status(job->base_path, learnt) : ranks_report(learnt);
    }
    free(rows);
    job->split.facts.cells = (uint32_t)job->split.cells.count;
    job->split.facts.groups = (uint32_t)job->split.cells.groups;
    return status;
}

/* Chooses how many groups queries open. */
static int choose_gaps(moving *m) {
    sl_split *split = &m->job->split;
    const sl_dtype dtype = element_dtype(m->job->type);
    sl_router *router;
    sl_status status = sl_router_create(&split->cells, &router);
    if (status == SL_OK)
        status = sl_router_choose_gap(router, m->tuned_vectors, dtype, m->tuned, OPENED_MEAN, &split->facts.gap);
    split->facts.opened = OPENED_LEAST;
    m->opening = (sl_opening){.least = split->cells.groups, .gap = INFINITY};
    sl_router_free(router);
    return status == SL_OK ? EXIT_DONE : report_status(m->job->base_path, status);
}

/* Reads the vectors that tune the reaches, and makes the scan for their neighbours. */
static int prepare_tuning(moving *m) {
    split_job *job = m->job;
    const size_t n = job->base->n;
    sl_exact_params params;
    m->tuned = n < TUNED_ROWS ? n : TUNED_ROWS;
    m->k = n <= TUNED_K ? n - 1 : TUNED_K;
    m->tuned_rows = allocate(m->tuned, sizeof *m->tuned_rows);
    m->tuned_vectors = allocate(m->tuned, m->row);
    if (!m->tuned_rows || !m->tuned_vectors) return EXIT_FAILED;
    int status = read_steps(job, 0, m->tuned, m->tuned, job->type, m->tuned_vectors, m->tuned_rows);
    if (status != EXIT_DONE) return status;
    sl_exact_params_init(&params);
    params.dim = job->base->dim;
    params.metric = (sl_metric)job->options->metric;
    params.dtype = element_dtype(job->type);
    params.k = m->k + 1;
    params.threads = job->options->threads;
    sl_status made = sl_exact_create(&params, m->tuned_vectors, m->tuned, 0, &m->exact);
    return made == SL_OK ? choose_gaps(m) : report_status(job->base_path, made);
}

static int prepare_moving(moving *m) {
    split_job *job = m->job;
    const sl_comm *comm = ranks();
    m->row = job->base->dim * element_size(job->type);
    const size_t rows = m->row < READ_BYTES ? READ_BYTES / m->row : 1;
    m->layout =
        (sl_row_layout){.n = job->base->n, .batch = rows * comm->ranks, .rank = comm->rank, .ranks = comm->ranks};
    m->places = allocate(sl_layout_rows(&m->layout), sizeof *m->places);
    m->block = allocate(rows + 1, m->row);
    job->rows = allocate(job->end - job->first, sizeof *job->rows);
    if (!m->places || !m->block || !job->rows) return EXIT_FAILED;
    for (size_t i = 0; i < job->end - job->first; i++)
        job->rows[i] = (sl_part_rows){.allocator = job->split.allocator, .row = m->row};
    return prepare_tuning(m);
}

static int read_span(const moving *m, const sl_row_span *span) {
    return vectors_read(m->job->base, span->first, span->count, m->job->type, 0, m->block);
}

/* Finds the parts of this rank's rows, and compares them with the tuning's vectors. */
static int place_rows(moving *m) {
    const split_job *job = m->job;
    const sl_dtype dtype = element_dtype(job->type);
    for (size_t b = 0; b < sl_layout_batches(&m->layout); b++) {
        const sl_row_span span = sl_layout_span(&m->layout, b);
        int status = read_span(m, &span);
        if (status != EXIT_DONE) return status;
        sl_status placed = sl_exact_scan(m->exact, m->block, span.count, 0, span.first);
        if (placed == SL_OK)
            placed = sl_rows_place(&job->split.cells, m->opening, job->options->threads, m->block, dtype, span.count,
                                   m->places + span.local);
        if (placed != SL_OK) return report_rows(job->base_path, span.first, placed);
    }
    return EXIT_DONE;
}

/* True neighbours of the tuning's vectors. */
typedef struct neighbours {
    uint64_t *found, *ids; /* (tuned, k + 1), with the vectors themselves; (tuned, k) */
    float *scores, *last;  /* of `found`; of each vector's k-th neighbour */
} neighbours;

/* Gives every rank the true neighbours, each without the vector itself. */
static sl_status share_neighbours(moving *m, const neighbours *n) {
    const size_t k = m->k;
    SL_TRY(sl_merge_exact(ranks(), m->exact, m->tuned, k + 1, n->found, n->scores));
    SL_TRY(sl_comm_broadcast(ranks(), n->found, m->tuned * (k + 1) * sizeof *n->found, 0));
    SL_TRY(sl_comm_broadcast(ranks(), n->scores, m->tuned * (k + 1) * sizeof *n->scores, 0));
    for (size_t q = 0; q < m->tuned; q++)
        for (size_t i = 0, kept = 0; kept < k; i++) {
            const size_t at = q * (k + 1) + i;
            if (n->found[at] == m->tuned_rows[q] && i < k) continue;
            n->last[q] = n->scores[at];
            n->ids[q * k + kept++] = n->found[at];
        }
    return SL_OK;
}

static int tune_reaches(moving *m) {
    split_job *job = m->job;
    const size_t all = m->tuned * (m->k + 1);
    neighbours n = {.found = allocate(all, sizeof *n.found),
                    .ids = allocate(all, sizeof *n.ids),
                    .scores = allocate(all, sizeof *n.scores),
                    .last = allocate(m->tuned, sizeof *n.last)};
    int status = ranks_agree(n.found && n.ids && n.scores && n.last ? EXIT_DONE : EXIT_FAILED);
    if (status == EXIT_DONE) {
        sl_status tuned = share_neighbours(m, &n);
        const sl_reach_sample sample = {.rows = m->tuned_vectors,
                                        .dtype = element_dtype(job->type),
                                        .count = m->tuned,
                                        .k = m->k,
                                        .neighbours = n.ids,
                                        .scores = n.last};
        if (tuned == SL_OK) tuned = sl_split_tune_reaches(ranks(), &job->split, &m->layout, m->places, &sample);
        if (tuned != SL_OK) status = ranks_report(tuned);
    }
    free(n.found);
    free(n.ids);
    free(n.scores);
    free(n.last);
    return status;
}

static int send_rows(moving *m) {
    split_job *job = m->job;
    int status = EXIT_DONE;
    for (size_t b = 0; status == EXIT_DONE && b < sl_layout_batches(&m->layout); b++) {
        const sl_row_span span = sl_layout_span(&m->layout, b);
        status = ranks_agree(read_span(m, &span));
        if (status != EXIT_DONE) break;
        const sl_placed_rows rows = {.rows = (const uint8_t *)m->block,
                                     .places = m->places + span.local,
                                     .row = m->row,
                                     .first = span.first,
                                     .count = span.count};
        sl_status sent = sl_rows_send(ranks(), job->split.facts.parts, &rows, job->rows);
        if (sent != SL_OK) status = ranks_report(sent);
    }
    return status;
}

static int limit_copies(moving *m) {
    split_job *job = m->job;
    const uint64_t most = (uint64_t)(job->options->replicate * (double)job->base->n);
    uint64_t copies = 0;
    sl_status limited = sl_rows_limit_copies(ranks(), m->places, sl_layout_rows(&m->layout), most, &copies);
    job->split.facts.stored = job->base->n + copies;
    return limited == SL_OK ? EXIT_DONE : ranks_report(limited);
}

/* Counts this rank's rows of each part. */
static void count_rows(const moving *m, uint64_t *counts) {
    for (size_t i = 0; i < sl_layout_rows(&m->layout); i++) {
        counts[m->places[i].part]++;
        if (m->places[i].second != SL_NO_PART) counts[m->places[i].second]++;
    }
}

static void warn_of_largest(const sl_split_facts *facts, const uint64_t *counts) {
    const uint64_t mean = facts->stored / facts->parts;
    size_t largest = 0;
    for (size_t p = 1; p < facts->parts; p++)
        if (counts[p] > counts[largest]) largest = p;
    if (counts[largest] <= LARGE_PART * mean) return;
    report_warning("part %zu gets %llu vectors, but the mean is %llu; its rank needs the memory for them. Ask for more "
                   "--cells, fewer --parts or --split slices",
                   largest, (unsigned long long)counts[largest], (unsigned long long)mean);
}

/* Warns of a part that is much larger than the others, before its rank holds the rows. */
static int check_parts(const moving *m) {
    const sl_split_facts *facts = &m->job->split.facts;
    uint64_t *counts = allocate(facts->parts, sizeof *counts);
    int status = ranks_agree(counts ? EXIT_DONE : EXIT_FAILED);
    if (status == EXIT_DONE) {
        count_rows(m, counts);
        sl_status summed = sl_comm_sum_counts(ranks(), counts, facts->parts);
        if (summed != SL_OK) status = ranks_report(summed);
    }
    if (status == EXIT_DONE) warn_of_largest(facts, counts);
    free(counts);
    return status;
}

int split_move_rows(split_job *job) {
    moving m = {.job = job};
    const double start = now_seconds();
    job->split.facts.bound_after = BOUND_AFTER;
    int status = learn_cells(job);
    if (status == EXIT_DONE) status = ranks_agree(prepare_moving(&m));
    if (status == EXIT_DONE) status = ranks_agree(place_rows(&m));
    if (status == EXIT_DONE) status = limit_copies(&m);
    if (status == EXIT_DONE) status = check_parts(&m);
    if (status == EXIT_DONE) status = tune_reaches(&m);
    if (status == EXIT_DONE) status = send_rows(&m);
    sl_exact_free(m.exact);
    free(m.places);
    free(m.block);
    free(m.tuned_rows);
    free(m.tuned_vectors);
    job->place_s = now_seconds() - start;
    return status;
}
