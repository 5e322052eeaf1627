#include "hnsw/construct/leaf_notes.h"

#include "base/crc32c.h"

#include <string.h>

/* Kinds of notes. */
enum { NOTE_COUNTS = 1, NOTE_STARTS, NOTE_POINTS, NOTE_LEAF, NOTE_TARGETS };
/* Bytes of an array in one note. */
enum { PIECE = 1 << 18 };

/* All that leaves and their comparisons depend on, except the rows. The struct has no padding, since the checksum would
 * read it. */
typedef struct note_key {
    uint64_t n, fan_out, width, seed;
    uint32_t metric, dim, leaf_points, max_leaf_points, partitionings, method;
} note_key;

/* Version of the method that makes and compares leaves. Raise it with any change to the method, so that no build goes
 * on from leaves of the old one. */
enum { METHOD = 3 };

/* Makes a key of the rows. Its upper half is the checksum of odd rows, its lower half that of even rows. */
static uint64_t rows_key(const sl_points *points) {
    const sl_code_rows *rows = &points->codec->rows;
    uint32_t crc[2] = {0, 0};
    for (size_t i = 0; i < points->n; i++)
        crc[i % 2] = sl_crc32c(crc[i % 2], rows->base + sl_point_row(points, i) * rows->pitch, rows->pitch);
    return (uint64_t)crc[1] << 32 | crc[0];
}

sl_status sl_leaf_notes_begin(sl_work *work, const sl_points *points, size_t fan_out, size_t width) {
    const sl_codec *codec = points->codec;
    const note_key key = {.n = points->n,
                          .fan_out = fan_out,
                          .width = width,
                          .seed = points->graph->seed,
                          .metric = (uint32_t)codec->metric,
                          .dim = (uint32_t)codec->dim,
                          .leaf_points = SL_LEAF_POINTS,
                          .max_leaf_points = SL_MAX_LEAF_POINTS,
                          .partitionings = SL_PARTITIONINGS,
                          .method = METHOD};
    return sl_work_begin(work,
                         (uint64_t[2]){rows_key(points), (uint64_t)sl_crc32c(0, &key, sizeof key) << 32 | key.dim});
}

/* ---------------------------------------------------------------------------------------------------------------
 * Leaves
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status write_array(sl_work *work, uint32_t kind, const void *array, size_t size) {
    uint32_t number = 0;
    for (size_t at = 0; at < size; at += PIECE, number++)
        SL_TRY(sl_work_append(work, kind, number, (const uint8_t *)array + at, size - at < PIECE ? size - at : PIECE));
    return SL_OK;
}

/* Bytes of the targets: of all places, since every leaf has its SL_LEAF_TARGETS of them. */
static size_t targets_bytes(const sl_leaves *leaves) {
    return leaves->targets ? leaves->targets_room * sizeof *leaves->targets : 0;
}

sl_status sl_leaf_notes_write(sl_work *work, const sl_leaves *leaves) {
    const uint64_t counts[2] = {leaves->count, leaves->places};
    SL_TRY(sl_work_append(work, NOTE_COUNTS, 0, counts, sizeof counts));
    SL_TRY(write_array(work, NOTE_STARTS, leaves->starts, (leaves->count + 1) * sizeof *leaves->starts));
    SL_TRY(write_array(work, NOTE_POINTS, leaves->points, leaves->places * sizeof *leaves->points));
    return write_array(work, NOTE_TARGETS, leaves->targets, targets_bytes(leaves));
}

static int read_array(sl_work *work, uint32_t kind, void *array, size_t size) {
    sl_note note;
    for (size_t at = 0, number = 0; at < size; at += PIECE, number++) {
        const size_t piece = size - at < PIECE ? size - at : PIECE;
        if (!sl_work_next(work, &note, (uint8_t *)array + at, piece)) return 0;
        if (note.kind != kind || note.number != number || note.size != piece) return 0;
    }
    return 1;
}

