#include "peer.h"

#include "shapes.h"

#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>

struct peer {
    void *library;
    const OrtApiBase *base;
    const OrtApi *api;
    OrtEnv *env;
    OrtSession *session;
    OrtMemoryInfo *memory;
    OrtValue *inputs[2], *output;
    int64_t *ids;
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
    for (int i = 0; i < 2; i++)
        if (p->inputs[i]) p->api->ReleaseValue(p->inputs[i]);
    if (p->output) p->api->ReleaseValue(p->output);
    free(p->ids);
}

void peer_free(peer *p) {
    if (!p) return;
    release(p);
    p->api->ReleaseMemoryInfo(p->memory);
    p->api->ReleaseSession(p->session);
    p->api->ReleaseEnv(p->env);
    dlclose(p->library);
    free(p);
}

void peer_bind(peer *p, const sl_encoded *rows, size_t width, size_t fields, size_t table_size) {
    release(p);
    p->output = NULL;
    p->ids = must_alloc(rows->rows * fields, sizeof *p->ids);
    for (size_t r = 0; r < rows->rows; r++)
        for (size_t f = 0; f < fields; f++)
            p->ids[r * fields + f] = (int64_t)(rows->ids[r * fields + f] + f * table_size);
    int64_t dense[] = {(int64_t)rows->rows, (int64_t)width};
    int64_t ids[] = {(int64_t)rows->rows, (int64_t)fields};
    check(p,
          p->api->CreateTensorWithDataAsOrtValue(p->memory, (void *)rows->dense, rows->rows * width * sizeof(float),
                                                 dense, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &p->inputs[0]),
          "dense input");
    check(p,
          p->api->CreateTensorWithDataAsOrtValue(p->memory, p->ids, rows->rows * fields * sizeof *p->ids, ids, 2,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &p->inputs[1]),
          "id input");
}

void peer_run(peer *p, const float **scores) {
    static const char *const names[] = {"dense", "ids"};
    static const char *const result[] = {"scores"};
    if (p->output) p->api->ReleaseValue(p->output);
    p->output = NULL;
    const OrtValue *inputs[] = {p->inputs[0], p->inputs[1]};
    check(p, p->api->Run(p->session, NULL, names, inputs, 2, result, 1, &p->output), "run");
    check(p, p->api->GetTensorMutableData(p->output, (void **)scores), "scores");
}
