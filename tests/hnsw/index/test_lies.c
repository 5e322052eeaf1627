/* Headers whose checksum is right and whose numbers are not: refused in constant time, the message naming the file. */
#include "storage/format.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/hostile.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 300, DIM = 20 };

static scratch place;
static unsigned char *bytes;
static size_t size;

static void make_file(sl_metric metric, sl_codes codes, sl_refine refine) {
    float *x = clusters_make(N, DIM, 0.3, 5);
    uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = i + 1;
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.codes = codes;
    params.refine = refine;
    sl_index *index = indexes_make(&params, x, SL_F32, N, ids, 1);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    free(x);
    bytes = file_read(place.path, &size);
}

static void set_up(void) {
    scratch_open(&place);
    make_file(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_BF16);
}

static void tear_down(void) {
    free(bytes);
    scratch_close(&place);
}

#define FIELD(name) offsetof(sl_file_header, name), sizeof((sl_file_header *)0)->name

/* A lie, and the status it gets: ECORRUPT, or EVERSION for what a later version may mean. */
static const struct lie {
    size_t at, width;
    uint64_t value;
    sl_status status;
} lies[] = {
    {FIELD(n), 0, SL_ECORRUPT},
    {FIELD(n), N - 1, SL_ECORRUPT},
    {FIELD(n), N + 1, SL_ECORRUPT},
    {FIELD(n), SL_MAX_VECTORS, SL_ECORRUPT},
    {FIELD(n), (uint64_t)SL_MAX_VECTORS + 1, SL_ECORRUPT},
    {FIELD(n), ((uint64_t)1 << 59) + N, SL_ECORRUPT},
    {FIELD(n), ((uint64_t)1 << 32) + N, SL_ECORRUPT},
    {FIELD(n), UINT64_MAX, SL_ECORRUPT},
    {FIELD(dim), 0, SL_ECORRUPT},
    {FIELD(dim), DIM + 100, SL_ECORRUPT},
    {FIELD(dim), SL_MAX_DIM + 1, SL_ECORRUPT},
    {FIELD(dim), UINT32_MAX, SL_ECORRUPT},
    {FIELD(metric), 3, SL_EVERSION},
    {FIELD(metric), 255, SL_EVERSION},
    {FIELD(dtype), 6, SL_EVERSION},
    {FIELD(dtype), SL_I16, SL_ECORRUPT},
    {FIELD(codes), 4, SL_EVERSION},
    {FIELD(codes), SL_CODES_I4, SL_ECORRUPT},
    {FIELD(codes), SL_CODES_I16, SL_ECORRUPT},
    {FIELD(refine), 4, SL_EVERSION},
    {FIELD(refine), SL_REFINE_NONE, SL_ECORRUPT},
    {FIELD(refine), SL_REFINE_F32, SL_ECORRUPT},
    {FIELD(m), 0, SL_ECORRUPT},
    {FIELD(m), 1, SL_ECORRUPT},
    {FIELD(m), 9, SL_ECORRUPT},
    {FIELD(m), UINT32_MAX, SL_ECORRUPT},
    {FIELD(ef_construction), 0, SL_ECORRUPT},
    {FIELD(ef_construction), UINT32_MAX, SL_ECORRUPT},
    {FIELD(row_pitch), 0, SL_ECORRUPT},
    {FIELD(row_pitch), 4, SL_ECORRUPT},
    {FIELD(row_pitch), UINT32_MAX, SL_ECORRUPT},
    {FIELD(refine_pitch), 0, SL_ECORRUPT},
    {FIELD(refine_pitch), 4 * DIM, SL_ECORRUPT},
    {FIELD(id_width), 0, SL_ECORRUPT},
    {FIELD(id_width), 8, SL_ECORRUPT},
    {FIELD(id_width), 5, SL_ECORRUPT},
    {FIELD(id_width), UINT32_MAX, SL_ECORRUPT},
    {FIELD(entry_node), N, SL_ECORRUPT},
    {FIELD(entry_node), SL_NONE, SL_ECORRUPT},
    {FIELD(entry_slot), SL_NONE, SL_ECORRUPT},
    {FIELD(entry_slot), N, SL_ECORRUPT},
    {FIELD(max_level), 0, SL_ECORRUPT},
    {FIELD(max_level), 64, SL_ECORRUPT},
    {FIELD(max_level), UINT32_MAX, SL_ECORRUPT},
    {FIELD(upper_count), 0, SL_ECORRUPT},
    {FIELD(upper_count), UINT32_MAX, SL_ECORRUPT},
    {FIELD(upper_rows), 0, SL_ECORRUPT},
    {FIELD(upper_rows), UINT32_MAX, SL_ECORRUPT},
    {FIELD(dead_count), 1, SL_ECORRUPT},
    {FIELD(dead_count), UINT64_MAX, SL_ECORRUPT},
    {FIELD(clip), SL_CLIP_QUANTILE + 1, SL_EVERSION},
    {FIELD(clip), 255, SL_EVERSION},
    {FIELD(section_count), 0, SL_ECORRUPT},
    {FIELD(section_count), 3, SL_ECORRUPT},
};

