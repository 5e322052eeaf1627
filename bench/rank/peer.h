/* ONNX Runtime behind a few functions, by its C API, which is loaded from the package's library. */
#ifndef BENCH_RANK_PEER_H
#define BENCH_RANK_PEER_H

#include <shortlist_rank.h>

typedef struct peer peer;

/* Opens the model in libonnxruntime.so of the package (`library`), with one thread and all graph optimisations. */
peer *peer_open(const char *library, const char *model);
const char *peer_version(const peer *session);
void peer_free(peer *session);
/* The inputs: `dense` (rows, width) and `ids` (rows, fields). */
typedef struct peer_inputs {
    const sl_encoded *rows;
    size_t width, fields, table_size; /* of one category's embeddings */
} peer_inputs;

/* Takes encoded rows as the model's inputs, and copies them outside of the timing. Ids of field f move up by
 * f * table_size, since the model holds all fields in one table. */
void peer_bind(peer *session, const peer_inputs *inputs);
/* The same for the model whose user's inputs are one row: the first half of the columns, of the first row. */
void peer_bind_once(peer *session, const peer_inputs *inputs);
/* Runs the model; *scores is ONNX Runtime's until the next run. */
void peer_run(peer *session, const float **scores);

/* Any model's inputs: (rows, columns) of floats or of 64-bit ids. One of the two pointers is NULL. The memory is the
 * caller's. */
typedef struct peer_array {
    const char *name;
    size_t rows, columns;
    float *floats;
    int64_t *ids;
} peer_array;

/* Adds a set of inputs, whose number is how many there were. All sets have the same names. */
void peer_add_set(peer *session, const peer_array *arrays, size_t count);
/* Makes runs of sets write the first output, (rows), into the caller's memory. */
void peer_give_output(peer *session, float *out, size_t rows);
void peer_run_set(peer *session, size_t set);

#endif
