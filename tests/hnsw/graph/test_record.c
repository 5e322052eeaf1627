/* Layer 0 in records: what they hold and where, the same index as in arrays, and files that say otherwise. */
#include "base/crc32c.h"
#include "hnsw/graph/record.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <string.h>

enum { N = 600, DIM = 20, QUERIES = 20, K = 10, EF = 50 };

static scratch place;
static float *x;

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(N + QUERIES, DIM, 0.3, 8);
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

static void save_as(sl_index *index, const char *path, sl_layout layout, size_t room) {
    sl_save_params params;
    sl_save_params_init(&params);
    params.layout = layout;
    params.room = room;
    ck_ok(sl_index_save(index, path, &params));
}

static uint64_t record_bytes(const sl_index *index) {
    sl_index_storage storage = {.struct_size = sizeof storage};
    ck_ok(sl_index_get_storage(index, &storage));
    return storage.record_bytes;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Where the parts lie
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(a_multiple_of_a_block) {
    static const struct {
        size_t dim, m;
        sl_codes codes;
        size_t bytes;
    } cases[] = {{100, 16, SL_CODES_I8, 256},  {96, 16, SL_CODES_I8, 256},  {104, 16, SL_CODES_I8, 256},
                 {105, 16, SL_CODES_I8, 512},  {100, 32, SL_CODES_I8, 512}, {128, 16, SL_CODES_I16, 512},
                 {100, 16, SL_CODES_I4, 256},  {384, 16, SL_CODES_I8, 768}, {768, 32, SL_CODES_I4, 1280},
                 {100, 16, SL_CODES_F32, 768}, {1, 2, SL_CODES_I8, 256},    {2000, 16, SL_CODES_F32, 8192}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        sl_index_params params;
        sl_index *index;
        sl_plan plan = {.struct_size = sizeof plan};
        sl_index_params_init(&params);
        params.dim = cases[c].dim;
        params.m = cases[c].m;
        params.codes = cases[c].codes;
        ck_ok(sl_index_plan(&params, 1000, &plan));
        ck_assert_msg(plan.record_bytes == cases[c].bytes, "dim %zu, m %zu: %llu bytes", cases[c].dim, cases[c].m,
                      (unsigned long long)plan.record_bytes);
        ck_ok(sl_index_create(&params, &index));
        sl_record record = sl_record_of(&index->graph);
        /* Parts lie one behind the other, each aligned. */
        const size_t *at = record.at, *size = record.size;
        ck_assert_uint_le(size[SL_ARRAY_CODES] + size[SL_ARRAY_REST], at[SL_ARRAY_IDS]);
        ck_assert_uint_le(at[SL_ARRAY_IDS] + sizeof(uint64_t), at[SL_ARRAY_CHECKSUMS]);
        ck_assert_uint_le(at[SL_ARRAY_CHECKSUMS] + sizeof(uint32_t), at[SL_ARRAY_LINKS]);
        ck_assert_uint_le(at[SL_ARRAY_LINKS] + 2 * cases[c].m * sizeof(uint32_t), record.pitch);
        ck_assert_uint_eq(at[SL_ARRAY_IDS] % sizeof(uint64_t) + at[SL_ARRAY_CHECKSUMS] % sizeof(uint32_t), 0);
        ck_assert_uint_eq(at[SL_ARRAY_LINKS] % sizeof(uint64_t), 0);
        sl_index_free(index);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The same index
 * ------------------------------------------------------------------------------------------------------------- */

static const struct kind {
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
} kinds[] = {
    {SL_F32, SL_CODES_I8, SL_REFINE_NONE},  {SL_F32, SL_CODES_I8, SL_REFINE_BF16},
    {SL_F32, SL_CODES_I16, SL_REFINE_I16},  {SL_F32, SL_CODES_F32, SL_REFINE_NONE},
    {SL_I8, SL_CODES_I8, SL_REFINE_NONE},   {SL_U8, SL_CODES_I8, SL_REFINE_NONE},
    {SL_I16, SL_CODES_I16, SL_REFINE_NONE}, {SL_F32, SL_CODES_I4, SL_REFINE_NONE},
    {SL_F32, SL_CODES_I4, SL_REFINE_F32},   {SL_U8, SL_CODES_I4, SL_REFINE_NONE},
};

typedef struct answers {
    uint64_t ids[QUERIES * K];
    float scores[QUERIES * K];
} answers;

static sl_index *make(const struct kind *kind, sl_metric metric, const unsigned char *rows, int wide) {
    static uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = ((uint64_t)1 << 40) + 5 * i;
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.dtype = kind->dtype;
    params.codes = kind->codes;
    params.refine = kind->refine;
    return indexes_make(&params, rows, kind->dtype, N, wide ? ids : NULL, 1);
}

static void same_answers(const sl_index *index, const void *queries, sl_dtype dtype, const answers *wanted) {
    answers found;
    memset(&found, 0, sizeof found);
    indexes_search(index, (vector_rows){queries, dtype, QUERIES}, K, EF, found.ids, found.scores);
    ck_assert_mem_eq(&found, wanted, sizeof found);
}

static void same_files(const char *a, const char *b) {
    size_t a_size, b_size;
    unsigned char *a_bytes = file_read(a, &a_size), *b_bytes = file_read(b, &b_size);
    ck_assert_uint_eq(a_size, b_size);
    ck_assert_mem_eq(a_bytes, b_bytes, a_size);
    free(a_bytes);
    free(b_bytes);
}

/* Records opened at any place are the index that was saved. Saved as arrays again, they are the file of arrays as it
 * was. Saved as records, they are the file of records. */
START_TEST(as_in_arrays) {
    const struct kind *kind = &kinds[_i / 2];
    const int wide = _i % 2;
    char arrays[SCRATCH_PATH], again[SCRATCH_PATH];
    scratch_name(&place, "arrays.sl", arrays);
    scratch_name(&place, "again.sl", again);
    unsigned char *rows = clusters_as(kind->dtype, x, (N + QUERIES) * DIM);
    const unsigned char *queries = rows + N * DIM * sl_dtype_size(kind->dtype);
    for (int metric = 0; metric < 3; metric++) {
        answers before = {.ids = {0}};
        sl_index *index = make(kind, (sl_metric)metric, rows, wide);
        indexes_search(index, (vector_rows){queries, kind->dtype, QUERIES}, K, EF, before.ids, before.scores);
        unsigned char wanted[DIM * 4];
        ck_ok(sl_index_get(index, &before.ids[0], 1, kind->dtype, wanted));
        save_as(index, arrays, SL_LAYOUT_ARRAYS, 0);
        save_as(index, place.path, SL_LAYOUT_RECORDS, 0);
        sl_index_free(index);
        for (int where = SL_PLACE_DRAM; where <= SL_PLACE_PMEM; where++) {
            index = indexes_open(place.path, (sl_place)where);
            ck_assert_uint_eq(record_bytes(index), where == SL_PLACE_DRAM ? 0 : sl_record_of(&index->graph).pitch);
            same_answers(index, queries, kind->dtype, &before);
            indexes_sound(index);
            unsigned char vector[DIM * 4];
            ck_ok(sl_index_get(index, &before.ids[0], 1, kind->dtype, vector));
            ck_assert_mem_eq(vector, wanted, DIM * sl_dtype_size(kind->dtype));
            save_as(index, again, SL_LAYOUT_RECORDS, 0);
            same_files(again, place.path);
            save_as(index, again, SL_LAYOUT_ARRAYS, 0);
            /* Ids that are their nodes' numbers are kept once they have been written down. */
            if (wide) same_files(again, arrays);
            sl_index_free(index);
            index = indexes_open(again, SL_PLACE_MAP);
            ck_assert_uint_eq(record_bytes(index), 0);
            same_answers(index, queries, kind->dtype, &before);
            sl_index_free(index);
        }
    }
    free(rows);
}
END_TEST

/* A record as long as a row of an array is no row all the same. */
START_TEST(as_long_as_rows) {
    enum { LONG = 240, FEW = 100, ROOM = 150 };
    char again[SCRATCH_PATH], arrays[SCRATCH_PATH];
    scratch_name(&place, "again.sl", again);
    scratch_name(&place, "arrays.sl", arrays);
    uint64_t ids[FEW];
    for (size_t i = 0; i < FEW; i++)
        ids[i] = ((uint64_t)1 << 40) + i;
    float *wide = clusters_make(FEW, LONG, 0.3, 9);
    sl_index_params params;
    indexes_params(&params, LONG, SL_METRIC_L2);
    params.m = 5;
    params.codes = SL_CODES_F32;
    params.ef_construction = 20;
    sl_index *index = indexes_make(&params, wide, SL_F32, FEW, ids, 1);
    ck_assert_uint_eq(sl_record_of(&index->graph).pitch, index->graph.arrays[SL_ARRAY_CODES].width);
    save_as(index, arrays, SL_LAYOUT_ARRAYS, 0);
    save_as(index, place.path, SL_LAYOUT_RECORDS, 0);
    sl_index_free(index);
    index = indexes_open(place.path, SL_PLACE_MAP);
    save_as(index, again, SL_LAYOUT_ARRAYS, 0);
    same_files(again, arrays);
    save_as(index, again, SL_LAYOUT_ARRAYS, ROOM);
    sl_index_free(index);
    index = indexes_open(again, SL_PLACE_DRAM);
    indexes_sound(index);
    sl_index_free(index);
    free(wide);
}
END_TEST

/* Each record begins at a block of the file, and its sizes are those that were told. */
START_TEST(sizes_are_told) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        unsigned char *rows = clusters_as(kinds[k].dtype, x, (N + QUERIES) * DIM);
        sl_index *index = make(&kinds[k], SL_METRIC_COSINE, rows, 1);
        save_as(index, place.path, SL_LAYOUT_RECORDS, 0);
        sl_index_free(index);
        index = indexes_open(place.path, SL_PLACE_MAP);
        const sl_file_section *section = sl_store_section(index->store, SL_SECTION_RECORDS);
        size_t size;
        free(file_read(place.path, &size));
        sl_index_stats stats = indexes_stats(index);
        ck_assert_uint_eq(section->offset % SL_RECORD_BLOCK + section->size % (N * SL_RECORD_BLOCK), 0);
        ck_assert_uint_eq(stats.bytes_total, size);
        ck_assert_uint_eq(stats.bytes_ids, N * sizeof(uint64_t));
        ck_assert_uint_eq(stats.bytes_links, N * index->graph.m0 * sizeof(uint32_t));
        ck_assert_uint_ge(stats.bytes_codes + stats.bytes_links + stats.bytes_ids, section->size);
        sl_index_free(index);
        free(rows);
    }
}
END_TEST

START_TEST(empty_ones) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, x, SL_F32, 0, NULL, 1);
    save_as(index, place.path, SL_LAYOUT_RECORDS, 0);
    sl_index_free(index);
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_PMEM; where++) {
        uint64_t id = 0;
        index = indexes_open(place.path, (sl_place)where);
        indexes_sound(index);
        indexes_search(index, (vector_rows){x, SL_F32, 1}, 1, EF, &id, NULL);
        ck_assert_uint_eq(id, SL_NO_ID);
        sl_index_free(index);
    }
    index = indexes_open(place.path, SL_PLACE_DRAM);
    ck_ok(indexes_add(index, x, SL_F32, N, NULL));
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

