/* Opening a file that nobody vouches for: everything that is not exactly right is refused, with the reason. */
#define _GNU_SOURCE
#include "base/crc32c.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/sample_file.h"
#include "tests/support/scratch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static scratch place;
static sample_file sample;
static sl_allocator memory;

static void set_up(void) {
    memory = sl_allocator_of(NULL);
    scratch_open(&place);
    sample_init(&sample, &sl_index_file, 7, 6000);
    ck_assert_int_eq(sample_save(&sample, place.path, NULL), SL_OK);
}

static void tear_down(void) {
    sample_free(&sample);
    scratch_close(&place);
}

static const sl_file_type *const types[] = {&sl_index_file, &sl_ranker_file, &sl_items_file};
enum { TYPES = sizeof types / sizeof *types };

/* Makes the file one of this type. */
static void become(int type) {
    sample_free(&sample);
    sample_init(&sample, types[type], 7, 6000);
    ck_assert_int_eq(sample_save(&sample, place.path, NULL), SL_OK);
}

/* Both places open the same way; says what both say. */
static sl_status try_open_as(const sl_file_type *type) {
    sl_store *store;
    sl_status mapped = sl_store_open(place.path, type, SL_PLACE_MAP, &memory, &store);
    ck_assert_ptr_eq(mapped == SL_OK ? NULL : store, NULL);
    sl_store_close(store, &memory);
    ck_assert_int_eq(sl_store_open(place.path, type, SL_PLACE_DRAM, &memory, &store), mapped);
    sl_store_close(store, &memory);
    return mapped;
}

static sl_status try_open(void) {
    return try_open_as(sample.type);
}

static void expect(sl_status wanted, const char *word) {
    sl_status status = try_open();
    ck_assert_msg(status == wanted, "%s, not %s: %s", sl_status_name(status), sl_status_name(wanted), sl_last_error());
    ck_assert_msg(strstr(sl_last_error(), word), "'%s' does not say '%s'", sl_last_error(), word);
    ck_assert_msg(strstr(sl_last_error(), place.path), "'%s' does not name the file", sl_last_error());
}

START_TEST(what_was_saved_is_read) {
    become(_i);
    ck_assert_int_eq(sample_holds(&sample, place.path), 1);
    ck_assert_uint_eq(sample_version(place.path), types[_i] == &sl_index_file ? 7 : 0);
    sl_store *store;
    ck_assert_int_eq(sl_store_open(place.path, types[_i], SL_PLACE_MAP, &memory, &store), SL_OK);
    ck_assert_ptr_null(sl_store_section(store, SL_SECTION_REFINE));
    ck_assert_uint_eq(store->size, store->header.file_size);
    ck_assert_uint_eq(store->size, sl_store_file_size(sample.sections, SAMPLE_SECTIONS));
    for (uint32_t i = 0; i < store->header.section_count; i++) {
        const sl_file_section *section = &store->header.sections[i];
        ck_assert_uint_eq(section->offset % SL_SECTION_ALIGN, 0);
        const unsigned char *slack = store->base + section->offset + section->size;
        static const unsigned char zeros[SL_SECTION_SLACK];
        ck_assert_mem_eq(slack, zeros, sizeof zeros);
    }
    sl_store_close(store, &memory);
    sl_store_close(NULL, &memory);
}
END_TEST

START_TEST(every_truncation_is_refused) {
    become(_i);
    struct stat info;
    ck_assert_int_eq(stat(place.path, &info), 0);
    for (off_t size = info.st_size - 1; size >= 0; size--) {
        ck_assert_int_eq(truncate(place.path, size), 0);
        sl_status wanted = size == 0 ? SL_EFORMAT : SL_ECORRUPT;
        expect(wanted, size == 0 ? "empty" : "truncated");
    }
    ck_assert_int_eq(truncate(place.path, info.st_size), 0);
    expect(SL_EFORMAT, "not a Shortlist"); /* all zeros */
}
END_TEST

