/*
 * Nets of every precision by turns, ours and the peers'. bench/precision.sh runs it.
 *   bench_precision JOB ROUNDS CALLS
 *   bench_precision kinds                     prints the peers that it was built with
 *
 * JOB is a file of lines:
 *   rows N                                    rows of a set of inputs
 *   array NAME f32|i64 ROWS COLUMNS FILE      an input: FILE holds (sets, ROWS, COLUMNS) numbers
 *   contender NAME KIND MODEL ARRAY...        KIND: net, parts, parts-bf16, parts-i8, model (ours);
 *                                             onnxruntime, openvino, openvino-PRECISION
 *   library onnxruntime|openvino FILE         before the first contender of it
 * All contenders have the same outputs: N floats. In each round each takes a turn of CALLS calls behind one that is not
 * timed; every call has the next set. Prints one JSON object. A contender has two times of a call in microseconds for
 * each round: us by the processor's time of the process, wall_us by the wall clock. It also has the distance of its
 * outputs from those of the first contender.
 */
#define _POSIX_C_SOURCE 200809L
#include "../rank/shapes.h"
#include "../rank/timing.h"
#include "contender.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 16, MOST_NAMED = 16, MOST_CONTENDERS = 64, MOST_COMPARED = 4000 /* rows */ };

typedef struct entry {
    char *name;
    inputs in;
    contender with;
    double *times, *wall;    /* microseconds of a call, each round */
    double largest, squares; /* of differences from the first contender's outputs */
} entry;

typedef struct job {
    size_t rows, sets, array_count, count;
    array arrays[MOST_NAMED];
    char *onnxruntime, *openvino;
    entry entries[MOST_CONTENDERS];
} job;

static void quit(const char *what, const char *which) {
    fprintf(stderr, "bench_precision: %s: %s\n", which, what);
    exit(1);
}

