/* Writes small files as hnswlib and Faiss would into a folder: fuzz_import starts from them. */
#include "tests/support/foreign_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { N = 24, DIM = 4 };

static sl_index *make(void) {
    static float x[N][DIM];
    sl_index_params params;
    sl_index *index;
    const uint64_t gone = 5;
    for (size_t i = 0; i < sizeof x / sizeof(float); i++)
        x[i / DIM][i % DIM] = (float)(i * 37 % 101);
    sl_index_params_init(&params);
    params.dim = DIM;
    params.metric = SL_METRIC_L2;
    params.codes = SL_CODES_F32;
    params.m = 2;
    if (sl_index_create(&params, &index) != SL_OK || sl_index_add(index, x, SL_F32, N, 0, NULL, NULL) != SL_OK ||
        sl_index_delete(index, &gone, 1) != SL_OK)
        abort();
    return index;
}

static int write_seed(const char *folder, const char *name, foreign_bytes bytes) {
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length < 0 || (size_t)length >= sizeof path ? NULL : fopen(path, "wb");
    const int written = file && fwrite(bytes.at, 1, bytes.size, file) == bytes.size;
    free(bytes.at);
    return file && fclose(file) == 0 && written;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_import_seeds FOLDER\n");
        return 2;
    }
    if (mkdir(argv[1], 0777) != 0 && errno != EEXIST) {
        perror(argv[1]);
        return 1;
    }
    sl_index *index = make();
    const int written = write_seed(argv[1], "hnswlib", foreign_hnswlib(index)) &&
                        write_seed(argv[1], "hnsw-flat", foreign_faiss(index, FOREIGN_IDS | FOREIGN_GRAPH)) &&
                        write_seed(argv[1], "flat", foreign_faiss(index, 0));
    sl_index_free(index);
    return !written;
}
