/* One way to compute a net, behind three functions: ours, ONNX Runtime's, OpenVINO's. */
#ifndef BENCH_PRECISION_CONTENDER_H
#define BENCH_PRECISION_CONTENDER_H

#include <stddef.h>
#include <stdint.h>

enum { MOST_ARRAYS = 12 };

/* An input of every set: (sets, rows, columns) of floats, or of 64-bit ids. One of the two pointers is NULL. */
typedef struct array {
    const char *name;
    size_t rows, columns;
    float *floats;
    int64_t *ids;
} array;

/* The inputs of a contender. Arrays are the caller's. out (rows) gets the outputs of a run. */
typedef struct inputs {
    const array *arrays[MOST_ARRAYS];
    size_t count, sets, rows;
    float *out;
} inputs;

typedef struct contender {
    void *state;
    void (*run)(void *state, size_t set); /* computes the outputs of one set of inputs */
    void (*free)(void *state);
    char about[64]; /* the library's version, or the precision that it has chosen */
} contender;

/* The inputs of our own contenders.
 *   NET      one matrix of all inputs of the net
 *   PARTS    the user's inputs, and the items' parts of the first layer, computed ahead; so PARTS_BF16 and PARTS_I8
 *   MODEL    encoded features of the whole model */
typedef enum our_form { OUR_NET, OUR_PARTS, OUR_PARTS_BF16, OUR_PARTS_I8, OUR_MODEL } our_form;

/* Arrays by form: one of all inputs; the user's (1 row) and the items'; those of the exported graph: dense, ids, and
 * each bag's ids, filled up with -1, in the order of the encoded bags. `model` is a file of ours. */
void ours_open(our_form form, const char *model, const inputs *in, contender *out);
/* Both end the program where the library cannot be loaded, or was not there when this was built. */
void onnxruntime_open(const char *library, const char *model, const inputs *in, contender *out);
/* precision: of layers of floats, such as "f32" or "bf16"; NULL: the library's own choice. */
void openvino_open(const char *library, const char *model, const char *precision, const inputs *in, contender *out);

#endif
