#include "../rank/peer.h"
#include "../rank/shapes.h"
#include "contender.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef BENCH_ONNXRUNTIME

static void onnxruntime_run(void *state, size_t set) {
    peer_run_set(state, set);
}

static void onnxruntime_free(void *state) {
    peer_free(state);
}

void onnxruntime_open(const char *library, const char *model, const inputs *in, contender *out) {
    peer *session = peer_open(library, model);
    peer_array arrays[MOST_ARRAYS];
    for (size_t set = 0; set < in->sets; set++) {
        for (size_t i = 0; i < in->count; i++) {
            const array *a = in->arrays[i];
            size_t at = set * a->rows * a->columns;
            arrays[i] = (peer_array){a->name, a->rows, a->columns, a->floats ? a->floats + at : NULL,
                                     a->ids ? a->ids + at : NULL};
        }
        peer_add_set(session, arrays, in->count);
    }
    peer_give_output(session, in->out, in->rows);
    *out = (contender){.state = session, .run = onnxruntime_run, .free = onnxruntime_free};
    snprintf(out->about, sizeof out->about, "%s", peer_version(session));
}
#else
void onnxruntime_open(const char *library, const char *model, const inputs *in, contender *out) {
    (void)library, (void)model, (void)in, (void)out;
    fprintf(stderr, "bench_precision: built without ONNX Runtime's header; see bench/precision.sh\n");
    exit(1);
}
#endif
