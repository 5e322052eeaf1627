/* Imports any bytes as a file of hnswlib, and as one of Faiss. A file that is not refused gives a sound index. */
#include "fuzz/fuzz.h"

#include <shortlist_import.h>

static void use_index(sl_index *index) {
    sl_check_report report = {.struct_size = sizeof report};
    const uint64_t id = 1;
    float query[64] = {1};
    uint64_t ids[4];
    sl_index_stats stats = {.struct_size = sizeof stats};
    demand(sl_index_get_stats(index, &stats) == SL_OK, "an imported index has stats");
    demand(sl_index_check(index, NULL, &report) == SL_OK, "an imported index is sound");
    if (stats.dim <= 64) (void)sl_index_search(index, query, SL_F32, 1, 0, 4, NULL, ids, NULL, NULL);
    (void)sl_index_delete(index, &id, 1);
}

static void use_file(const char *path, size_t size) {
    (void)size;
    for (int format = SL_FOREIGN_HNSWLIB; format <= SL_FOREIGN_FAISS; format++) {
        sl_import_params params;
        sl_index *index;
        sl_import_params_init(&params);
        params.format = (sl_foreign_format)format;
        params.metric = SL_METRIC_L2;
        params.threads = 1;
        if (sl_index_import(path, &params, &index) != SL_OK) continue;
        use_index(index);
        sl_index_free(index);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    with_file(data, size, use_file);
    return 0;
}