START_TEST(bytes_behind_the_end_are_refused) {
    struct stat info;
    ck_assert_int_eq(stat(place.path, &info), 0);
    ck_assert_int_eq(truncate(place.path, info.st_size + 1), 0);
    expect(SL_ECORRUPT, "1 bytes follow");
}
END_TEST

/* The CRC covers every byte of the header page, the reserved ones too. */
START_TEST(every_changed_header_byte_is_refused) {
    become(_i);
    const unsigned char changes[] = {0x01, 0x80, 0xff};
    size_t size;
    unsigned char *bytes = file_read(place.path, &size);
    for (size_t at = 0; at < SL_HEADER_SIZE; at++) {
        for (size_t i = 0; i < sizeof changes; i++) {
            unsigned char changed = bytes[at] ^ changes[i];
            file_patch(place.path, at, &changed, 1);
            sl_status status = try_open();
            ck_assert_msg(status == SL_ECORRUPT || status == SL_EVERSION || status == SL_EFORMAT,
                          "byte %zu changed by %02x: %s", at, changes[i], sl_status_name(status));
        }
        file_patch(place.path, at, &bytes[at], 1);
    }
    ck_assert_int_eq(try_open(), SL_OK);
    free(bytes);
}
END_TEST

/* Opening takes constant time and so does not see these; reading against the CRC does. */
START_TEST(changed_section_bytes_are_found) {
    become(_i);
    sl_progress progress;
    sl_progress_start(&progress, NULL, NULL, 0);
    sl_store *store;
    ck_assert_int_eq(sl_store_open(place.path, types[_i], SL_PLACE_MAP, &memory, &store), SL_OK);
    for (uint32_t i = 0; i < store->header.section_count; i++) {
        const sl_file_section *section = &store->header.sections[i];
        unsigned char copy[6000];
        for (uint64_t at = section->offset; at < section->offset + section->size; at++) {
            unsigned char whole = store->base[at], changed = (unsigned char)(whole ^ (1u << at % 8));
            file_patch(place.path, at, &changed, 1);
            ck_assert_int_eq(try_open(), SL_OK);
            ck_assert_int_eq(sl_store_verify(store, section, &progress), SL_ECORRUPT);
            ck_assert_ptr_nonnull(strstr(sl_last_error(), place.path));
            ck_assert_int_eq(sl_store_copy(store, section, copy, &progress), SL_ECORRUPT);
            file_patch(place.path, at, &whole, 1);
        }
        ck_assert_int_eq(sl_store_verify(store, section, &progress), SL_OK);
    }
    sl_store_close(store, &memory);
}
END_TEST

