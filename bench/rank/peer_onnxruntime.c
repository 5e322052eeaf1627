#include "peer.h"

#include "shapes.h"

#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_INPUTS 16

struct peer {
    void *library;
    const OrtApiBase *base;
    const OrtApi *api;
    OrtEnv *env;
    OrtSession *session;
    OrtMemoryInfo *memory;
    OrtValue *inputs[MOST_INPUTS], *output;
    const char *names[MOST_INPUTS];
    void *copies[MOST_INPUTS];
    size_t count;
    /* Sets of inputs in the caller's memory: (sets, set_width). */
    OrtValue **set_inputs, *given;
    size_t sets, set_width;
    OrtAllocator *allocator; /* the library's own, which output_name is of */
    char *output_name;
};

static void check(const peer *p, OrtStatus *status, const char *what) {
    if (!status) return;
    fprintf(stderr, "bench_rank: ONNX Runtime, %s: %s\n", what, p->api->GetErrorMessage(status));
    exit(1);
}

peer *peer_open(const char *library, const char *model) {
    peer *p = must_alloc(1, sizeof *p);
    p->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const OrtApiBase *(*get)(void) = NULL;
    if (p->library) *(void **)&get = dlsym(p->library, "OrtGetApiBase");
    if (!get) {
        fprintf(stderr, "bench_rank: cannot load %s: %s\n", library, dlerror());
        exit(1);
    }
    p->base = get();
    p->api = p->base->GetApi(ORT_API_VERSION);
    OrtSessionOptions *options;
    check(p, p->api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &p->env), "environment");
    check(p, p->api->CreateSessionOptions(&options), "options");
    check(p, p->api->SetIntraOpNumThreads(options, 1), "threads");
    check(p, p->api->SetInterOpNumThreads(options, 1), "threads");
    check(p, p->api->SetSessionExecutionMode(options, ORT_SEQUENTIAL), "mode");
    check(p, p->api->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_ALL), "optimisation");
    check(p, p->api->CreateSession(p->env, model, options, &p->session), model);
    p->api->ReleaseSessionOptions(options);
    check(p, p->api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &p->memory), "memory");
    return p;
}

const char *peer_version(const peer *session) {
    return session->base->GetVersionString();
}

static void release(peer *p) {
    for (size_t i = 0; i < p->count; i++) {
        p->api->ReleaseValue(p->inputs[i]);
        free(p->copies[i]);
    }
    p->count = 0;
    if (p->output) p->api->ReleaseValue(p->output);
    p->output = NULL;
}

void peer_free(peer *p) {
    if (!p) return;
    release(p);
    for (size_t i = 0; i < p->sets * p->set_width; i++)
        p->api->ReleaseValue(p->set_inputs[i]);
    if (p->given) p->api->ReleaseValue(p->given);
    free(p->set_inputs);
    if (p->output_name) check(p, p->api->AllocatorFree(p->allocator, p->output_name), "free");
    p->api->ReleaseMemoryInfo(p->memory);
    p->api->ReleaseSession(p->session);
    p->api->ReleaseEnv(p->env);
    dlclose(p->library);
    free(p);
}

static OrtValue *tensor(const peer *p, void *data, size_t rows, size_t columns, int is_ids) {
    const int64_t shape[] = {(int64_t)rows, (int64_t)columns};
    size_t bytes = rows * columns * (is_ids ? sizeof(int64_t) : sizeof(float));
    OrtValue *made;
    check(p,
          p->api->CreateTensorWithDataAsOrtValue(
              p->memory, data, bytes, shape, 2,
              is_ids ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 : ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &made),
          "tensor");
    return made;
}

static void bind_copy(peer *p, const char *name, void *copy, size_t rows, size_t columns, int is_ids) {
    p->names[p->count] = name;
    p->copies[p->count] = copy;
    p->inputs[p->count] = tensor(p, copy, rows, columns, is_ids);
    p->count++;
}

