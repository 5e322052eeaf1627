/* Checksums of single records, of a file that is written in place. Any bit of a record that flips is found, and the
 * record's owner is named. Nothing else is taken for a damaged record. */
#include "base/crc32c.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/record.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 200, MORE = 50, ALL = N + MORE, ROOM = 400, DIM = 20 };

static scratch place;
static float *x;

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(ALL, DIM, 0.3, 5);
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

static const struct kind {
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
} kinds[] = {
    {SL_F32, SL_CODES_I8, SL_REFINE_NONE}, {SL_F32, SL_CODES_I8, SL_REFINE_BF16},
    {SL_F32, SL_CODES_I16, SL_REFINE_I16}, {SL_F32, SL_CODES_F32, SL_REFINE_NONE},
    {SL_F32, SL_CODES_I8, SL_REFINE_F32},  {SL_F32, SL_CODES_I4, SL_REFINE_NONE},
    {SL_U8, SL_CODES_I4, SL_REFINE_NONE},
};

static uint64_t id_of(size_t node) {
    return 1000 + 3 * (uint64_t)node;
}

static sl_index *opened(int writable) {
    sl_index *index;
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = writable;
    ck_ok(sl_index_open(place.path, &params, &index));
    return index;
}

static void save(const struct kind *kind, size_t n, size_t room) {
    uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = id_of(i);
    unsigned char *rows = clusters_as(kind->dtype, x, ALL * DIM);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.dtype = kind->dtype;
    params.codes = kind->codes;
    params.refine = kind->refine;
    sl_index *index = indexes_make(&params, rows, kind->dtype, n, ids, 1);
    sl_save_params save_params;
    indexes_save_params(&save_params);
    save_params.room = room;
    ck_ok(sl_index_save(index, place.path, &save_params));
    sl_index_free(index);
    free(rows);
}

/* Some of the records come with the file, some are added to it. */
static void make(const struct kind *kind) {
    uint64_t ids[MORE];
    for (size_t i = 0; i < MORE; i++)
        ids[i] = id_of(N + i);
    save(kind, N, ROOM);
    unsigned char *rows = clusters_as(kind->dtype, x, ALL * DIM);
    sl_index *writer = opened(1);
    ck_ok(indexes_add(writer, rows + (size_t)N * DIM * sl_dtype_size(kind->dtype), kind->dtype, MORE, ids));
    ck_assert_uint_eq(indexes_sound(writer).records_checked, ALL);
    ck_ok(sl_index_sync(writer));
    sl_index_free(writer);
    free(rows);
}

static sl_status scrub(sl_index *index, uint64_t *ids, size_t room, sl_check_report *report) {
    sl_check_params params;
    sl_check_params_init(&params);
    params.sample = 0;
    params.threads = 1 + room % 2;
    params.scrub = 1;
    params.bad_ids = ids;
    params.bad_ids_room = room;
    *report = (sl_check_report){.struct_size = sizeof *report};
    return sl_index_check(index, &params, report);
}

/* Flips a bit of a file that a process has mapped; the process sees the change at once. */
static void flip(const sl_index *index, uint32_t kind, size_t at) {
    size_t offset = (size_t)sl_store_section(index->store, kind)->offset + at;
    unsigned char byte = index->store->base[offset] ^ (unsigned char)(1u << (at % 8));
    file_patch(place.path, offset, &byte, 1);
}

/* Place in the file of each node's part of a kind: `size` bytes, 0 for no part. */
typedef struct part {
    uint32_t kind; /* of the section it is in */
    size_t offset, step, size;
} part;

static part part_of(const sl_index *index, sl_section_kind kind) {
    const sl_file_section *section = sl_store_section(index->store, (uint32_t)kind);
    size_t size = section ? (size_t)section->size / ROOM : 0;
    const sl_record *record = &index->graph.record;
    sl_array_kind array = 0;
    while (array < SL_ARRAY_KINDS && sl_array_lines[array].section != kind)
        array++;
    if (record->pitch == 0 || array == SL_ARRAY_KINDS || !sl_record_holds(&index->graph, array))
        return (part){(uint32_t)kind, 0, size, size};
    return (part){SL_SECTION_RECORDS, record->at[array], record->pitch, record->size[array]};
}

static void flip_part(const sl_index *index, part part, size_t node, size_t byte) {
    flip(index, part.kind, node * part.step + part.offset + byte);
}

/* ---------------------------------------------------------------------------------------------------------------
 * What is found
 * ------------------------------------------------------------------------------------------------------------- */