/* Changes to the header with its CRC made right again: a file somebody made on purpose. */
static const struct forgery {
    size_t at;
    size_t width;
    uint64_t value;
    sl_status wanted;
    const char *word;
} forgeries[] = {
#define IN(field)         offsetof(sl_file_header, field)
#define AT(number, field) (IN(sections) + (number) * sizeof(sl_file_section) + offsetof(sl_file_section, field))
    {IN(magic), 1, 'X', SL_EFORMAT, "not a Shortlist index"},
    {IN(endian), 4, 0x04030201, SL_EFORMAT, "big-endian"},
    {IN(endian), 4, 0, SL_ECORRUPT, "damaged"},
    {IN(version), 4, 0, SL_ECORRUPT, "damaged"},
    {IN(version), 4, 2, SL_EVERSION, "newer version"},
    {IN(version), 4, UINT32_MAX, SL_EVERSION, "newer version"},
    {IN(header_size), 4, 8192, SL_ECORRUPT, "damaged"},
    {IN(file_size), 8, 0, SL_ECORRUPT, "follow"},
    {IN(file_size), 8, UINT64_MAX, SL_ECORRUPT, "truncated"},
    {IN(file_size), 8, UINT64_C(2600000000000), SL_ECORRUPT, "truncated"},
    {IN(section_count), 4, SL_MAX_SECTIONS + 1, SL_ECORRUPT, "sections, of"},
    {IN(section_count), 4, UINT32_MAX, SL_ECORRUPT, "sections, of"},
    {IN(section_count), 4, SAMPLE_SECTIONS + 1, SL_ECORRUPT, "outside"},
    {AT(0, offset), 8, 0, SL_ECORRUPT, "outside"},
    {AT(0, offset), 8, SL_HEADER_SIZE + 1, SL_ECORRUPT, "outside"},
    {AT(0, offset), 8, SL_HEADER_SIZE + 64, SL_ECORRUPT, "outside"},
    {AT(0, offset), 8, UINT64_MAX - 4095, SL_ECORRUPT, "outside"},
    {AT(0, offset), 8, UINT64_C(1) << 63, SL_ECORRUPT, "outside"},
    {AT(0, offset), 8, UINT64_C(1) << 40, SL_ECORRUPT, "outside"},
    {AT(0, size), 8, UINT64_MAX, SL_ECORRUPT, "outside"},
    {AT(0, size), 8, UINT64_MAX - SL_HEADER_SIZE + 1, SL_ECORRUPT, "outside"},         /* offset + size = 2^64 */
    {AT(0, size), 8, UINT64_MAX - SL_HEADER_SIZE - 62, SL_ECORRUPT, "outside"},        /* with the slack, 1 */
    {AT(0, size), 8, UINT64_MAX - SL_HEADER_SIZE - 63, SL_ECORRUPT, "outside"},        /* with the slack, 2^64 */
    {AT(0, size), 8, SL_SECTION_ALIGN - SL_SECTION_SLACK + 1, SL_ECORRUPT, "overlap"}, /* slack one byte into it */
    {AT(1, offset), 8, SL_HEADER_SIZE, SL_ECORRUPT, "overlap"},
    {AT(2, offset), 8, SL_HEADER_SIZE, SL_ECORRUPT, "overlap"}, /* the empty one has slack all the same */
    {AT(1, kind), 4, SL_SECTION_CODES, SL_ECORRUPT, "twice"},
    {AT(3, kind), 4, SL_SECTION_LINKS, SL_ECORRUPT, "twice"},
    {AT(3, flags), 4, SL_SECTION_REQUIRED, SL_EVERSION, "newer version"},
    {AT(1, kind), 4, 0, SL_EVERSION, "newer version"},
    {AT(1, kind), 4, UINT32_MAX, SL_EVERSION, "newer version"},
};

static void forge(const struct forgery *forgery) {
    size_t size;
    unsigned char *bytes = file_read(place.path, &size);
    memcpy(bytes + forgery->at, &forgery->value, forgery->width);
    uint32_t crc = sl_crc32c(0, bytes, offsetof(sl_file_header, crc32c));
    memcpy(bytes + offsetof(sl_file_header, crc32c), &crc, sizeof crc);
    file_write(place.path, bytes, size);
    free(bytes);
}

START_TEST(forged_headers_are_refused) {
    forge(&forgeries[_i]);
    expect(forgeries[_i].wanted, forgeries[_i].word);
}
END_TEST

/* The last section may end exactly at the end of the file, and no byte later. */
START_TEST(the_last_byte_counts) {
    size_t last = SAMPLE_SECTIONS - 1;
    uint64_t size = sample.sections[last].size;
    struct forgery fits = {AT(last, size), 8, size, SL_OK, ""}, beyond = {AT(last, size), 8, size + 1, SL_ECORRUPT, ""};
    forge(&fits);
    ck_assert_int_eq(try_open(), SL_OK);
    forge(&beyond);
    expect(SL_ECORRUPT, "outside");
}
END_TEST

