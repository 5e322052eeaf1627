#include "cluster/allreduce/tuning.h"

#include "cluster/allreduce/scheme.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE "shortlist-mpi tuning 1"

static const char *const lane_words[] = {[SL_LANE_HALVING] = "halving", [SL_LANE_RING] = "ring"};
static const char *const sync_words[] = {[SL_SYNC_FENCE] = "fence", [SL_SYNC_PSCW] = "pscw"};
static const char *const wire_words[] = {[SL_WIRE_F32] = "f32", [SL_WIRE_BF16] = "bf16"};

/* ---- The job ---- */

sl_status sl_tuning_describe(const sl_comm *comm, sl_wire wire, sl_tuning *out) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    sl_comm machine;
    memset(out, 0, sizeof *out);
    SL_TRY(sl_comm_split_machine(comm, &machine));
    out->ranks = comm->ranks;
    out->machine_ranks = machine.ranks;
    out->machines = machine.rank == 0;
    out->wire = wire;
    sl_comm_free(&machine);
    SL_TRY(sl_comm_sum_counts(comm, &out->machines, 1));
    SL_TRY(sl_comm_max(comm, &out->machine_ranks));
    sl_comm_lock(comm);
    int result = MPI_Get_library_version(version, &length);
    sl_comm_unlock(comm);
    SL_TRY(sl_comm_check(comm, result, "MPI_Get_library_version"));
    /* The first words, up to a comma, a tab or the line's end. */
    version[strcspn(version, ",\n\r")] = '\0';
    for (char *c = version; *c; c++)
        if (*c == '\t') *c = ' ';
    snprintf(out->mpi, sizeof out->mpi, "%.*s", (int)sizeof out->mpi - 1, version);
    return SL_OK;
}

static int differ(uint64_t table, uint64_t job, const char *what, char *why, size_t size) {
    if (table == job) return 0;
    snprintf(why, size, "it is of %llu %s, and the job has %llu", (unsigned long long)table, what,
             (unsigned long long)job);
    return 1;
}

int sl_tuning_fits(const sl_tuning *tuning, const sl_tuning *job, char *why, size_t size) {
    if (differ(tuning->ranks, job->ranks, "ranks", why, size)) return 0;
    if (differ(tuning->machines, job->machines, "machines", why, size)) return 0;
    if (differ(tuning->machine_ranks, job->machine_ranks, "ranks per machine", why, size)) return 0;
    if (tuning->wire != job->wire) {
        snprintf(why, size, "it is of %s on the wire, and the job sends %s", wire_words[tuning->wire],
                 wire_words[job->wire]);
        return 0;
    }
    if (strcmp(tuning->mpi, job->mpi) == 0) return 1;
    snprintf(why, size, "it is of %s, and the job runs %s", tuning->mpi, job->mpi);
    return 0;
}

/* ---- Entries ---- */

static int is_same_choice(const sl_allreduce_params *a, const sl_allreduce_params *b) {
    return a->algorithm == b->algorithm && a->rows == b->rows && a->columns == b->columns && a->lane == b->lane &&
           a->sync == b->sync && a->put_reduces == b->put_reduces && a->shared == b->shared;
}

void sl_tuning_add(sl_tuning *tuning, const sl_tuning_entry *entry) {
    const uint64_t last = tuning->count - 1;
    const int replaces = tuning->count && is_same_choice(&tuning->entries[last].params, &entry->params);
    if (!replaces && tuning->count == SL_TUNING_MAX) return;
    tuning->entries[replaces ? last : tuning->count++] = *entry;
}

/* ---- Text ---- */

void sl_tuning_print(const sl_tuning *tuning, FILE *file) {
    fprintf(file, "%s\nranks %llu\nmachines %llu\nmachine_ranks %llu\nwire %s\nmpi %s\n", FIRST_LINE,
            (unsigned long long)tuning->ranks, (unsigned long long)tuning->machines,
            (unsigned long long)tuning->machine_ranks, wire_words[tuning->wire], tuning->mpi);
    for (size_t i = 0; i < tuning->count; i++) {
        const sl_tuning_entry *entry = &tuning->entries[i];
        const sl_allreduce_params *params = &entry->params;
        fprintf(file, "up_to %llu %s %zux%zu %s %s %d shared %d seconds %.3g\n", (unsigned long long)entry->bytes,
                sl_allreduce_name(params->algorithm), params->rows, params->columns, lane_words[params->lane],
                sync_words[params->sync], params->put_reduces, params->shared, entry->seconds);
    }
}

/* Returns the word's place in a list of two, or 2. */
static int word_of(const char *const words[2], const char *word) {
    return strcmp(word, words[0]) == 0 ? 0 : strcmp(word, words[1]) == 0 ? 1 : 2;
}