static void write_lie(size_t at, const void *value, size_t width) {
    memcpy(bytes + at, value, width);
    hostile_seal(bytes, size);
    file_write(place.path, bytes, size);
}

static void refuse(sl_status status) {
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
        fault_allocator memory;
        fault_allocator_init(&memory, 0);
        sl_open_params params;
        sl_open_params_init(&params);
        params.place = (sl_place)where;
        params.allocator = &memory.allocator;
        sl_index *index;
        ck_fails(sl_index_open(place.path, &params, &index), status, place.path);
        ck_assert_ptr_null(index);
        ck_assert_uint_eq(memory.live_blocks, 0);
        /* Memory that a header claims is allocated only once the file is seen to hold it. */
        ck_assert_uint_le(memory.largest, (size_t)1 << 20);
    }
}

START_TEST(lies_are_refused) {
    const struct lie *lie = &lies[_i];
    write_lie(lie->at, &lie->value, lie->width);
    refuse(lie->status);
}
END_TEST

START_TEST(bad_shares_of_a_clip_are_refused) {
    const double shares[] = {NAN, INFINITY, -0.01, 0.75};
    bytes[offsetof(sl_file_header, clip)] = SL_CLIP_QUANTILE;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        write_lie(offsetof(sl_file_header, clip_share), &shares[i], sizeof *shares);
        refuse(SL_ECORRUPT);
    }
}
END_TEST

static const sl_file_section *section_of(const sl_file_header *header, uint32_t kind) {
    for (uint32_t i = 0; i < header->section_count; i++)
        if (header->sections[i].kind == kind) return &header->sections[i];
    return NULL;
}

/* Each section's size, one step off, and as large as can be. */
START_TEST(section_sizes_must_fit) {
    sl_file_header header;
    if (_i) {
        free(bytes);
        make_file(SL_METRIC_COSINE, SL_CODES_I4, SL_REFINE_NONE);
    }
    memcpy(&header, bytes, sizeof header);
    ck_assert_uint_eq(header.section_count, 7);
    ck_assert_int_eq(section_of(&header, SL_SECTION_REST) != NULL, _i != 0);
    for (uint32_t i = 0; i < header.section_count; i++) {
        size_t at = offsetof(sl_file_header, sections) + i * sizeof(sl_file_section) + offsetof(sl_file_section, size);
        uint64_t was = header.sections[i].size;
        uint64_t wrong[] = {0, was - 4, was + 4, was - 1, UINT64_MAX, UINT64_MAX - header.sections[i].offset};
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            write_lie(at, &wrong[w], sizeof wrong[w]);
            refuse(SL_ECORRUPT);
        }
        write_lie(at, &was, sizeof was);
    }
    /* A kind that is missing, for one that may be passed over. */
    for (uint32_t i = 0; i < header.section_count; i++) {
        size_t at = offsetof(sl_file_header, sections) + i * sizeof(sl_file_section);
        sl_file_section other = header.sections[i];
        other.kind = 900;
        other.flags = 0;
        write_lie(at, &other, sizeof other);
        refuse(SL_ECORRUPT);
        write_lie(at, &header.sections[i], sizeof other);
    }
}
END_TEST