START_TEST(layouts_there_are_none_of) {
    sl_save_params params;
    sl_index_params made;
    indexes_params(&made, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&made, x, SL_F32, N, NULL, 1);
    sl_save_params_init(&params);
    params.layout = (sl_layout)2;
    ck_fails(sl_index_save(index, place.path, &params), SL_EINVAL, "layout 2");
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Files that say otherwise
 * ------------------------------------------------------------------------------------------------------------- */

static void put_header(sl_file_header *header) {
    header->crc32c = sl_crc32c(0, header, offsetof(sl_file_header, crc32c));
    file_patch(place.path, 0, header, sizeof *header);
}

static sl_file_section *section_of(sl_file_header *header, uint32_t kind) {
    for (uint32_t i = 0; i < header->section_count; i++)
        if (header->sections[i].kind == kind) return &header->sections[i];
    ck_abort_msg("no section %u", kind);
}

static void all_refuse(const char *text) {
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_PMEM; where++) {
        sl_open_params params;
        sl_index *index;
        sl_open_params_init(&params);
        params.place = (sl_place)where;
        ck_fails(sl_index_open(place.path, &params, &index), SL_ECORRUPT, text);
    }
}

START_TEST(headers_that_lie) {
    sl_file_header header, lying;
    sl_index *index = make(&kinds[0], SL_METRIC_COSINE, (const unsigned char *)x, 1);
    save_as(index, place.path, SL_LAYOUT_RECORDS, 0);
    sl_index_free(index);
    size_t size;
    unsigned char *bytes = file_read(place.path, &size);
    memcpy(&header, bytes, sizeof header);
    free(bytes);

    lying = header;
    lying.record_pitch += SL_RECORD_BLOCK;
    put_header(&lying);
    all_refuse("records of 512 bytes, where its parameters make 256");
    lying = header;
    lying.record_pitch = 0;
    put_header(&lying);
    all_refuse("section 1 (codes of the vectors) is 0 bytes");
    lying = header;
    section_of(&lying, SL_SECTION_RECORDS)->size -= 1;
    put_header(&lying);
    all_refuse("section 29 (records of the vectors) is");
    lying = header;
    section_of(&lying, SL_SECTION_RECORDS)->kind = SL_SECTION_CODES;
    put_header(&lying);
    all_refuse("section 1 (codes of the vectors) is");
    put_header(&header);
    sl_index_free(indexes_open(place.path, SL_PLACE_MAP));
}
END_TEST

