/* The bytes that docs/FORMAT.md promises, by its numbers and not by the library's own structs: a change of the format
 * that nobody meant fails here. */
#include "storage/store.h"
#include "tests/support/check_main.h"
#include "tests/support/scratch.h"

#include <check.h>
#include <math.h>
#include <shortlist.h>
#include <stdlib.h>
#include <string.h>

#define NONE 0xffffffffu

static scratch place;
static unsigned char *file;
static size_t file_size;

static void set_up(void) {
    scratch_open(&place);
}

static void tear_down(void) {
    free(file);
    scratch_close(&place);
}

static uint32_t u32_at(size_t offset) {
    uint32_t value;
    memcpy(&value, file + offset, sizeof value);
    return value;
}

static uint64_t u64_at(size_t offset) {
    uint64_t value;
    memcpy(&value, file + offset, sizeof value);
    return value;
}

static float f32_at(size_t offset) {
    float value;
    memcpy(&value, file + offset, sizeof value);
    return value;
}

/* Offset and size of a section, from the table at 512; offset 0 where it is absent. */
static size_t section(uint32_t kind, size_t *size) {
    for (size_t entry = 512; entry < 512 + 32 * u32_at(20); entry += 32) {
        if (u32_at(entry) != kind) continue;
        ck_assert_uint_eq(u32_at(entry + 4), 1);
        *size = (size_t)u64_at(entry + 16);
        return (size_t)u64_at(entry + 8);
    }
    return 0;
}

static void save(const sl_index_params *params, const void *vectors, size_t n, const uint64_t *ids) {
    sl_index *index;
    ck_assert_int_eq(sl_index_create(params, &index), SL_OK);
    ck_assert_int_eq(sl_index_add(index, vectors, params->dtype, n, 0, ids, NULL), SL_OK);
    ck_assert_int_eq(sl_index_save(index, place.path, NULL), SL_OK);
    sl_index_free(index);
    file = file_read(place.path, &file_size);
}

static void expect_header(const sl_index_params *params, uint64_t n, uint32_t id_width, uint64_t next_id) {
    ck_assert_mem_eq(file, "SHORTLST", 8);
    ck_assert_uint_eq(u32_at(8), 1);
    ck_assert_uint_eq(u32_at(12), 0x01020304);
    ck_assert_uint_eq(u32_at(16), 4096);
    ck_assert_uint_eq(u64_at(24), file_size);
    ck_assert_uint_eq(u64_at(32), n);
    ck_assert_uint_eq(u32_at(40), params->dim);
    ck_assert_uint_eq(file[44], params->metric);
    ck_assert_uint_eq(file[45], params->dtype);
    ck_assert_uint_eq(file[46], params->codes);
    ck_assert_uint_eq(file[47], params->refine);
    ck_assert_uint_eq(u32_at(48), params->m);
    ck_assert_uint_eq(u32_at(52), params->ef_construction);
    ck_assert_uint_eq(u64_at(56), params->seed);
    ck_assert_uint_eq(u32_at(72), id_width);
    ck_assert_uint_eq(u64_at(96), next_id);
    static const unsigned char zeros[4096];
    size_t table_end = 512 + 32 * u32_at(20);
    ck_assert_mem_eq(file + 128, zeros, 512 - 128);
    ck_assert_mem_eq(file + table_end, zeros, 4092 - table_end);
}

/* Two nodes: each is the other's only neighbour. */
static void expect_links(size_t m) {
    size_t size, links = section(2, &size);
    ck_assert_uint_eq(size, 2 * 2 * m * 4);
    for (size_t node = 0; node < 2; node++)
        for (size_t i = 0; i < 2 * m; i++)
            ck_assert_uint_eq(u32_at(links + 4 * (node * 2 * m + i)), i ? NONE : 1 - node);
}