/* The next input: a copy of `rows` rows of the columns from `first` to `last`. */
static void bind_dense(peer *p, const char *name, const peer_inputs *in, size_t rows, size_t first, size_t last) {
    size_t width = last - first;
    float *copy = must_alloc(rows * width, sizeof *copy);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < width; c++)
            copy[r * width + c] = in->rows->dense[r * in->width + first + c];
    bind_copy(p, name, copy, rows, width, 0);
}

static void bind_ids(peer *p, const char *name, const peer_inputs *in, size_t rows, size_t first, size_t last) {
    size_t fields = last - first;
    int64_t *copy = must_alloc(rows * fields, sizeof *copy);
    for (size_t r = 0; r < rows; r++)
        for (size_t f = 0; f < fields; f++)
            copy[r * fields + f] = (int64_t)(in->rows->ids[r * in->fields + first + f] + (first + f) * in->table_size);
    bind_copy(p, name, copy, rows, fields, 1);
}

void peer_bind(peer *p, const peer_inputs *in) {
    release(p);
    bind_dense(p, "dense", in, in->rows->rows, 0, in->width);
    bind_ids(p, "ids", in, in->rows->rows, 0, in->fields);
}

void peer_bind_once(peer *p, const peer_inputs *in) {
    size_t rows = in->rows->rows;
    release(p);
    bind_dense(p, "user_dense", in, 1, 0, in->width / 2);
    bind_ids(p, "user_ids", in, 1, 0, in->fields / 2);
    bind_dense(p, "item_dense", in, rows, in->width / 2, in->width);
    bind_ids(p, "item_ids", in, rows, in->fields / 2, in->fields);
}

void peer_run(peer *p, const float **scores) {
    static const char *const result[] = {"scores"};
    if (p->output) p->api->ReleaseValue(p->output);
    p->output = NULL;
    check(p,
          p->api->Run(p->session, NULL, p->names, (const OrtValue *const *)p->inputs, p->count, result, 1, &p->output),
          "run");
    check(p, p->api->GetTensorMutableData(p->output, (void **)scores), "scores");
}

void peer_add_set(peer *p, const peer_array *arrays, size_t count) {
    OrtValue **more = realloc(p->set_inputs, (p->sets + 1) * count * sizeof(OrtValue *));
    if (!more) must(SL_ENOMEM, "inputs");
    p->set_inputs = more;
    p->set_width = count;
    for (size_t i = 0; i < count; i++) {
        const peer_array *a = &arrays[i];
        p->names[i] = a->name;
        p->set_inputs[p->sets * count + i] =
            a->floats ? tensor(p, a->floats, a->rows, a->columns, 0) : tensor(p, a->ids, a->rows, a->columns, 1);
    }
    p->sets++;
}

void peer_give_output(peer *p, float *out, size_t rows) {
    OrtTypeInfo *type;
    const OrtTensorTypeAndShapeInfo *info;
    size_t rank;
    const int64_t shape[] = {(int64_t)rows, 1};
    check(p, p->api->GetAllocatorWithDefaultOptions(&p->allocator), "allocator");
    check(p, p->api->SessionGetOutputName(p->session, 0, p->allocator, &p->output_name), "output");
    check(p, p->api->SessionGetOutputTypeInfo(p->session, 0, &type), "output");
    check(p, p->api->CastTypeInfoToTensorInfo(type, &info), "output");
    check(p, p->api->GetDimensionsCount(info, &rank), "output");
    p->api->ReleaseTypeInfo(type);
    check(p,
          p->api->CreateTensorWithDataAsOrtValue(p->memory, out, rows * sizeof *out, shape, rank,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &p->given),
          "output");
}

void peer_run_set(peer *p, size_t set) {
    check(p,
          p->api->Run(p->session, NULL, p->names, (const OrtValue *const *)(p->set_inputs + set * p->set_width),
                      p->set_width, (const char *const *)&p->output_name, 1, &p->given),
          "run");
}