/* A section that nothing is due in is there, and holds nothing. */
START_TEST(empty_sections) {
    static const sl_section_kind empty[] = {SL_SECTION_SUMS, SL_SECTION_DEAD, SL_SECTION_IDS, SL_SECTION_REST};
    sl_index *index = make(&kinds[0], SL_METRIC_COSINE, (const unsigned char *)x, 1);
    for (size_t i = 0; i < 2 * sizeof empty / sizeof *empty; i++) {
        sl_file_header header;
        save_as(index, place.path, i % 2 ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS, 0);
        if (i == 4) continue; /* arrays have ids */
        size_t size;
        unsigned char *bytes = file_read(place.path, &size);
        memcpy(&header, bytes, sizeof header);
        size_t at = sl_round_up(size, SL_SECTION_ALIGN), end = at + SL_SECTION_SLACK;
        bytes = realloc(bytes, end);
        memset(bytes + size, 0, end - size);
        header.sections[header.section_count++] =
            (sl_file_section){.kind = (uint32_t)empty[i / 2], .flags = SL_SECTION_REQUIRED, .offset = at};
        header.file_size = end;
        file_write(place.path, bytes, end);
        free(bytes);
        put_header(&header);
        for (int where = SL_PLACE_DRAM; where <= SL_PLACE_PMEM; where++) {
            float vector[DIM];
            sl_index *opened = indexes_open(place.path, (sl_place)where);
            indexes_sound(opened);
            ck_ok(sl_index_get(opened, &(uint64_t){(uint64_t)1 << 40}, 1, SL_F32, vector));
            sl_index_free(opened);
        }
    }
    sl_index_free(index);
}
END_TEST