/* Each type of file refuses the others by name. */
START_TEST(other_types_are_named) {
    static const char *const names[TYPES] = {"an index", "a ranker model", "an item table"};
    become(_i);
    for (int wanted = 0; wanted < TYPES; wanted++) {
        sl_status status = try_open_as(types[wanted]);
        ck_assert_int_eq(status, wanted == _i ? SL_OK : SL_EFORMAT);
        if (wanted == _i) continue;
        char text[SCRATCH_PATH + 100];
        snprintf(text, sizeof text, "%s is %s, not %s; name %s", place.path, names[_i], names[wanted], names[wanted]);
        ck_assert_msg(strstr(sl_last_error(), text), "'%s' does not say '%s'", sl_last_error(), text);
    }
    /* Whoever changes the magic gets no further: the sections are another type's. */
    struct forgery renamed = {IN(magic), 8, 0, SL_OK, ""};
    sample.type = types[(_i + 1) % TYPES];
    memcpy(&renamed.value, sample.type->magic, sizeof renamed.value);
    forge(&renamed);
    int strict = sample.type->fields_end == SL_HEADER_COMMON && types[_i] == &sl_index_file;
    expect(strict ? SL_ECORRUPT : SL_EVERSION, strict ? "fields" : "newer version");
}
END_TEST

/* Whoever names a file without saying what it is learns it by its first bytes. */
START_TEST(kinds_of_file_are_told) {
    sl_file_kind kind;
    become(_i);
    ck_assert_int_eq(sl_file_kind_of(place.path, &kind), SL_OK);
    ck_assert_int_eq(kind, _i);
    ck_assert_int_eq(sl_file_kind_of(NULL, &kind), SL_EINVAL);
    ck_assert_int_eq(sl_file_kind_of(place.path, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_file_kind_of(place.folder, &kind), SL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "a folder"));
    file_write(place.path, "SLAVERS!", 8);
    ck_assert_int_eq(sl_file_kind_of(place.path, &kind), SL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "not a Shortlist index, model or item table"));
    file_write(place.path, "", 0);
    ck_assert_int_eq(sl_file_kind_of(place.path, &kind), SL_EFORMAT);
    ck_assert_int_eq(unlink(place.path), 0);
    ck_assert_int_eq(sl_file_kind_of(place.path, &kind), SL_EIO);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), place.path));
}
END_TEST

START_TEST(every_kind_of_section_has_a_name) {
    const char *unknown = sl_section_name(0);
    for (uint32_t kind = 1; kind < 64; kind++)
        for (int type = 0; type < TYPES; type++)
            if (types[type]->known_kinds >> kind & 1) {
                ck_assert_str_ne(sl_section_name(kind), unknown);
                for (uint32_t other = 1; other < kind; other++)
                    ck_assert_str_ne(sl_section_name(kind), sl_section_name(other));
            }
    ck_assert_str_eq(sl_section_name(SAMPLE_UNKNOWN), unknown);
    ck_assert_str_eq(sl_section_name(UINT32_MAX), unknown);
}
END_TEST

static int go_on(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return 0;
}

/* The file is verified as a whole: no byte can change unseen, neither in a section of unknown kind nor between the
 * sections. */
START_TEST(no_byte_changes_unseen) {
    become(_i);
    sl_progress progress;
    sl_store *store;
    sl_verified found;
    ck_assert_int_eq(sl_store_open(place.path, types[_i], SL_PLACE_MAP, &memory, &store), SL_OK);
    sl_progress_start(&progress, go_on, NULL, store->size);
    ck_assert_int_eq(sl_store_verify_all(store, &found, &progress), SL_OK);
    ck_assert_uint_eq(found.sections, SAMPLE_SECTIONS);
    ck_assert_uint_eq(found.bytes, store->size);
    ck_assert_uint_eq(progress.done, store->size);
    /* The types share the bytes out. */
    for (uint64_t at = (uint64_t)_i; at < store->size; at += TYPES) {
        unsigned char whole = store->base[at], changed = (unsigned char)(whole ^ (1u << at % 8));
        file_patch(place.path, at, &changed, 1);
        ck_assert_int_eq(sl_store_verify_all(store, &found, NULL), SL_ECORRUPT);
        ck_assert_uint_le(found.bytes, at);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), place.path));
        file_patch(place.path, at, &whole, 1);
    }
    sl_store_close(store, &memory);
}
END_TEST