static sl_index_params make_params(sl_metric metric, sl_dtype dtype, sl_codes codes, sl_refine refine) {
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = 3;
    params.metric = metric;
    params.dtype = dtype;
    params.codes = codes;
    params.refine = refine;
    params.m = 64; /* few upper nodes: none among two with this seed */
    params.seed = 77;
    return params;
}

START_TEST(bytes_of_exact_vectors) {
    const unsigned char vectors[] = {1, 2, 3, 255, 0, 128};
    sl_index_params params = make_params(SL_METRIC_L2, SL_U8, SL_CODES_I8, SL_REFINE_NONE);
    save(&params, vectors, 2, NULL);
    expect_header(&params, 2, 0, 2);
    ck_assert_uint_eq(u32_at(64), 16);
    ck_assert_uint_eq(u32_at(68), 0);
    size_t size, codes = section(1, &size);
    ck_assert_uint_eq(codes, 4096);
    ck_assert_uint_eq(size, 32);
    ck_assert_mem_eq(file + codes, "\1\2\3\0", 4);
    ck_assert_float_eq(f32_at(codes + 4), 1);
    ck_assert_float_eq(f32_at(codes + 8), -0.5f * (127 * 127 + 126 * 126 + 125 * 125));
    ck_assert_uint_eq(u32_at(codes + 12), 0);
    ck_assert_mem_eq(file + codes + 16, "\377\0\200\0", 4);
    ck_assert_float_eq(f32_at(codes + 24), -0.5f * (127 * 127 + 128 * 128));
    ck_assert_uint_eq(section(3, &size), 0);
    ck_assert_uint_eq(section(4, &size), 0);
    ck_assert_uint_eq(u32_at(80), NONE);
    ck_assert_uint_eq(u32_at(84), 0);
    expect_links(params.m);
}
END_TEST

START_TEST(bytes_of_shifted_vectors) {
    const unsigned char vectors[] = {3, 0, 4, 1, 1, 1};
    sl_index_params params = make_params(SL_METRIC_COSINE, SL_U8, SL_CODES_I8, SL_REFINE_NONE);
    save(&params, vectors, 2, NULL);
    size_t size, codes = section(1, &size);
    ck_assert_mem_eq(file + codes, "\3\0\4\0", 4);
    ck_assert_float_eq(f32_at(codes + 4), 0.2f);
    ck_assert_float_eq(f32_at(codes + 8), 128 * 7 * 0.2f);
    ck_assert_float_eq(f32_at(codes + 12), 5);
}
END_TEST

/* The largest magnitude is 127, so a code's unit is 1. */
START_TEST(bytes_of_quantised_vectors) {
    const float vectors[] = {126.6f, -127, 0.4f, 0.5f, 0.25f, 0.125f};
    const uint64_t ids[] = {7, 40};
    sl_index_params params = make_params(SL_METRIC_COSINE, SL_F32, SL_CODES_I8, SL_REFINE_BF16);
    save(&params, vectors, 2, ids);
    expect_header(&params, 2, 4, 41);
    size_t size, codes = section(1, &size);
    ck_assert_uint_eq(size, 32);
    ck_assert_mem_eq(file + codes, "\377\1\200\0", 4);
    ck_assert_float_eq(f32_at(codes + 4), (float)(1 / sqrt(2 * 127 * 127)));
    ck_assert_float_eq_tol(f32_at(codes + 8), 179.323f, 0.001f);
    size_t refine = section(7, &size);
    ck_assert_uint_eq(u32_at(68), 8);
    ck_assert_uint_eq(size, 16);
    /* The remainder of the codes: x - code * unit, unit being factor times norm. */
    const float unit = f32_at(codes + 4) * f32_at(codes + 8), signs[] = {127, -127, 0};
    for (size_t i = 0; i < 3; i++) {
        unsigned char wide[4] = {0, 0, file[refine + 2 * i], file[refine + 2 * i + 1]};
        float left = vectors[i] - signs[i] * unit, kept;
        memcpy(&kept, wide, sizeof kept);
        ck_assert_float_eq_tol(kept, left, fabsf(left) / 256 + 1e-4f);
        ck_assert_float_ne(kept, 0);
    }
    ck_assert_mem_eq(file + refine + 6, "\0\0", 2);
    size_t own = section(3, &size);
    ck_assert_uint_eq(size, 8);
    ck_assert_uint_eq(u32_at(own), 7);
    ck_assert_uint_eq(u32_at(own + 4), 40);
    expect_links(params.m);
}
END_TEST