/* A file that never changes has the CRC of the section over all; with room it is the records' own that count. */
START_TEST(damaged_records) {
    sl_index *index = make(&kinds[0], SL_METRIC_COSINE, (const unsigned char *)x, 1);
    for (size_t room = 0; room <= N; room += N) {
        save_as(index, place.path, SL_LAYOUT_RECORDS, room);
        sl_index *opened = indexes_open(place.path, SL_PLACE_MAP);
        size_t at =
            (size_t)sl_store_section(opened->store, SL_SECTION_RECORDS)->offset + 17 * opened->graph.record.pitch;
        sl_index_free(opened);
        file_patch(place.path, at + 3, "\x77\x66", 2);
        sl_open_params params;
        sl_open_params_init(&params);
        params.place = SL_PLACE_DRAM;
        ck_fails(sl_index_open(place.path, &params, &opened), SL_ECORRUPT,
                 room ? "1 records are damaged, the first that of id 1099511627861"
                      : "section 29 (records of the vectors) is damaged");
    }
    sl_index_free(index);
}
END_TEST

/* A mapped index has the same arrays in both layouts. A save keeps the checksums of either, so that damage stays known.
 */
START_TEST(the_same_arrays_in_both_layouts) {
    sl_index *index = make(&kinds[_i], SL_METRIC_COSINE, (const unsigned char *)x, 1), *opened[2];
    for (int layout = 0; layout < 2; layout++) {
        save_as(index, place.path, (sl_layout)layout, N);
        opened[layout] = indexes_open(place.path, SL_PLACE_MAP);
    }
    ck_assert_int_ne(sl_has(&opened[0]->graph, SL_ARRAY_CHECKSUMS), 0);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        ck_assert_msg(opened[0]->graph.arrays[kind].width == opened[1]->graph.arrays[kind].width, "array %d",
                      (int)kind);
    sl_index_free(opened[0]);
    sl_index_free(opened[1]);
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("parts"), tcase_create("same"), tcase_create("otherwise")};
    for (size_t i = 0; i < 3; i++) {
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
        tcase_set_timeout(cases[i], 120);
    }
    tcase_add_test(cases[0], a_multiple_of_a_block);
    tcase_add_loop_test(cases[1], as_in_arrays, 0, 2 * sizeof kinds / sizeof *kinds);
    tcase_add_test(cases[1], as_long_as_rows);
    tcase_add_test(cases[1], sizes_are_told);
    tcase_add_test(cases[1], empty_ones);
    tcase_add_test(cases[2], layouts_there_are_none_of);
    tcase_add_test(cases[2], headers_that_lie);
    tcase_add_test(cases[2], empty_sections);
    tcase_add_test(cases[2], damaged_records);
    tcase_add_loop_test(cases[2], the_same_arrays_in_both_layouts, 0, sizeof kinds / sizeof *kinds);
    return check_main("record", cases, 3);
}