/* Kinds of section that a type knows are passed by; all others are not, where they are required. */
START_TEST(kinds_belong_to_a_type) {
    become(_i);
    for (uint32_t kind = 0; kind <= 64; kind++) {
        const struct forgery required = {AT(3, flags), 4, SL_SECTION_REQUIRED, SL_OK, ""};
        const struct forgery named = {AT(3, kind), 4, kind, SL_OK, ""};
        forge(&required);
        forge(&named);
        int there = 0;
        for (int i = 0; i < SAMPLE_SECTIONS - 1; i++)
            there |= sample.sections[i].kind == kind;
        uint32_t least[TYPES] = {1, 16, 24}, most[TYPES] = {15, 21, 27};
        int known = (kind >= least[_i] && kind <= most[_i]) ||
                    (_i == 0 && kind >= SL_SECTION_SUMS && kind <= SL_SECTION_GROUP_ROWS) ||
                    (_i == 1 && kind >= SL_SECTION_TABLE_CODES && kind <= SL_SECTION_TABLE_ROWS) ||
                    (_i == 1 && kind >= SL_SECTION_LAYERS && kind <= SL_SECTION_RANGES) ||
                    (_i == 0 && (kind == SL_SECTION_PARTITION_BANDS || kind == SL_SECTION_PAGE_SUMS ||
                                 kind == SL_SECTION_LIFETIMES)) ||
                    (_i == 0 && kind >= SL_SECTION_TAGS && kind <= SL_SECTION_MULTI);
        ck_assert_int_eq(try_open(), !known ? SL_EVERSION : there ? SL_ECORRUPT : SL_OK);
    }
}
END_TEST

/* A model or an item table has no fields of its own in its header page; what stands there came from nobody we know. */
START_TEST(foreign_header_fields_are_refused) {
    become(_i);
    for (size_t at = SL_HEADER_COMMON; at < IN(sections); at++) {
        struct forgery set = {at, 1, 1 + at % 255, SL_ECORRUPT, "fields that no header"}, clear = {at, 1, 0, SL_OK, ""};
        forge(&set);
        expect(set.wanted, set.word);
        forge(&clear);
    }
    ck_assert_int_eq(try_open(), SL_OK);
}
END_TEST

START_TEST(what_is_no_index_is_refused) {
    char text[8192];
    memset(text, 'a', sizeof text);
    file_write(place.path, text, sizeof text);
    expect(SL_EFORMAT, "not a Shortlist index");
    file_write(place.path, text, 3);
    expect(SL_EFORMAT, "not a Shortlist index");
    file_write(place.path, "", 0);
    expect(SL_EFORMAT, "empty");
    ck_assert_int_eq(unlink(place.path), 0);
    expect(SL_EIO, "No such file");
    ck_assert_int_eq(mkdir(place.path, 0700), 0);
    expect(SL_EFORMAT, "folder");
    ck_assert_int_eq(rmdir(place.path), 0);
    /* Nobody writes to the pipe: an open that waits for that would hang here. */
    ck_assert_int_eq(mkfifo(place.path, 0600), 0);
    expect(SL_EFORMAT, "not a regular file");
}
END_TEST

START_TEST(places_are_told_apart) {
    sl_store *store;
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_PMEM; where++) {
        ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, (sl_place)where, &memory, &store), SL_OK);
        ck_assert_int_eq(store->medium->place, where);
        sl_store_close(store, &memory);
    }
    ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, (sl_place)99, &memory, &store), SL_EINVAL);
    ck_assert_ptr_null(store);
}
END_TEST

