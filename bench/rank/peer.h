/* ONNX Runtime behind a few functions, by its C API, which is loaded from the package's library. */
#ifndef BENCH_RANK_PEER_H
#define BENCH_RANK_PEER_H

#include <shortlist_rank.h>

typedef struct peer peer;

/* `library`: libonnxruntime.so of the package. One thread, all graph optimisations. */
peer *peer_open(const char *library, const char *model);
const char *peer_version(const peer *session);
void peer_free(peer *session);
/* Takes encoded rows as the model's inputs, made outside of what is timed: `dense` (rows, width) and `ids` (rows,
 * fields), field f's ids moved up by f * table_size, since the model holds all fields in one table. They must outlive
 * the runs. */
void peer_bind(peer *session, const sl_encoded *rows, size_t width, size_t fields, size_t table_size);
/* Runs the model; *scores is ONNX Runtime's until the next run. */
void peer_run(peer *session, const float **scores);

#endif
