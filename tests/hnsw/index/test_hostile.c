/* A hostile file may give wrong neighbours, never a crash. A seeded generator changes a few bytes of each of thousands
 * of files and makes the checksums right again. Each file is opened, searched, read, checked, added to and saved. */
#define _GNU_SOURCE
#include "base/random.h"
#include "storage/format.h"
#include "tests/support/check_main.h"
#include "tests/support/hostile.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Large files get fewer rounds, since each file is written and read whole. */
#define ROUNDS ((SANITIZED ? 50u : 400u) / (valid_size > 200000 ? 8 : 1))

static scratch place;
static char copy_path[SCRATCH_PATH];
static unsigned char *valid, *changed;
static size_t valid_size;
static uint64_t drawn; /* numbers drawn so far, of the seed of this test and round */
static uint64_t seed;

static uint64_t draw(uint64_t below) {
    return sl_random_at(seed, drawn++) % below;
}

static void build(int kind) {
    hostile_build(kind, place.path);
    valid = file_read(place.path, &valid_size);
    changed = malloc(valid_size);
    ck_assert_ptr_nonnull(changed);
}

static void set_up(void) {
    scratch_open(&place);
    scratch_name(&place, "copy.sl", copy_path);
}

static void tear_down(void) {
    free(valid);
    free(changed);
    scratch_close(&place);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Changes
 * ------------------------------------------------------------------------------------------------------------- */

/* Values at which range checks go wrong. */
static uint64_t odd_value(void) {
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      HOSTILE_VECTORS - 1,
                                      HOSTILE_VECTORS,
                                      HOSTILE_VECTORS + 1,
                                      0x7f,
                                      0xff,
                                      0xffff,
                                      0x7fffffff,
                                      0x80000000,
                                      0xfffffffe,
                                      0xffffffff,
                                      UINT64_C(1) << 32,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX - 1,
                                      UINT64_MAX};
    uint64_t pick = draw(sizeof values / sizeof *values + 3);
    if (pick < sizeof values / sizeof *values) return values[pick];
    return pick % 2 ? draw(300) : draw(UINT64_MAX);
}

/* One field of the header that opening believes once the CRC is right. */
static void change_header(void) {
    static const struct field {
        size_t at, width;
    } fields[] = {
#define FIELD(name) {offsetof(sl_file_header, name), sizeof((sl_file_header *)0)->name}
        FIELD(section_count),
        FIELD(n),
        FIELD(dim),
        FIELD(metric),
        FIELD(dtype),
        FIELD(codes),
        FIELD(refine),
        FIELD(m),
        FIELD(ef_construction),
        FIELD(seed),
        FIELD(row_pitch),
        FIELD(refine_pitch),
        FIELD(id_width),
        FIELD(entry_node),
        FIELD(entry_slot),
        FIELD(max_level),
        FIELD(upper_count),
        FIELD(upper_rows),
        FIELD(next_id),
        FIELD(quant_error_sum),
        FIELD(quant_error_max),
        FIELD(quant_error_count),
        FIELD(dead_count),
        FIELD(record_pitch),
        FIELD(room),
        FIELD(upper_room),
        FIELD(rows_room),
    };
    const struct field *field = &fields[draw(sizeof fields / sizeof *fields)];
    uint64_t value = odd_value();
    memcpy(changed + field->at, &value, field->width);
}

/* One word of the section table. */
static void change_table(void) {
    size_t section = offsetof(sl_file_header, sections) + draw(8) * sizeof(sl_file_section);
    uint64_t value = draw(3) ? odd_value() : draw(8) * SL_SECTION_ALIGN;
    size_t wide = draw(2);
    memcpy(changed + section + (wide ? 8 * (1 + draw(2)) : 4 * draw(2)), &value, wide ? 8 : 4);
}

/* A word of a section, its start and its end more often than the middle. */
static void change_body(void) {
    sl_file_header header;
    memcpy(&header, valid, sizeof header);
    const sl_file_section *section = &header.sections[draw(header.section_count)];
    if (section->size < 8) return;
    size_t words = (size_t)section->size / 4 - 1, word = (size_t)draw(words);
    if (draw(3) == 0) word = draw(2) ? (size_t)draw(4) % words : words - (size_t)draw(4) % words;
    uint64_t value = odd_value();
    memcpy(changed + section->offset + 4 * word, &value, draw(4) ? 4 : 8);
}

