#include "tests/support/live_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

scratch place;
float *x;

void set_up(void) {
    scratch_open(&place);
    x = clusters_make(ALL + QUERIES, DIM, 0.3, 21);
}

void tear_down(void) {
    free(x);
    scratch_close(&place);
}

const live_kind kinds[LIVE_KINDS] = {
    {SL_F32, SL_CODES_I8, SL_REFINE_NONE}, {SL_F32, SL_CODES_I8, SL_REFINE_BF16},
    {SL_F32, SL_CODES_I16, SL_REFINE_I16}, {SL_F32, SL_CODES_F32, SL_REFINE_NONE},
    {SL_U8, SL_CODES_I8, SL_REFINE_NONE},  {SL_F32, SL_CODES_I4, SL_REFINE_NONE},
    {SL_U8, SL_CODES_I4, SL_REFINE_NONE},
};

void params_of(const live_kind *kind, sl_index_params *params) {
    indexes_params(params, DIM, SL_METRIC_L2);
    params->dtype = kind->dtype;
    params->codes = kind->codes;
    params->refine = kind->refine;
}

void save_with_room(sl_index *index, size_t room) {
    sl_save_params params;
    indexes_save_params(&params);
    params.room = room;
    ck_ok(sl_index_save(index, place.path, &params));
}

sl_status open_as(sl_place where, int writable, const sl_file_ops *ops, sl_index **out) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = where;
    params.writable = writable;
    params.file_ops = ops;
    return sl_index_open(place.path, &params, out);
}

sl_index *opened(sl_place where, int writable) {
    sl_index *index;
    ck_ok(open_as(where, writable, NULL, &index));
    return index;
}

answers ask(const sl_index *index, const void *rows, sl_dtype dtype) {
    answers a;
    memset(&a, 0, sizeof a);
    const char *queries = (const char *)rows + ALL * DIM * sl_dtype_size(dtype);
    indexes_search(index, (vector_rows){queries, dtype, QUERIES}, K, EF, a.ids, a.scores);
    return a;
}

void make_live(size_t n, size_t room) {
    sl_index_params params;
    params_of(&kinds[0], &params);
    sl_index *index = indexes_make(&params, x, SL_F32, n, NULL, 1);
    save_with_room(index, room);
    sl_index_free(index);
}

void write_and_die(void) {
    pid_t child = fork();
    if (child == 0) {
        sl_index *writer;
        if (open_as(SL_PLACE_MAP, 1, NULL, &writer) != SL_OK || indexes_add(writer, x + N * DIM, SL_F32, 100, NULL) ||
            sl_index_sync(writer) != SL_OK || indexes_add(writer, x + (N + 100) * DIM, SL_F32, 100, NULL))
            _exit(1);
        _exit(0);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
}