static void read_array(job *j, char **word) {
    if (j->array_count == MOST_NAMED) quit("too many arrays", word[1]);
    array *a = &j->arrays[j->array_count++];
    int is_float = strcmp(word[2], "f32") == 0;
    size_t size = is_float ? sizeof(float) : sizeof(int64_t), set;
    *a = (array){.name = strdup(word[1]), .rows = strtoul(word[3], NULL, 10), .columns = strtoul(word[4], NULL, 10)};
    FILE *file = fopen(word[5], "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) quit("cannot be read", word[5]);
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    set = a->rows * a->columns * size;
    if (!set || !bytes || bytes % set || (j->sets && j->sets != bytes / set)) quit("is not whole sets", word[5]);
    j->sets = bytes / set;
    void *data = must_alloc(bytes, 1);
    if (fread(data, 1, bytes, file) != bytes) quit("cannot be read", word[5]);
    fclose(file);
    if (is_float)
        a->floats = data;
    else
        a->ids = data;
}

static const array *find_array(const job *j, const char *name) {
    for (size_t i = 0; i < j->array_count; i++)
        if (strcmp(j->arrays[i].name, name) == 0) return &j->arrays[i];
    quit("no such array", name);
    return NULL;
}

static void open_contender(job *j, char **word, size_t words) {
    static const char *const forms[] = {"net", "parts", "parts-bf16", "parts-i8", "model"};
    if (j->count == MOST_CONTENDERS) quit("too many contenders", word[1]);
    entry *e = &j->entries[j->count++];
    e->name = strdup(word[1]);
    e->in = (inputs){.count = words - 4, .sets = j->sets, .rows = j->rows, .out = must_alloc(j->rows, sizeof(float))};
    for (size_t i = 4; i < words; i++)
        e->in.arrays[i - 4] = find_array(j, word[i]);
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        if (strcmp(word[2], forms[f]) == 0) ours_open((our_form)f, word[3], &e->in, &e->with);
    if (strcmp(word[2], "onnxruntime") == 0) onnxruntime_open(j->onnxruntime, word[3], &e->in, &e->with);
    if (strncmp(word[2], "openvino", 8) == 0)
        openvino_open(j->openvino, word[3], word[2][8] ? word[2] + 9 : NULL, &e->in, &e->with);
    if (!e->with.run) quit("no such kind", word[2]);
}

static void read_line(job *j, char **word, size_t words) {
    if (words == 2 && strcmp(*word, "rows") == 0)
        j->rows = strtoul(word[1], NULL, 10);
    else if (words == 3 && strcmp(*word, "library") == 0)
        *(strcmp(word[1], "openvino") ? &j->onnxruntime : &j->openvino) = strdup(word[2]);
    else if (words == 6 && strcmp(*word, "array") == 0)
        read_array(j, word);
    else if (words > 4 && words <= 4 + MOST_ARRAYS && strcmp(*word, "contender") == 0)
        open_contender(j, word, words);
    else
        quit("a line that means nothing", words ? *word : "");
}

static void read_job(job *j, const char *path) {
    char line[4096];
    FILE *file = fopen(path, "r");
    if (!file) quit("cannot be read", path);
    while (fgets(line, sizeof line, file)) {
        char *word[MOST_WORDS] = {NULL};
        size_t words = 0;
        for (char *at = strtok(line, " \n"); at && words < MOST_WORDS; at = strtok(NULL, " \n"))
            word[words++] = at;
        read_line(j, word, words);
    }
    fclose(file);
    if (!j->count) quit("no contender", path);
}

static size_t compared_sets(const job *j) {
    return j->sets * j->rows <= MOST_COMPARED ? j->sets : (MOST_COMPARED + j->rows - 1) / j->rows;
}

/* Runs all on the first sets, and compares their outputs with the first one's. Returns the variance of these. */
static double compare(job *j) {
    double sum = 0, squares = 0, n = (double)(compared_sets(j) * j->rows);
    for (size_t set = 0; set < compared_sets(j); set++)
        for (size_t c = 0; c < j->count; c++) {
            entry *e = &j->entries[c];
            e->with.run(e->with.state, set);
            for (size_t r = 0; r < j->rows; r++) {
                double first = (double)j->entries[0].in.out[r], off = fabs((double)e->in.out[r] - first);
                if (!(off <= e->largest)) e->largest = off;
                e->squares += off * off;
                if (c == 0) sum += first, squares += first * first;
            }
        }
    return squares / n - sum / n * (sum / n);
}

static void take_turn(const job *j, entry *e, size_t round, size_t calls) {
    size_t set = round * (calls + 1);
    e->with.run(e->with.state, set % j->sets);
    int64_t start = now_ns(), used = processor_ns();
    for (size_t i = 1; i <= calls; i++)
        e->with.run(e->with.state, (set + i) % j->sets);
    e->times[round] = (double)(processor_ns() - used) * 1e-3 / (double)calls;
    e->wall[round] = (double)(now_ns() - start) * 1e-3 / (double)calls;
}

static void print_times(const double *times, size_t rounds) {
    for (size_t r = 0; r < rounds; r++)
        printf("%s%.4g", r ? ", " : "", times[r]);
}

static void print(const job *j, double variance, size_t rounds) {
    double n = (double)(compared_sets(j) * j->rows);
    printf("{\"rows\": %zu, \"sets\": %zu, \"deviation\": %.6g, \"contenders\": [", j->rows, j->sets, sqrt(variance));
    for (size_t c = 0; c < j->count; c++) {
        const entry *e = &j->entries[c];
        printf("%s\n {\"name\": \"%s\", \"about\": \"%s\", \"largest\": %.4g, \"rms\": %.4g, \"us\": [", c ? "," : "",
               e->name, e->with.about, e->largest, sqrt(e->squares / n));
        print_times(e->times, rounds);
        printf("], \"wall_us\": [");
        print_times(e->wall, rounds);
        printf("]}");
    }
    printf("]}\n");
}

static void drop(job *j) {
    for (size_t c = 0; c < j->count; c++) {
        j->entries[c].with.free(j->entries[c].with.state);
        free(j->entries[c].name);
        free(j->entries[c].in.out);
        free(j->entries[c].times);
        free(j->entries[c].wall);
    }
    for (size_t i = 0; i < j->array_count; i++) {
        free((void *)j->arrays[i].name);
        free(j->arrays[i].floats);
        free(j->arrays[i].ids);
    }
    free(j->onnxruntime);
    free(j->openvino);
    free(j);
}

static int print_kinds(void) {
#ifdef BENCH_ONNXRUNTIME
    printf("onnxruntime\n");
#endif
#ifdef BENCH_OPENVINO
    printf("openvino\n");
#endif
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "kinds") == 0) return print_kinds();
    if (argc != 4) quit("bench_precision JOB ROUNDS CALLS | kinds", "usage");
    size_t rounds = strtoul(argv[2], NULL, 10), calls = strtoul(argv[3], NULL, 10);
    job *j = must_alloc(1, sizeof *j);
    pin();
    read_job(j, argv[1]);
    for (size_t c = 0; c < j->count; c++) {
        j->entries[c].times = must_alloc(rounds, sizeof(double));
        j->entries[c].wall = must_alloc(rounds, sizeof(double));
    }
    double variance = compare(j);
    for (size_t r = 0; r < rounds; r++)
        for (size_t c = 0; c < j->count; c++)
            take_turn(j, &j->entries[(r + c) % j->count], r, calls);
    print(j, variance, rounds);
    drop(j);
    return 0;
}
