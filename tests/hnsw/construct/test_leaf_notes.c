/* Notes of leaves in a work file: they come back unchanged at any size, and forged ones are refused. */
#include "hnsw/construct/leaf_notes.h"
#include "hnsw/construct/neighbour_lists.h"
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 7, NOTE_LEAF = 4 };

static scratch place;
static sl_allocator memory;
static sl_work *work;
static sl_leaves leaves, taken;

static void set_up(void) {
    scratch_open(&place);
    memory = sl_allocator_of(NULL);
    ck_ok(sl_work_open(place.path, &memory, &work));
    ck_ok(sl_work_begin(work, (uint64_t[2]){1, 2}));
}

static void tear_down(void) {
    sl_work_close(work);
    sl_leaves_free(&leaves);
    sl_leaves_free(&taken);
    scratch_close(&place);
}

/* Reads from the first note on. */
static void read_again(void) {
    sl_work_close(work);
    ck_ok(sl_work_open(place.path, &memory, &work));
    ck_ok(sl_work_begin(work, (uint64_t[2]){1, 2}));
}

/* Allocates room for this many leaves and places. */
static sl_leaves make_leaves(size_t count, size_t places, size_t targets) {
    sl_status status = SL_OK;
    sl_leaves made = {.allocator = memory, .most = count + 1, .room = places, .n = places};
    made.starts = sl_mem_array(&memory, made.most, sizeof *made.starts, &status);
    made.points = sl_mem_array(&memory, places, sizeof *made.points, &status);
    made.targets_room = targets;
    if (targets) made.targets = sl_mem_array(&memory, targets, sizeof *made.targets, &status);
    ck_ok(status);
    return made;
}

/* Writes `count` leaves of `size` points each. */
static void fill_leaves(size_t count, size_t size) {
    leaves.count = count;
    leaves.places = count * size;
    for (size_t i = 0; i <= count; i++)
        leaves.starts[i] = i * size;
    for (size_t i = 0; i < leaves.places; i++)
        leaves.points[i] = (uint32_t)(leaves.places - 1 - i);
    for (size_t i = 0; i < leaves.targets_room; i++)
        leaves.targets[i] = i % 3 ? (uint32_t)(i * 7 % leaves.n) : SL_NONE;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Leaves
 * ------------------------------------------------------------------------------------------------------------- */

/* Each array takes one piece of a work file, or several. */
START_TEST(arrays_of_any_size_come_back) {
    static const struct {
        size_t count, size;
        int targets;
    } cases[] = {{1, 100, 0}, {500, 300, 0}, {70000, 3, 0}, {200, 400, 1}};
    const size_t count = cases[_i].count, places = count * cases[_i].size;
    const size_t targets = cases[_i].targets ? count * SL_LEAF_TARGETS : 0;
    leaves = make_leaves(count, places, targets);
    fill_leaves(count, cases[_i].size);
    ck_ok(sl_leaf_notes_write(work, &leaves));
    read_again();
    taken = make_leaves(1, places, targets);
    ck_assert_int_eq(sl_leaf_notes_read(work, &taken), 1);
    ck_assert_uint_eq(taken.count, count);
    ck_assert_uint_eq(taken.places, places);
    ck_assert_mem_eq(taken.starts, leaves.starts, (count + 1) * sizeof *leaves.starts);
    ck_assert_mem_eq(taken.points, leaves.points, places * sizeof *leaves.points);
    if (targets) ck_assert_mem_eq(taken.targets, leaves.targets, targets * sizeof *leaves.targets);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Finds of a leaf
 * ------------------------------------------------------------------------------------------------------------- */

/* A word for the j-th point of a leaf. */
static uint64_t word_of(size_t j) {
    return sl_neighbour_rank(0.5f) | ~(uint32_t)j;
}

/* Reads the note with these words. Returns whether it was accepted, unchanged. */
static int read_note(const uint64_t *words, size_t count, uint32_t number, size_t bytes) {
    sl_leaf_note note = {.room = sl_leaf_note_room(&leaves, MOST)};
    sl_status status = SL_OK;
    size_t leaf;
    note.words = sl_mem_array(&memory, note.room, sizeof *note.words, &status);
    ck_ok(status);
    sl_work_restart(work);
    ck_ok(sl_work_append(work, NOTE_LEAF, number, words, bytes));
    read_again();
    const int took = sl_leaf_note_read(work, &leaves, MOST, &leaf, &note);
    if (took) {
        ck_assert_uint_eq(leaf, number);
        ck_assert_uint_eq(note.count, count);
        ck_assert_mem_eq(note.words, words, bytes);
    }
    sl_mem_free(&memory, note.words, note.room * sizeof *note.words);
    return took;
}

/* A note of a leaf of `size` points: the first point has `first` results, each other point `others`. */
static int accepts_counts(size_t size, size_t first, size_t others) {
    static uint64_t words[SL_LEAF_POINTS * (MOST + 1)];
    size_t count = 0;
    ck_assert_uint_le(1 + first + (size - 1) * (1 + others), sizeof words / sizeof *words);
    for (size_t i = 0; i < size; i++) {
        const size_t found = i ? others : first;
        words[count++] = found;
        for (size_t j = 0; j < found; j++)
            words[count++] = word_of(j % size);
    }
    return read_note(words, count, 0, count * sizeof *words);
}

/* However the words are dealt out, no point has more results than lists have room for. */
START_TEST(no_point_has_too_many_results) {
    static const size_t sizes[] = {1, 2, 10, 500};
    const size_t size = sizes[_i];
    leaves = make_leaves(1, size, 0);
    fill_leaves(1, size);
    ck_assert(accepts_counts(size, MOST, MOST));
    ck_assert(accepts_counts(size, MOST, 0));
    ck_assert(accepts_counts(size, 0, MOST));
    ck_assert(accepts_counts(size, 0, 0));
    /* One point has one result too many, or all words that there is room for. */
    ck_assert(!accepts_counts(size, MOST + 1, 0));
    if (size > 1) ck_assert(!accepts_counts(size, size * MOST, 0));
}
END_TEST

START_TEST(forged_results_are_refused) {
    uint64_t good[] = {2, word_of(1), word_of(2), 0, 1, word_of(0)}, bad[6];
    const size_t count = sizeof good / sizeof *good;
    leaves = make_leaves(1, 3, 0);
    fill_leaves(1, 3);
    ck_assert(read_note(good, count, 0, sizeof good));
    ck_assert(!read_note(good, count, 1, sizeof good));     /* no such leaf */
    ck_assert(!read_note(good, count, 0, sizeof good - 4)); /* half a word */
    for (size_t words = 0; words < count; words++)          /* notes that are too short */
        ck_assert(!read_note(good, words, 0, words * sizeof *good));
    for (size_t at = 0; at < count; at++)
        for (uint64_t value = 3; value < 9; value++) {
            memcpy(bad, good, sizeof bad);
            /* A count beyond the note, or a place beyond the leaf. */
            bad[at] = at == 0 || at == 3 || at == 4 ? value : word_of((size_t)value);
            ck_assert(!read_note(bad, count, 0, sizeof bad));
        }
    bad[0] = UINT64_MAX;
    ck_assert(!read_note(bad, count, 0, sizeof bad));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("leaf_notes");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, arrays_of_any_size_come_back, 0, 4);
    tcase_add_loop_test(tests, no_point_has_too_many_results, 0, 4);
    tcase_add_test(tests, forged_results_are_refused);
    return check_main("leaf_notes", &tests, 1);
}
