/* Notes of leaves and of what their pairs have told, in a work file: linking that was broken off goes on there. */
#ifndef SL_HNSW_BUILD_LEAF_NOTES_H
#define SL_HNSW_BUILD_LEAF_NOTES_H

#include "hnsw/build/leaves.h"
#include "storage/work.h"

/* Begins with the notes of the same rows and parameters, if there are any. */
sl_status sl_leaf_notes_begin(sl_work *work, const sl_points *points, size_t fan_out, size_t width);

/* Takes leaves from notes, and leaves them as they are where there are none that fit. Returns whether it took them. */
int sl_leaf_notes_read(sl_work *work, sl_leaves *leaves);
/* Notes leaves. Errors: SL_ENOSPC, SL_EIO. */
sl_status sl_leaf_notes_write(sl_work *work, const sl_leaves *leaves);

/* The finds of one leaf: for each of its members a word with a count, and so many words behind it. A word holds a
 * score's rank (sl_neighbour_rank) above the inverse of a place in the leaf. */
typedef struct sl_leaf_note {
    uint64_t *words;
    size_t count, room;
} sl_leaf_note;
/* Words of a note at most, where a member finds `most` others. Leaves of more than SL_MAX_LEAF_POINTS members, which
 * there are under inner product, are not noted but compared again. */
size_t sl_leaf_note_room(const sl_leaves *leaves, size_t most);
/* Notes leaf number `leaf`. Threads: any. Errors: SL_ENOSPC, SL_EIO. */
sl_status sl_leaf_note_write(sl_work *work, size_t leaf, const sl_leaf_note *note);
/* Takes the next leaf's note, if there is one that fits `leaves`. *leaf gets its number. A note that does not fit ends
 * the notes. `most`: what a member finds at most. */
int sl_leaf_note_read(sl_work *work, const sl_leaves *leaves, size_t most, size_t *leaf, sl_leaf_note *note);

#endif
