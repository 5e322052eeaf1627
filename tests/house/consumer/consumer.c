/* A program as a user of the installed library writes it; compiled as C and as C++. */
#include <shortlist.h>

#include <stdio.h>

enum { DIM = 8, COUNT = 100 };

int main(void) {
    static float rows[COUNT][DIM];
    for (int i = 0; i < COUNT; i++) {
        for (int j = 0; j < DIM; j++)
            rows[i][j] = (float)((i * 7 + j * j * 3) % 101) - 50.0f;
    }
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = DIM;
    params.metric = SL_METRIC_L2;
    sl_index *index = NULL;
    uint64_t id = SL_NO_ID;
    int failed = sl_index_create(&params, &index) != SL_OK ||
                 sl_index_add(index, rows, SL_F32, COUNT, 0, NULL, NULL) != SL_OK ||
                 sl_index_search(index, rows[42], SL_F32, 1, 0, 1, NULL, &id, NULL, NULL) != SL_OK || id != 42;
    if (failed) fprintf(stderr, "consumer: found %llu instead of 42: %s\n", (unsigned long long)id, sl_last_error());
    sl_index_free(index);
    return failed;
}