/* The file itself, sealed in the same way, opens: what is refused above is refused for the lie. */
START_TEST(the_truth_is_taken) {
    write_lie(0, bytes, 8);
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++)
        ck_assert_int_eq(hostile_use(place.path, size, (sl_place)where, NULL), SL_OK);
}
END_TEST

/* A copy into memory will be written to, so it must hold to the rules of the graph. */
START_TEST(what_is_copied_is_sound) {
    sl_file_header header;
    memcpy(&header, bytes, sizeof header);
    static const struct {
        uint32_t kind, value;
        const char *says;
    } faults[] = {
        {SL_SECTION_LINKS, N, "vector 0 has a link to 300"},
        {SL_SECTION_UPPER_NODES, N, "record 0 of the upper layers"},
        {SL_SECTION_UPPER_START, 5, "upper layers"},
        {SL_SECTION_UPPER_LINKS, N, "row 0 of the upper layers"},
    };
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++)
        for (uint32_t i = 0; i < header.section_count; i++) {
            if (header.sections[i].kind != faults[f].kind) continue;
            uint32_t was;
            memcpy(&was, bytes + header.sections[i].offset, sizeof was);
            write_lie(header.sections[i].offset, &faults[f].value, sizeof was);
            sl_open_params params;
            sl_open_params_init(&params);
            params.place = SL_PLACE_DRAM;
            sl_index *index;
            ck_fails(sl_index_open(place.path, &params, &index), SL_ECORRUPT, faults[f].says);
            ck_assert_ptr_nonnull(strstr(sl_last_error(), place.path));
            /* Mapped, it opens and can be searched; a check tells. */
            ck_ok(sl_index_open(place.path, NULL, &index));
            uint64_t id;
            float query[DIM] = {1};
            indexes_search(index, (vector_rows){query, SL_F32, 1}, 1, 50, &id, NULL);
            sl_check_report report = {.struct_size = sizeof report};
            ck_fails(sl_index_check(index, NULL, &report), SL_ECORRUPT, "");
            sl_index_free(index);
            write_lie(header.sections[i].offset, &was, sizeof was);
        }
}
END_TEST

/* Marks differ from the header: more, fewer, or of other nodes. A mapped index believes the marks; results are wrong
 * and nothing worse, and a check tells. A copy into memory does not believe them. */
START_TEST(marks_that_are_miscounted) {
    static const struct {
        uint64_t count, word, with;
        const char *says;
    } faults[] = {{2, 0, 0x77, "6 vectors are marked as deleted, where the index says 2"},
                  {N, 0, 0x77, "6 vectors are marked"},
                  {6, 0, 0, "0 vectors are marked"},
                  {6, 0, UINT64_MAX, "64 vectors are marked"},
                  {6, 4, UINT64_C(0x3f) << (N % 64), "vectors that are not there are marked"},
                  {12, 4, UINT64_C(0x3f) << (N % 64), "6 vectors are marked as deleted, where the index says 12"}};
    sl_index *index;
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = SL_PLACE_DRAM;
    ck_ok(sl_index_open(place.path, &params, &index));
    ck_ok(sl_index_delete(index, (uint64_t[]){1, 2, 3, 5, 6, 7}, 6));
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    free(bytes);
    bytes = file_read(place.path, &size);
    sl_file_header header;
    memcpy(&header, bytes, sizeof header);
    const sl_file_section *marks = section_of(&header, SL_SECTION_DEAD);
    ck_assert_uint_eq(header.dead_count, 6);
    ck_assert_uint_eq(marks->flags, SL_SECTION_REQUIRED);
    ck_assert_uint_eq(marks->size, (N + 63) / 64 * 8);
    for (size_t i = 0; i < 6; i++) {
        uint64_t was, at = marks->offset + 8 * faults[i].word;
        memcpy(&was, bytes + at, sizeof was);
        memcpy(bytes + offsetof(sl_file_header, dead_count), &faults[i].count, 8);
        write_lie(at, &faults[i].with, sizeof was);
        ck_fails(sl_index_open(place.path, &params, &index), SL_ECORRUPT, faults[i].says);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), place.path));
        ck_assert_int_eq(hostile_use(place.path, size, SL_PLACE_MAP, NULL), SL_OK);
        ck_ok(sl_index_open(place.path, NULL, &index));
        ck_assert_uint_eq(sl_index_size(index), N - faults[i].count);
        sl_check_report report = {.struct_size = sizeof report};
        ck_fails(sl_index_check(index, NULL, &report), SL_ECORRUPT, faults[i].says);
        sl_index_free(index);
        write_lie(at, &was, sizeof was);
    }
}
END_TEST