static void check_row(sl_index *index, sl_section_kind kind, size_t node) {
    part part = part_of(index, kind);
    for (size_t byte = 0; byte < part.size; byte++) {
        uint64_t ids[2] = {0, 0}, wanted;
        char text[32];
        sl_check_report report;
        flip_part(index, part, node, byte);
        wanted = sl_id_of(&index->graph, (uint32_t)node);
        ck_assert_int_eq(wanted == id_of(node), kind != SL_SECTION_IDS);
        snprintf(text, sizeof text, "id %llu;", (unsigned long long)wanted);
        ck_fails(scrub(index, ids, 2, &report), SL_ECORRUPT, text);
        ck_assert_uint_eq(report.records_checked, ALL);
        ck_assert_uint_eq(report.bad_records, 1);
        ck_assert_uint_eq(ids[0], wanted);
        ck_assert_uint_eq(ids[1], 0);
        flip_part(index, part, node, byte);
    }
}

START_TEST(every_byte_of_a_record) {
    const sl_section_kind parts[] = {SL_SECTION_CODES, SL_SECTION_REST, SL_SECTION_REFINE, SL_SECTION_IDS,
                                     SL_SECTION_SUMS};
    const size_t nodes[] = {0, 77, N - 1, N, ALL - 1};
    make(&kinds[_i]);
    sl_index *index = opened(0);
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
        for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
            check_row(index, parts[part], nodes[i]);
    ck_assert_uint_eq(indexes_sound(index).records_checked, ALL);
    sl_index_free(index);
}
END_TEST

/* Links, the codes that walks read and room are not part of a record. The checksums of their pages report the
 * damage. */