START_TEST(bytes_of_16_bit_codes) {
    const float vectors[] = {16383.6f, -32767, 8191.25f, 2, 2, 2};
    const uint64_t ids[] = {UINT64_C(1) << 40, 1};
    sl_index_params params = make_params(SL_METRIC_L2, SL_F32, SL_CODES_I16, SL_REFINE_F32);
    save(&params, vectors, 2, ids);
    expect_header(&params, 2, 8, (UINT64_C(1) << 40) + 1);
    size_t size, codes = section(1, &size);
    const int16_t wanted[] = {16384, -32767, 8191, 0};
    ck_assert_uint_eq(u32_at(64), 16);
    ck_assert_mem_eq(file + codes, wanted, 8);
    ck_assert_float_eq(f32_at(codes + 8), 1);
    ck_assert_float_eq(f32_at(codes + 12), (float)(-0.5 * (16384.0 * 16384 + 32767.0 * 32767 + 8191.0 * 8191)));
    size_t refine = section(7, &size);
    ck_assert_mem_eq(file + refine, vectors, sizeof vectors);
    size_t own = section(3, &size);
    ck_assert_uint_eq(u64_at(own), UINT64_C(1) << 40);
}
END_TEST

START_TEST(bytes_of_float_codes) {
    const float vectors[] = {3, 0, -4, 1, 1, 1};
    sl_index_params params = make_params(SL_METRIC_IP, SL_F32, SL_CODES_F32, SL_REFINE_NONE);
    save(&params, vectors, 2, NULL);
    size_t size, codes = section(1, &size);
    ck_assert_uint_eq(u32_at(64), 64);
    ck_assert_mem_eq(file + codes, vectors, 12);
    ck_assert_float_eq(f32_at(codes + 12), 1);
    ck_assert_mem_eq(file + codes + 64, vectors + 3, 12);
}
END_TEST

/* Slots ascend by node, a slot's rows follow one another, and the entry point is a slot of the highest layer. */
START_TEST(upper_layers_fit_together) {
    float vectors[300 * 3];
    for (size_t i = 0; i < 900; i++)
        vectors[i] = (float)((i * 7919) % 1009) - 500;
    sl_index_params params = make_params(SL_METRIC_L2, SL_F32, SL_CODES_I8, SL_REFINE_NONE);
    params.m = 4;
    save(&params, vectors, 300, NULL);
    size_t count = u32_at(88), rows = u32_at(92), size;
    size_t nodes = section(4, &size);
    ck_assert_uint_eq(size, 4 * count);
    ck_assert_uint_gt(count, 10);
    size_t start = section(5, &size);
    ck_assert_uint_eq(size, 4 * (count + 1));
    (void)section(6, &size);
    ck_assert_uint_eq(size, rows * 4 * 4);
    ck_assert_uint_eq(u32_at(start), 0);
    ck_assert_uint_eq(u32_at(start + 4 * count), rows);
    uint32_t highest = 0;
    for (size_t slot = 0; slot < count; slot++) {
        uint32_t levels = u32_at(start + 4 * slot + 4) - u32_at(start + 4 * slot);
        ck_assert_uint_ge(levels, 1);
        if (slot) ck_assert_uint_gt(u32_at(nodes + 4 * slot), u32_at(nodes + 4 * slot - 4));
        if (levels > highest) highest = levels;
    }
    size_t entry = u32_at(80);
    ck_assert_uint_eq(u32_at(84), highest);
    ck_assert_uint_eq(u32_at(nodes + 4 * entry), u32_at(76));
    ck_assert_uint_eq(u32_at(start + 4 * entry + 4) - u32_at(start + 4 * entry), highest);
}
END_TEST