/* Bytes of one place over those of another. */
static void change_block(void) {
    size_t length = 4 + 4 * (size_t)draw(64);
    size_t from = SL_HEADER_SIZE + 4 * (size_t)draw((valid_size - SL_HEADER_SIZE - length) / 4);
    size_t to = SL_HEADER_SIZE + 4 * (size_t)draw((valid_size - SL_HEADER_SIZE - length) / 4);
    memcpy(changed + to, valid + from, length);
}

static void change(int header_too) {
    memcpy(changed, valid, valid_size);
    uint64_t changes = 1 + draw(draw(4) ? 3 : 60);
    for (uint64_t i = 0; i < changes; i++) {
        uint64_t kind = draw(10);
        if (header_too && kind < 4)
            change_header();
        else if (header_too && kind < 5)
            change_table();
        else if (kind < 9)
            change_body();
        else
            change_block();
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Tests
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(the_file_itself_is_sound) {
    build(_i);
    ck_assert_int_eq(hostile_use(place.path, valid_size, SL_PLACE_MAP, NULL), SL_OK);
    ck_assert_int_eq(hostile_use(place.path, valid_size, SL_PLACE_DRAM, copy_path), SL_OK);
    ck_assert_int_eq(hostile_use(copy_path, 2 * valid_size, SL_PLACE_DRAM, NULL), SL_OK);
}
END_TEST

/* Mapped, where the body is believed as it is read; the header is the valid one. */
START_TEST(changed_bodies_mapped) {
    build(_i);
    for (size_t round = 0; round < ROUNDS; round++) {
        seed = 1000 + (uint64_t)_i;
        drawn = round << 32;
        change(0);
        file_write(place.path, changed, valid_size);
        sl_status status = hostile_use(place.path, valid_size, SL_PLACE_MAP, NULL);
        /* The head page of a file with room is no header, and is checked at opening all the same. */
        ck_assert_int_eq(status, status == SL_ECORRUPT && _i == HOSTILE_ROOM ? SL_ECORRUPT : SL_OK);
        if (memcmp(changed, valid, valid_size) != 0 && round % 16 == 0)
            (void)hostile_use(place.path, valid_size, SL_PLACE_DRAM, NULL);
    }
}
END_TEST

/* Header and body, with the checksums right: a file that somebody made to do harm. */
START_TEST(forged_files) {
    build(_i);
    size_t opened = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        seed = 2000 + (uint64_t)_i;
        drawn = round << 32;
        change(round % 2 != 0);
        hostile_seal(changed, valid_size);
        file_write(place.path, changed, valid_size);
        opened += hostile_use(place.path, valid_size, SL_PLACE_MAP, NULL) == SL_OK;
        opened += hostile_use(place.path, valid_size, SL_PLACE_DRAM, round % 8 ? NULL : copy_path) == SL_OK;
    }
    /* If nothing passed the checks of opening, nothing behind them was tested. */
    ck_assert_uint_gt(opened, ROUNDS / 2);
    ck_assert_uint_lt(opened, 2 * ROUNDS);
}
END_TEST

/* A header that contradicts itself or its sections is refused whole, before anything is read through it. */
START_TEST(contradicting_headers) {
    build(_i);
    sl_file_header header;
    memcpy(&header, valid, sizeof header);
    const struct contradiction {
        size_t at, width;
        uint64_t value;
    } contradictions[] = {
        {offsetof(sl_file_header, n), 8, header.n - 1},
        {offsetof(sl_file_header, n), 8, header.n + 1},
        {offsetof(sl_file_header, n), 8, UINT64_C(1) << 62},
        {offsetof(sl_file_header, dim), 4, 0},
        {offsetof(sl_file_header, dim), 4, header.dim + 64},
        {offsetof(sl_file_header, dim), 4, UINT32_MAX},
        {offsetof(sl_file_header, metric), 1, 200},
        {offsetof(sl_file_header, codes), 1, 200},
        {offsetof(sl_file_header, m), 4, 0},
        {offsetof(sl_file_header, m), 4, header.m + 1},
        {offsetof(sl_file_header, m), 4, UINT32_MAX},
        {offsetof(sl_file_header, ef_construction), 4, 0},
        {offsetof(sl_file_header, row_pitch), 4, header.row_pitch + 4},
        {offsetof(sl_file_header, row_pitch), 4, 0},
        {offsetof(sl_file_header, refine_pitch), 4, header.refine_pitch + 4},
        {offsetof(sl_file_header, id_width), 4, 5},
        {offsetof(sl_file_header, id_width), 4, header.id_width ? 0 : 4},
        {offsetof(sl_file_header, record_pitch), 4, header.record_pitch + 256},
        {offsetof(sl_file_header, record_pitch), 4, header.record_pitch ? 0 : 256},
        {offsetof(sl_file_header, entry_node), 4, header.n},
        {offsetof(sl_file_header, entry_slot), 4, header.upper_count},
        {offsetof(sl_file_header, entry_slot), 4, SL_NONE},
        {offsetof(sl_file_header, max_level), 4, 0},
        {offsetof(sl_file_header, max_level), 4, 64},
        {offsetof(sl_file_header, upper_count), 4, header.upper_count + 1},
        {offsetof(sl_file_header, upper_count), 4, UINT32_MAX},
        {offsetof(sl_file_header, upper_rows), 4, header.upper_rows + 1},
        {offsetof(sl_file_header, dead_count), 8, header.n + 1},
        {offsetof(sl_file_header, dead_count), 8, UINT64_MAX},
        {offsetof(sl_file_header, dead_count), 8, header.dead_count ? 0 : 1},
    };
    for (size_t i = 0; i < sizeof contradictions / sizeof *contradictions; i++) {
        memcpy(changed, valid, valid_size);
        memcpy(changed + contradictions[i].at, &contradictions[i].value, contradictions[i].width);
        hostile_seal(changed, valid_size);
        file_write(place.path, changed, valid_size);
        sl_status mapped = hostile_use(place.path, valid_size, SL_PLACE_MAP, NULL);
        ck_assert_msg(mapped == SL_ECORRUPT || mapped == SL_EVERSION, "contradiction %zu: %s", i,
                      sl_status_name(mapped));
        ck_assert_ptr_nonnull(strstr(sl_last_error(), place.path));
        ck_assert_int_eq(hostile_use(place.path, valid_size, SL_PLACE_DRAM, NULL), mapped);
    }
}
END_TEST

/* Cut off anywhere, also with a header that says the shorter size. */
START_TEST(truncated_files) {
    build(_i);
    for (size_t size = valid_size - 1; size > 40; size -= size > 65536 ? 997 : size > 4096 ? 97 : 13) {
        memcpy(changed, valid, size);
        file_write(place.path, changed, size);
        ck_assert_int_eq(hostile_use(place.path, size, SL_PLACE_MAP, NULL), SL_ECORRUPT);
        hostile_seal(changed, size);
        file_write(place.path, changed, size);
        ck_assert_int_eq(hostile_use(place.path, size, SL_PLACE_MAP, NULL), SL_ECORRUPT);
        ck_assert_int_eq(hostile_use(place.path, size, SL_PLACE_DRAM, NULL), SL_ECORRUPT);
    }
}
END_TEST

/* Copying into DRAM reads every byte, so a changed one is found. */
START_TEST(changed_bodies_copied) {
    build(_i);
    for (size_t round = 0; round < 100; round++) {
        seed = 3000 + (uint64_t)_i;
        drawn = round << 32;
        memcpy(changed, valid, valid_size);
        change_body();
        if (memcmp(changed, valid, valid_size) == 0) continue;
        file_write(place.path, changed, valid_size);
        ck_assert_int_eq(hostile_use(place.path, valid_size, SL_PLACE_DRAM, NULL), SL_ECORRUPT);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("hostile");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, the_file_itself_is_sound, 0, HOSTILE_KINDS);
    tcase_add_loop_test(tests, changed_bodies_mapped, 0, HOSTILE_KINDS);
    tcase_add_loop_test(tests, forged_files, 0, HOSTILE_KINDS);
    tcase_add_loop_test(tests, contradicting_headers, 0, HOSTILE_ROOM);
    tcase_add_loop_test(tests, truncated_files, 0, HOSTILE_KINDS);
    tcase_add_loop_test(tests, changed_bodies_copied, 0, HOSTILE_ROOM);
    return check_main("hostile", &tests, 1);
}