/* A row whose scale is no number is not found: not as the nearest, nor as any other. */
START_TEST(what_is_no_number_is_not_found) {
    sl_file_header header;
    free(bytes);
    make_file((sl_metric)_i, SL_CODES_I4, SL_REFINE_NONE);
    memcpy(&header, bytes, sizeof header);
    sl_index *index;
    float query[DIM];
    const uint64_t broken = 8;
    uint64_t id, ids[N];
    ck_ok(sl_index_open(place.path, NULL, &index));
    ck_ok(sl_index_get(index, &broken, 1, SL_F32, query));
    sl_index_free(index);
    /* Every row of what ranks is looked at until the one is met that holds this vector. */
    const sl_file_section *rest = section_of(&header, SL_SECTION_REST);
    size_t pitch = (size_t)rest->size / N, factor = (DIM + 3) / 4 * 4, met = 0;
    for (size_t node = 0; node < N; node++) {
        float was, none = NAN;
        memcpy(&was, bytes + rest->offset + node * pitch + factor, sizeof was);
        write_lie(rest->offset + node * pitch + factor, &none, sizeof none);
        ck_ok(sl_index_open(place.path, NULL, &index));
        indexes_search(index, (vector_rows){query, SL_F32, 1}, 1, N, &id, NULL);
        if (id != broken) {
            indexes_search(index, (vector_rows){query, SL_F32, 1}, N, N, ids, NULL);
            for (size_t i = 0; i < N; i++)
                ck_assert_uint_ne(ids[i], broken);
            met++;
        }
        sl_index_free(index);
        write_lie(rest->offset + node * pitch + factor, &was, sizeof was);
    }
    ck_assert_uint_eq(met, 1);
}
END_TEST

/* A centroid's factor, bias or norm is no number, or as large as can be: searches and checks end as they should. */
START_TEST(centroids_that_are_no_numbers) {
    enum { OF_PARTITIONS = HOSTILE_KINDS - 2, HOSTILE_DIM = 11 };
    const float values[] = {INFINITY, -INFINITY, NAN, 3e38f, -3e38f};
    sl_file_header header;
    free(bytes);
    hostile_build(OF_PARTITIONS, place.path);
    bytes = file_read(place.path, &size);
    memcpy(&header, bytes, sizeof header);
    const sl_file_section *starts = section_of(&header, SL_SECTION_PARTITION_STARTS);
    const sl_file_section *rows = section_of(&header, SL_SECTION_PARTITION_ROWS);
    const size_t pitch = rows->size / (starts->size / 4 - 1);
    for (size_t at = (HOSTILE_DIM + 3) / 4 * 4; at < pitch; at += 4)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            float was;
            memcpy(&was, bytes + rows->offset + at, sizeof was);
            write_lie(rows->offset + at, &values[v], sizeof was);
            ck_assert_int_eq(hostile_use(place.path, size, SL_PLACE_MAP, NULL), SL_OK);
            write_lie(rows->offset + at, &was, sizeof was);
        }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("lies");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, lies_are_refused, 0, sizeof lies / sizeof *lies);
    tcase_add_test(tests, bad_shares_of_a_clip_are_refused);
    tcase_add_loop_test(tests, section_sizes_must_fit, 0, 2);
    tcase_add_test(tests, the_truth_is_taken);
    tcase_add_test(tests, what_is_copied_is_sound);
    tcase_add_test(tests, marks_that_are_miscounted);
    tcase_add_loop_test(tests, what_is_no_number_is_not_found, SL_METRIC_COSINE, SL_METRIC_L2 + 1);
    tcase_add_test(tests, centroids_that_are_no_numbers);
    return check_main("lies", &tests, 1);
}