START_TEST(a_failing_allocation_is_passed_on) {
    fault_allocator faults;
    sl_store *store;
    fault_allocator_init(&faults, 0);
    ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &faults.allocator, &store), SL_OK);
    sl_store_close(store, &faults.allocator);
    size_t calls = faults.calls;
    ck_assert_uint_gt(calls, 0);
    for (size_t i = 1; i <= calls; i++) {
        fault_allocator_init(&faults, i);
        ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &faults.allocator, &store), SL_ENOMEM);
        ck_assert_ptr_null(store);
        ck_assert_uint_eq(faults.live_blocks, 0);
    }
}
END_TEST

static size_t open_descriptors(void) {
    scratch descriptors = {.folder = "/proc/self/fd"};
    return scratch_count(&descriptors);
}

START_TEST(no_descriptor_stays_open) {
    size_t before = open_descriptors();
    sl_store *store;
    ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &memory, &store), SL_OK);
    ck_assert_uint_eq(open_descriptors(), before);
    sl_store_close(store, &memory);
    ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, SL_PLACE_DRAM, &memory, &store), SL_OK);
    sl_store_close(store, &memory);
    ck_assert_uint_eq(open_descriptors(), before);
    forge(&forgeries[0]);
    ck_assert_int_eq(try_open(), SL_EFORMAT);
    ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

/* A mapping outlives the name of its file. So an index can be saved over the file that the index is mapped from. */
START_TEST(a_mapping_survives_its_replacement) {
    sl_progress progress;
    sl_progress_start(&progress, NULL, NULL, 0);
    sl_store *store;
    ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &memory, &store), SL_OK);
    sample_file next;
    sample_init(&next, &sl_index_file, 8, 9000);
    ck_assert_int_eq(sample_save(&next, place.path, NULL), SL_OK);
    for (uint32_t i = 0; i < store->header.section_count; i++)
        ck_assert_int_eq(sl_store_verify(store, &store->header.sections[i], &progress), SL_OK);
    sl_store_close(store, &memory);
    ck_assert_uint_eq(sample_version(place.path), 8);
    sample_free(&next);
}
END_TEST

static int cancel(void *ctx, uint64_t done, uint64_t total) {
    (void)done, (void)total;
    ++*(int *)ctx;
    return 1;
}

START_TEST(reading_can_be_cancelled) {
    int told = 0;
    sl_progress progress;
    sl_progress_start(&progress, cancel, &told, 3000);
    sl_store *store;
    ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &memory, &store), SL_OK);
    ck_assert_int_eq(sl_store_verify(store, &store->header.sections[0], &progress), SL_ECANCELED);
    ck_assert_int_eq(told, 1);
    sl_store_close(store, &memory);
}
END_TEST

/* More than is shared out at a time, of arrays and of rows in parts, and no whole number of anything. */
enum { LARGE = 2 * (34 << 20) + 333, ROW = 200, SPLIT = 72 };

static void open_large(sl_store **store) {
    sample_free(&sample);
    sample_init(&sample, &sl_index_file, 7, LARGE);
    ck_assert_int_eq(sample_save(&sample, place.path, NULL), SL_OK);
    ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, SL_PLACE_DRAM, &memory, store), SL_OK);
}

static unsigned char *copied_rows(const sl_store *store, const sl_file_section *section, sl_status wanted) {
    size_t rows = section->size / ROW + 1;
    unsigned char *whole = calloc(rows, ROW);
    ck_assert_ptr_nonnull(whole);
    const sl_split_rows split = {{{whole, ROW, SPLIT, 0}, {whole + SPLIT, ROW, ROW - SPLIT, SPLIT}}, 2, ROW, NULL};
    ck_assert_int_eq(sl_store_copy_rows(store, section, &split, section->size, NULL), wanted);
    return whole;
}

START_TEST(threads_copy_as_one_does) {
    const size_t counts[] = {1, 3, 8};
    sl_store *store;
    open_large(&store);
    const sl_section_source *source = &sample.sections[0];
    const sl_file_section *section = sl_store_section(store, source->kind);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        store->threads = counts[i];
        unsigned char *copy = calloc(1, section->size), *rows = copied_rows(store, section, SL_OK);
        ck_assert_ptr_nonnull(copy);
        ck_assert_int_eq(sl_store_copy(store, section, copy, NULL), SL_OK);
        ck_assert_mem_eq(copy, source->data, source->size);
        ck_assert_mem_eq(rows, source->data, source->size);
        free(copy);
        free(rows);
    }
    sl_store_close(store, &memory);
}
END_TEST

