#include "../rank/shapes.h"
#include "contender.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef BENCH_OPENVINO
#include <dlfcn.h>
#include <openvino/c/openvino.h>

/* The functions of the C library that are called here. They are found by name, so that the program begins without it.
 */
#define EACH_CALL(CALL)                                                                                                \
    CALL(ov_core_create)                                                                                               \
    CALL(ov_core_free)                                                                                                 \
    CALL(ov_core_compile_model_from_file)                                                                              \
    CALL(ov_compiled_model_free)                                                                                       \
    CALL(ov_compiled_model_output_by_index)                                                                            \
    CALL(ov_port_get_partial_shape)                                                                                    \
    CALL(ov_partial_shape_free)                                                                                        \
    CALL(ov_output_const_port_free)                                                                                    \
    CALL(ov_compiled_model_get_property)                                                                               \
    CALL(ov_compiled_model_create_infer_request)                                                                       \
    CALL(ov_infer_request_free)                                                                                        \
    CALL(ov_infer_request_set_tensor)                                                                                  \
    CALL(ov_infer_request_set_output_tensor_by_index)                                                                  \
    CALL(ov_infer_request_infer)                                                                                       \
    CALL(ov_tensor_create_from_host_ptr)                                                                               \
    CALL(ov_tensor_free)                                                                                               \
    CALL(ov_shape_create)                                                                                              \
    CALL(ov_shape_free)                                                                                                \
    CALL(ov_free)                                                                                                      \
    CALL(ov_get_last_err_msg)

typedef struct calls {
#define MEMBER(name) __typeof__(name) *name;
    EACH_CALL(MEMBER)
#undef MEMBER
} calls;

typedef struct openvino {
    calls call;
    const inputs *in;
    ov_core_t *core;
    ov_compiled_model_t *model;
    ov_infer_request_t *request;
    ov_tensor_t **tensors; /* (sets, arrays) */
    ov_tensor_t *output;
} openvino;

static void check(const openvino *o, ov_status_e status, const char *what) {
    if (status == OK) return;
    fprintf(stderr, "bench_precision: OpenVINO, %s: %s\n", what, o->call.ov_get_last_err_msg());
    exit(1);
}

static void find_calls(const char *path, calls *out) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "bench_precision: cannot load %s: %s\n", path, dlerror());
        exit(1);
    }
#define FIND(name)                                                                                                     \
    *(void **)&out->name = dlsym(library, #name);                                                                      \
    if (!out->name) {                                                                                                  \
        fprintf(stderr, "bench_precision: %s lacks %s\n", path, #name);                                                \
        exit(1);                                                                                                       \
    }
    EACH_CALL(FIND)
#undef FIND
}

static ov_tensor_t *tensor_of(const openvino *o, ov_element_type_e type, int64_t rank, const array *of, void *data) {
    const int64_t sizes[] = {(int64_t)of->rows, (int64_t)of->columns};
    ov_shape_t shape;
    ov_tensor_t *tensor;
    check(o, o->call.ov_shape_create(rank, sizes, &shape), "shape");
    check(o, o->call.ov_tensor_create_from_host_ptr(type, shape, data, &tensor), "tensor");
    check(o, o->call.ov_shape_free(&shape), "shape");
    return tensor;
}

/* 1 or 2. */
static int64_t output_rank(const openvino *o) {
    ov_output_const_port_t *port;
    ov_partial_shape_t shape;
    check(o, o->call.ov_compiled_model_output_by_index(o->model, 0, &port), "output");
    check(o, o->call.ov_port_get_partial_shape(port, &shape), "output");
    int64_t rank = shape.rank.max;
    o->call.ov_partial_shape_free(&shape);
    o->call.ov_output_const_port_free(port);
    return rank;
}

static void bind(openvino *o) {
    const inputs *in = o->in;
    o->tensors = must_alloc(in->sets * in->count, sizeof(ov_tensor_t *));
    for (size_t set = 0; set < in->sets; set++)
        for (size_t i = 0; i < in->count; i++) {
            const array *a = in->arrays[i];
            size_t at = set * a->rows * a->columns;
            o->tensors[set * in->count + i] =
                a->floats ? tensor_of(o, F32, 2, a, a->floats + at) : tensor_of(o, I64, 2, a, a->ids + at);
        }
    o->output = tensor_of(o, F32, output_rank(o), &(array){.rows = in->rows, .columns = 1}, in->out);
    check(o, o->call.ov_infer_request_set_output_tensor_by_index(o->request, 0, o->output), "output");
}

static void openvino_run(void *state, size_t set) {
    openvino *o = state;
    for (size_t i = 0; i < o->in->count; i++)
        check(
            o,
            o->call.ov_infer_request_set_tensor(o->request, o->in->arrays[i]->name, o->tensors[set * o->in->count + i]),
            "input");
    check(o, o->call.ov_infer_request_infer(o->request), "infer");
}

static void openvino_free(void *state) {
    openvino *o = state;
    o->call.ov_infer_request_free(o->request);
    for (size_t i = 0; i < o->in->sets * o->in->count; i++)
        o->call.ov_tensor_free(o->tensors[i]);
    o->call.ov_tensor_free(o->output);
    o->call.ov_compiled_model_free(o->model);
    o->call.ov_core_free(o->core);
    free(o->tensors);
    free(o);
}

/* Properties by the names that the documentation gives: the headers' names are variables of the library. */
void openvino_open(const char *library, const char *model, const char *precision, const inputs *in, contender *out) {
    openvino *o = must_alloc(1, sizeof *o);
    char *chosen = NULL;
    o->in = in;
    find_calls(library, &o->call);
    check(o, o->call.ov_core_create(&o->core), "core");
    check(o,
          o->call.ov_core_compile_model_from_file(o->core, model, "CPU", precision ? 8 : 6, &o->model,
                                                  "PERFORMANCE_HINT", "LATENCY", "NUM_STREAMS", "1",
                                                  "INFERENCE_NUM_THREADS", "1", "INFERENCE_PRECISION_HINT", precision),
          model);
    check(o, o->call.ov_compiled_model_create_infer_request(o->model, &o->request), "request");
    bind(o);
    *out = (contender){.state = o, .run = openvino_run, .free = openvino_free};
    check(o, o->call.ov_compiled_model_get_property(o->model, "INFERENCE_PRECISION_HINT", &chosen), "precision");
    snprintf(out->about, sizeof out->about, "%s", chosen);
    o->call.ov_free(chosen);
}
#else
void openvino_open(const char *library, const char *model, const char *precision, const inputs *in, contender *out) {
    (void)library, (void)model, (void)precision, (void)in, (void)out;
    fprintf(stderr, "bench_precision: built without OpenVINO's headers; see bench/precision.sh\n");
    exit(1);
}
#endif