/* Parses an entry of a table. Returns whether it is one that fits the table's job. */
static int parse_entry(const char *line, const sl_tuning *table, sl_tuning_entry *entry) {
    char algorithm[32], lane[16], sync[16];
    unsigned long long bytes, rows, columns;
    int put_reduces, shared, used = 0;
    double seconds;
    if (sscanf(line, "up_to %19llu %31s %9llux%9llu %15s %15s %1d shared %1d seconds %32lg%n", &bytes, algorithm, &rows,
               &columns, lane, sync, &put_reduces, &shared, &seconds, &used) != 9 ||
        line[used] != '\0')
        return 0;
    *entry = (sl_tuning_entry){.bytes = bytes, .seconds = seconds};
    entry->params = (sl_allreduce_params){.algorithm = sl_allreduce_of_name(algorithm),
                                          .rows = rows,
                                          .columns = columns,
                                          .lane = (sl_lane)word_of(lane_words, lane),
                                          .sync = (sl_window_sync)word_of(sync_words, sync),
                                          .put_reduces = put_reduces,
                                          .shared = shared};
    sl_allreduce_params shape = entry->params;
    /* sscanf takes "-1" for a huge number. */
    return entry->params.algorithm != SL_ALLREDUCE_AUTO && (put_reduces | shared) >> 1 == 0 && seconds >= 0 &&
           bytes >= sizeof(float) && bytes <= INT64_MAX && sl_allreduce_params_check(&entry->params) == SL_OK &&
           sl_scheme_choose(&shape, shared ? table->machines : table->ranks) == SL_OK;
}

/* Parses a line of a word and a number from 1. Returns whether it is one. */
static int parse_count(const char *line, const char *word, uint64_t *out) {
    const size_t length = strlen(word);
    char *end;
    if (strncmp(line, word, length) != 0 || line[length] != ' ' || line[length + 1] < '1' || line[length + 1] > '9')
        return 0;
    *out = strtoull(line + length + 1, &end, 10);
    return *end == '\0' && *out <= INT_MAX;
}

/* Parses line `number`, counted from 0. Returns whether it is right there. */
static int parse_line(const char *line, size_t number, sl_tuning *out) {
    char word[16];
    sl_tuning_entry entry;
    switch (number) {
    case 0:
        return strcmp(line, FIRST_LINE) == 0;
    case 1:
        return parse_count(line, "ranks", &out->ranks);
    case 2:
        return parse_count(line, "machines", &out->machines);
    case 3:
        return parse_count(line, "machine_ranks", &out->machine_ranks);
    case 4:
        if (sscanf(line, "wire %15s", word) != 1 || word_of(wire_words, word) > 1) return 0;
        out->wire = (sl_wire)word_of(wire_words, word);
        return 1;
    case 5:
        if (strncmp(line, "mpi ", 4) != 0) return 0;
        snprintf(out->mpi, sizeof out->mpi, "%.*s", (int)sizeof out->mpi - 1, line + 4);
        return 1;
    default:
        if (!parse_entry(line, out, &entry)) return 0;
        if (out->count == SL_TUNING_MAX || (out->count && out->entries[out->count - 1].bytes >= entry.bytes)) return 0;
        out->entries[out->count++] = entry;
        return 1;
    }
}

static sl_status read_lines(FILE *file, const char *path, sl_tuning *out) {
    char line[512];
    size_t number = 0;
    for (; fgets(line, sizeof line, file); number++) {
        line[strcspn(line, "\n")] = '\0';
        if (!parse_line(line, number, out))
            return sl_fail(SL_EFORMAT, "%s: line %zu is none of a table of 'shortlist-mpi tune': make the table anew",
                           path, number + 1);
    }
    if (ferror(file)) return sl_fail_errno("cannot read", path);
    if (!out->count)
        return sl_fail(SL_EFORMAT, "%s: a table without entries; make it anew by 'shortlist-mpi tune'", path);
    return SL_OK;
}

static sl_status read_file(const char *path, sl_tuning *out) {
    struct stat info;
    /* O_NONBLOCK: a pipe does not wait for its other end. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file || fstat(fd, &info) != 0) {
        const sl_status status = sl_fail_errno("cannot open", path);
        if (file)
            fclose(file);
        else if (fd >= 0)
            close(fd);
        return status;
    }
    sl_status status = S_ISREG(info.st_mode) ? read_lines(file, path, out)
                                             : sl_fail(SL_EFORMAT, "%s: not a regular file; copy it to one", path);
    fclose(file);
    return status;
}

sl_status sl_tuning_read(const sl_comm *comm, const char *path, sl_tuning *out) {
    memset(out, 0, sizeof *out);
    sl_status status = comm->rank == 0 ? read_file(path, out) : SL_OK;
    SL_TRY(sl_comm_agree(comm, status));
    return sl_comm_broadcast(comm, out, sizeof *out, 0);
}