/* A model and an item table: the same container under a magic of its own, bytes 32 to 511 zero. */
START_TEST(bytes_of_other_types) {
    const struct {
        const sl_file_type *type;
        const char *magic;
        uint32_t kind;
    } types[] = {{&sl_ranker_file, "SLRANKER", 16}, {&sl_items_file, "SLITEMS\0", 24}};
    static const unsigned char zeros[480];
    for (size_t i = 0; i < 2; i++) {
        sl_section_source source = {types[i].kind, 1, "123456789", 9, 0, NULL, 0};
        sl_progress progress;
        sl_progress_start(&progress, NULL, NULL, 0);
        ck_assert_int_eq(
            sl_store_save(place.path, &(sl_file_content){types[i].type, NULL, &source, 1}, NULL, NULL, &progress),
            SL_OK);
        free(file);
        file = file_read(place.path, &file_size);
        ck_assert_uint_eq(file_size, 4096 + 9 + 64);
        ck_assert_mem_eq(file, types[i].magic, 8);
        ck_assert_uint_eq(u32_at(8), 1);
        ck_assert_uint_eq(u32_at(12), 0x01020304);
        ck_assert_uint_eq(u32_at(16), 4096);
        ck_assert_uint_eq(u32_at(20), 1);
        ck_assert_uint_eq(u64_at(24), file_size);
        ck_assert_mem_eq(file + 32, zeros, 480);
        ck_assert_uint_eq(u32_at(512), types[i].kind);
        ck_assert_uint_eq(u32_at(516), 1);
        ck_assert_uint_eq(u64_at(520), 4096);
        ck_assert_uint_eq(u64_at(528), 9);
        ck_assert_uint_eq(u32_at(536), 0xe3069283);
        ck_assert_mem_eq(file + 4096, "123456789\0", 10);
        sl_index *index;
        ck_assert_int_eq(sl_index_open(place.path, NULL, &index), SL_EFORMAT);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "not an index"));
    }
}
END_TEST

/* Numbers of sections are never used again for something else. */
START_TEST(kinds_are_pinned) {
    const int kinds[] = {SL_SECTION_CODES,       SL_SECTION_LINKS,       SL_SECTION_IDS,   SL_SECTION_UPPER_NODES,
                         SL_SECTION_UPPER_START, SL_SECTION_UPPER_LINKS, SL_SECTION_REFINE};
    const int ranker[] = {SL_SECTION_SPEC,       SL_SECTION_FEATURES, SL_SECTION_WIDE,
                          SL_SECTION_EMBEDDINGS, SL_SECTION_DENSE,    SL_SECTION_TRAINER};
    const int items[] = {SL_SECTION_DIRECTORY, SL_SECTION_ITEM_IDS, SL_SECTION_COLUMNS, SL_SECTION_TEXT};
    for (int i = 0; i < 7; i++)
        ck_assert_int_eq(kinds[i], 1 + i);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(ranker[i], 16 + i);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(items[i], 24 + i);
    ck_assert_int_eq(SL_SECTION_LIVE, 15);
    ck_assert_int_eq(SL_SECTION_SUMS, 28);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("format");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, bytes_of_exact_vectors);
    tcase_add_test(tests, bytes_of_shifted_vectors);
    tcase_add_test(tests, bytes_of_quantised_vectors);
    tcase_add_test(tests, bytes_of_16_bit_codes);
    tcase_add_test(tests, bytes_of_float_codes);
    tcase_add_test(tests, upper_layers_fit_together);
    tcase_add_test(tests, bytes_of_other_types);
    tcase_add_test(tests, kinds_are_pinned);
    return check_main("format", &tests, 1);
}