/* A byte of each kind of chunk: the first, one within, the last. */
START_TEST(threads_find_what_is_damaged) {
    sl_store *store;
    open_large(&store);
    store->threads = 3;
    const sl_file_section *section = sl_store_section(store, sample.sections[0].kind);
    const uint64_t at[] = {0, section->size / 2, section->size - 1};
    unsigned char *copy = malloc(section->size);
    ck_assert_ptr_nonnull(copy);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        unsigned char whole = store->base[section->offset + at[i]], changed = whole ^ 1;
        file_patch(place.path, section->offset + at[i], &changed, 1);
        ck_assert_int_eq(sl_store_copy(store, section, copy, NULL), SL_ECORRUPT);
        free(copied_rows(store, section, SL_ECORRUPT));
        file_patch(place.path, section->offset + at[i], &whole, 1);
    }
    ck_assert_int_eq(sl_store_copy(store, section, copy, NULL), SL_OK);
    free(copy);
    sl_store_close(store, &memory);
}
END_TEST

/* A mapping would report this fault by a signal. */
START_TEST(files_that_become_shorter) {
    sl_store *store;
    open_large(&store);
    const sl_file_section *section = sl_store_section(store, sample.sections[0].kind);
    unsigned char *copy = malloc(section->size);
    ck_assert_ptr_nonnull(copy);
    ck_assert_int_eq(truncate(place.path, (off_t)(section->offset + section->size / 2)), 0);
    for (store->threads = 1; store->threads <= 2; store->threads++) {
        ck_assert_int_eq(sl_store_copy(store, section, copy, NULL), SL_ECORRUPT);
        ck_assert_msg(strstr(sl_last_error(), "shorter") && strstr(sl_last_error(), place.path), "%s", sl_last_error());
    }
    free(copy);
    sl_store_close(store, &memory);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("storage");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, what_was_saved_is_read, 0, TYPES);
    tcase_add_loop_test(tests, every_truncation_is_refused, 0, TYPES);
    tcase_add_test(tests, bytes_behind_the_end_are_refused);
    tcase_add_loop_test(tests, every_changed_header_byte_is_refused, 0, TYPES);
    tcase_add_loop_test(tests, changed_section_bytes_are_found, 0, TYPES);
    tcase_add_loop_test(tests, forged_headers_are_refused, 0, (int)(sizeof forgeries / sizeof *forgeries));
    tcase_add_loop_test(tests, other_types_are_named, 0, TYPES);
    tcase_add_loop_test(tests, kinds_of_file_are_told, 0, TYPES);
    tcase_add_test(tests, every_kind_of_section_has_a_name);
    tcase_add_loop_test(tests, no_byte_changes_unseen, 0, TYPES);
    tcase_add_loop_test(tests, kinds_belong_to_a_type, 0, TYPES);
    tcase_add_loop_test(tests, foreign_header_fields_are_refused, 1, TYPES);
    tcase_add_test(tests, the_last_byte_counts);
    tcase_add_test(tests, what_is_no_index_is_refused);
    tcase_add_test(tests, places_are_told_apart);
    tcase_add_test(tests, a_failing_allocation_is_passed_on);
    tcase_add_test(tests, no_descriptor_stays_open);
    tcase_add_test(tests, a_mapping_survives_its_replacement);
    tcase_add_test(tests, reading_can_be_cancelled);
    TCase *threads = tcase_create("threads");
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_test(threads, threads_copy_as_one_does);
    tcase_add_test(threads, threads_find_what_is_damaged);
    tcase_add_test(threads, files_that_become_shorter);
    return check_main("storage", (TCase *[]){tests, threads}, 2);
}