START_TEST(nothing_else) {
    const sl_section_kind parts[] = {SL_SECTION_LINKS,       SL_SECTION_COARSE,      SL_SECTION_PROJECTION,
                                     SL_SECTION_UPPER_NODES, SL_SECTION_UPPER_START, SL_SECTION_UPPER_LINKS,
                                     SL_SECTION_TUNED};
    const sl_section_kind records[] = {SL_SECTION_CODES, SL_SECTION_REST, SL_SECTION_REFINE, SL_SECTION_IDS,
                                       SL_SECTION_SUMS};
    sl_check_report report;
    make(&kinds[_i]);
    sl_index *index = opened(0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (size_t at = 0; at < 40 && sl_store_section(index->store, part_of(index, parts[i]).kind); at++) {
            flip_part(index, part_of(index, parts[i]), 0, at);
            ck_assert_int_eq(scrub(index, NULL, 0, &report), SL_ECORRUPT);
            ck_assert_uint_eq(report.bad_pages, 1);
            ck_assert_uint_eq(report.records_checked, ALL);
            ck_assert_uint_eq(report.bad_records, 0);
            flip_part(index, part_of(index, parts[i]), 0, at);
        }
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        if (part_of(index, records[i]).size) {
            flip_part(index, part_of(index, records[i]), ALL, 0);
            ck_fails(scrub(index, NULL, 0, &report), SL_ECORRUPT, "1 pages are damaged");
            ck_assert_uint_eq(report.bad_records, 0);
            flip_part(index, part_of(index, records[i]), ALL, 0);
        }
    ck_assert_uint_eq(indexes_sound(index).records_checked, ALL);
    sl_index_free(index);
}
END_TEST

START_TEST(several) {
    const size_t nodes[] = {3, 4, 90, 201, 249};
    uint64_t ids[8];
    sl_check_report report;
    make(&kinds[0]);
    sl_index *index = opened(0);
    for (size_t i = 0; i < 5; i++)
        flip_part(index, part_of(index, SL_SECTION_CODES), nodes[i], i);
    for (size_t room = 0; room <= 8; room++) {
        memset(ids, 0, sizeof ids);
        ck_fails(scrub(index, room ? ids : NULL, room, &report), SL_ECORRUPT,
                 "5 records are damaged, the first that of id 1009");
        ck_assert_uint_eq(report.bad_records, 5);
        for (size_t i = 0; i < 8; i++)
            ck_assert_uint_eq(ids[i], i < room && i < 5 ? id_of(nodes[i]) : 0);
    }
    sl_check_params params;
    sl_check_params_init(&params);
    report = (sl_check_report){.struct_size = sizeof report};
    ck_fails(sl_index_check(index, &params, &report), SL_ECORRUPT, "pages are damaged");
    ck_assert_uint_eq(report.records_checked + report.bad_records, 0);
    sl_index_free(index);
    /* A copy into memory is held to its checksums, as other files are. */
    sl_open_params copied;
    sl_open_params_init(&copied);
    copied.place = SL_PLACE_DRAM;
    ck_fails(sl_index_open(place.path, &copied, &index), SL_ECORRUPT, "5 records are damaged");
}
END_TEST

/* Dropped vectors are gone, all others are found, and the index has no damage left. */
START_TEST(dropped) {
    const size_t nodes[] = {3, 4, 90, 201, 249};
    float vector[DIM];
    sl_check_report report;
    size_t gone;
    make(&kinds[_i]);
    sl_index *index = opened(0);
    for (size_t i = 0; i < 5; i++) {
        part part = part_of(index, i == 2 ? SL_SECTION_IDS : SL_SECTION_CODES);
        for (size_t byte = 0; byte < part.size; byte++)
            flip_part(index, part, nodes[i], byte);
    }
    ck_fails(sl_index_drop_damaged(index, 1, &gone), SL_EREADONLY, "writable");
    sl_index_free(index);
    index = opened(1);
    ck_ok(sl_index_drop_damaged(index, 1 + (size_t)_i % 2, &gone));
    ck_assert_uint_eq(gone, 5);
    ck_ok(sl_index_drop_damaged(index, 1, &gone));
    ck_assert_uint_eq(gone, 0);
    ck_ok(sl_index_sync(index));
    sl_index_free(index);
    index = opened(0);
    ck_ok(scrub(index, NULL, 0, &report));
    ck_assert_uint_eq(sl_index_size(index), ALL - 5);
    for (size_t node = 0; node < ALL; node++) {
        int is_gone = 0;
        for (size_t i = 0; i < 5; i++)
            is_gone |= node == nodes[i];
        sl_status status = sl_index_get(index, &(uint64_t){id_of(node)}, 1, SL_F32, vector);
        ck_assert_int_eq(status, is_gone ? SL_ENOTFOUND : SL_OK);
    }
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* One vector is left. It takes the places of all others, and its own damage is told. */
START_TEST(dropped_but_one) {
    enum { LEFT = 240 };
    size_t gone;
    uint64_t ids[4];
    sl_check_report report;
    make(&kinds[_i]);
    sl_index *index = opened(0);
    for (size_t node = 0; node < ALL; node++)
        if (node != LEFT) flip_part(index, part_of(index, SL_SECTION_CODES), node, node % 8);
    ck_fails(scrub(index, ids, 4, &report), SL_ECORRUPT, "249 records are damaged");
    sl_index_free(index);
    index = opened(1);
    ck_ok(sl_index_drop_damaged(index, 1, &gone));
    ck_assert_uint_eq(gone, ALL - 1);
    ck_ok(sl_index_sync(index));
    ck_ok(scrub(index, NULL, 0, &report));
    ck_assert_uint_eq(sl_index_size(index), 1);
    indexes_search(index, (vector_rows){x, SL_F32, 1}, 4, 10, ids, NULL);
    ck_assert_uint_eq(ids[0], id_of(LEFT));
    ck_assert_uint_eq(ids[1], SL_NO_ID);
    sl_index_free(index);
    index = opened(0);
    for (size_t node = 0; node < ALL; node++)
        flip_part(index, part_of(index, SL_SECTION_CODES), node, node % 8);
    sl_index_free(index);
    index = opened(1);
    ck_fails(sl_index_drop_damaged(index, 1, &gone), SL_ECORRUPT, "every record is damaged");
    ck_assert_uint_eq(gone, 0);
    sl_index_free(index);
}
END_TEST

/* More records than a thread takes at a time: all that are damaged are counted, and the first is named. */
START_TEST(several_of_many) {
    enum { MANY = 5000, EVERY = 600, FIRST = 1100 };
    static uint64_t ids[16], owners[MANY];
    float *points = clusters_make(MANY, 4, 0.3, 5);
    sl_index_params params;
    sl_save_params save;
    sl_check_report report;
    size_t bad = 0, gone;
    indexes_params(&params, 4, SL_METRIC_L2);
    params.m = 4;
    params.ef_construction = 10;
    sl_index *index = indexes_make(&params, points, SL_F32, MANY, NULL, 1);
    indexes_save_params(&save);
    save.room = MANY;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
    index = opened(0);
    for (uint32_t node = FIRST; node < MANY; node += EVERY) {
        owners[bad++] = sl_id_of(&index->graph, node);
        /* With as much room as there are vectors. */
        const sl_record *record = &index->graph.record;
        if (record->pitch)
            flip(index, SL_SECTION_RECORDS, node * record->pitch + record->at[SL_ARRAY_CODES] + 1);
        else
            flip(index, SL_SECTION_CODES, node * index->graph.arrays[SL_ARRAY_CODES].step + 1);
    }
    for (size_t room = 0; room <= 16; room += 8) {
        memset(ids, 0, sizeof ids);
        ck_fails(scrub(index, room ? ids : NULL, room, &report), SL_ECORRUPT, "records are damaged, the first that of");
        ck_assert_uint_eq(report.bad_records, bad);
        ck_assert_uint_eq(report.records_checked, MANY);
        for (size_t i = 0; i < room && i < bad; i++)
            ck_assert_uint_eq(ids[i], owners[i]);
    }
    sl_index_free(index);
    index = opened(1);
    ck_ok(sl_index_drop_damaged(index, 3, &gone));
    ck_assert_uint_eq(gone, bad);
    ck_ok(sl_index_sync(index));
    ck_ok(scrub(index, NULL, 0, &report));
    sl_index_free(index);
    free(points);
}
END_TEST

/* All rows of a node are another's from then on: what is left of the damage, no walk and no ranking meets. */
START_TEST(dropped_with_all_its_rows) {
    enum { NODE = 17 };
    sl_check_report report;
    size_t gone, same = 0;
    make(&kinds[5]);
    sl_index *index = opened(0);
    part rest = part_of(index, SL_SECTION_REST);
    ck_assert_uint_gt(rest.size, 0);
    unsigned char *ones = malloc(rest.size);
    memset(ones, 0xff, rest.size);
    size_t section = (size_t)sl_store_section(index->store, rest.kind)->offset;
    file_patch(place.path, section + NODE * rest.step + rest.offset, ones, index->graph.codec.rest.size);
    sl_index_free(index);
    index = opened(1);
    ck_fails(scrub(index, NULL, 0, &report), SL_ECORRUPT, "1 records are damaged");
    ck_ok(sl_index_drop_damaged(index, 1, &gone));
    ck_assert_uint_eq(gone, 1);
    ck_ok(sl_index_sync(index));
    indexes_sound(index);
    for (uint32_t node = 0; node < ALL; node++)
        same += node != NODE &&
                memcmp(sl_row(&index->graph, node), sl_row(&index->graph, NODE), index->graph.codec.rows.size) == 0 &&
                memcmp(sl_rest_row(&index->graph, node), sl_rest_row(&index->graph, NODE),
                       index->graph.codec.rest.size) == 0;
    ck_assert_uint_ge(same, 1);
    sl_index_free(index);
    free(ones);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Where there are no records of their own
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(of_a_file_that_never_changes) {
    uint64_t id;
    sl_check_report report;
    save(&kinds[0], N, 0);
    sl_index *index = opened(0);
    ck_ok(scrub(index, &id, 1, &report));
    /* But for those that are whole records. */
    int records = indexes_layout() == SL_LAYOUT_RECORDS;
    ck_assert_uint_eq(report.records_checked, records ? N : 0);
    ck_assert_uint_eq(report.bad_records, 0);
    ck_assert_uint_gt(report.sections_checked, 0);
    ck_fails(scrub(index, NULL, 1, &report), SL_EINVAL, "bad_ids is NULL");
    flip(index, records ? SL_SECTION_RECORDS : SL_SECTION_CODES, 10);
    ck_fails(scrub(index, &id, 1, &report), SL_ECORRUPT,
             records ? "section 29 (records of the vectors) is damaged"
                     : "section 1 (codes of the vectors) is damaged");
    sl_index_free(index);
}
END_TEST

/* A file without its checksums is not taken for one with room. */
START_TEST(of_another_size) {
    if (indexes_layout() == SL_LAYOUT_RECORDS) return; /* each holds its own */
    make(&kinds[0]);
    sl_file_header header;
    sl_index *index = opened(0);
    memcpy(&header, &index->store->header, sizeof header);
    sl_index_free(index);
    for (uint32_t i = 0; i < header.section_count; i++)
        if (header.sections[i].kind == SL_SECTION_SUMS) header.sections[i].size -= sizeof(uint32_t);
    header.crc32c = sl_crc32c(0, &header, offsetof(sl_file_header, crc32c));
    file_patch(place.path, 0, &header, sizeof header);
    ck_fails(sl_index_open(place.path, NULL, &index), SL_ECORRUPT,
             "section 28 (checksums of the vectors) is 1596 bytes");
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("found"), tcase_create("none")};
    for (size_t i = 0; i < 2; i++) {
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
        tcase_set_timeout(cases[i], 300);
    }
    tcase_add_loop_test(cases[0], every_byte_of_a_record, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(cases[0], nothing_else, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(cases[0], several);
    tcase_add_loop_test(cases[0], dropped, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(cases[0], dropped_with_all_its_rows);
    tcase_add_loop_test(cases[0], dropped_but_one, 0, 2);
    tcase_add_test(cases[0], several_of_many);
    tcase_add_test(cases[1], of_a_file_that_never_changes);
    tcase_add_test(cases[1], of_another_size);
    return check_main("scrub", cases, 2);
}