/* Returns whether leaves from a file, which isn't trusted, name points and places that exist. */
static int leaves_are_sound(const sl_leaves *leaves) {
    if (leaves->starts[0] != 0 || leaves->starts[leaves->count] != leaves->places) return 0;
    for (size_t i = 0; i < leaves->count; i++)
        if (leaves->starts[i + 1] < leaves->starts[i] || leaves->starts[i + 1] > leaves->places ||
            (!leaves->targets && leaves->starts[i + 1] - leaves->starts[i] > SL_MAX_LEAF_POINTS))
            return 0;
    for (size_t i = 0; i < leaves->places; i++)
        if (leaves->points[i] >= leaves->n) return 0;
    if (leaves->targets && leaves->count * SL_LEAF_TARGETS > leaves->targets_room) return 0;
    for (size_t i = 0; leaves->targets && i < leaves->targets_room; i++)
        if (leaves->targets[i] >= leaves->n && leaves->targets[i] != SL_NONE) return 0;
    return 1;
}

int sl_leaf_notes_read(sl_work *work, sl_leaves *leaves) {
    sl_note note;
    uint64_t counts[2];
    if (!sl_work_next(work, &note, counts, sizeof counts)) return 0;
    sl_status status = SL_OK;
    int is_read = note.kind == NOTE_COUNTS && note.size == sizeof counts && counts[0] && counts[0] <= leaves->room &&
                  counts[1] <= leaves->room;
    if (is_read)
        leaves->starts = sl_mem_grow(&leaves->allocator, leaves->starts, &leaves->most, counts[0] + 1,
                                     sizeof *leaves->starts, &status);
    is_read = is_read && status == SL_OK;
    if (is_read) {
        leaves->count = counts[0];
        leaves->places = counts[1];
        is_read = read_array(work, NOTE_STARTS, leaves->starts, (leaves->count + 1) * sizeof *leaves->starts) &&
                  read_array(work, NOTE_POINTS, leaves->points, leaves->places * sizeof *leaves->points) &&
                  read_array(work, NOTE_TARGETS, leaves->targets, targets_bytes(leaves)) && leaves_are_sound(leaves);
    }
    if (is_read) return 1;
    leaves->count = leaves->places = 0;
    leaves->starts[0] = 0;
    sl_work_restart(work);
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Pairs
 * ------------------------------------------------------------------------------------------------------------- */

size_t sl_leaf_note_room(const sl_leaves *leaves, size_t most) {
    size_t largest = 0;
    for (size_t i = 0; i < leaves->count; i++)
        if (leaves->starts[i + 1] - leaves->starts[i] > largest) largest = leaves->starts[i + 1] - leaves->starts[i];
    return (largest < SL_MAX_LEAF_POINTS ? largest : SL_MAX_LEAF_POINTS) * (most + 1);
}

sl_status sl_leaf_note_write(sl_work *work, size_t leaf, const sl_leaf_note *note) {
    return sl_work_append(work, NOTE_LEAF, (uint32_t)leaf, note->words, note->count * sizeof *note->words);
}

/* Returns whether the note has a top-k for each of the leaf's points, and names targets that exist. */
static int note_fits(const sl_leaf_note *note, const sl_leaves *leaves, size_t leaf, size_t most) {
    const size_t size = leaves->starts[leaf + 1] - leaves->starts[leaf];
    size_t at = 0, targets;
    (void)sl_leaf_targets(leaves, leaf, &targets);
    for (size_t i = 0; i < size; i++) {
        if (at >= note->count || note->words[at] > most || note->words[at] >= note->count - at) return 0;
        for (size_t j = 1; j <= note->words[at]; j++)
            if (~(uint32_t)note->words[at + j] >= targets) return 0;
        at += 1 + note->words[at];
    }
    return at == note->count;
}

int sl_leaf_note_read(sl_work *work, const sl_leaves *leaves, size_t most, size_t *leaf, sl_leaf_note *note) {
    sl_note head;
    if (!sl_work_next(work, &head, note->words, note->room * sizeof *note->words)) return 0;
    *leaf = head.number;
    note->count = head.size / sizeof *note->words;
    if (head.kind == NOTE_LEAF && head.number < leaves->count && head.size % sizeof *note->words == 0 &&
        note_fits(note, leaves, *leaf, most))
        return 1;
    sl_work_cut(work);
    return 0;
}
