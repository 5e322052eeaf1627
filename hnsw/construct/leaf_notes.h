/* Notes of leaves and of their comparisons in a work file. An interrupted build goes on from its notes. */
#ifndef SL_HNSW_CONSTRUCT_LEAF_NOTES_H
#define SL_HNSW_CONSTRUCT_LEAF_NOTES_H

#include "hnsw/construct/leaves.h"
#include "storage/work.h"

/* Opens the notes of the same rows and parameters, or starts new ones. */
sl_status sl_leaf_notes_begin(sl_work *work, const sl_points *points, size_t fan_out, size_t width);

/* Reads leaves from the notes. Returns 0 if no notes fit; the leaves are then empty and the notes start anew. */
int sl_leaf_notes_read(sl_work *work, sl_leaves *leaves);
/* Notes leaves. Errors: SL_ENOSPC, SL_EIO. */
sl_status sl_leaf_notes_write(sl_work *work, const sl_leaves *leaves);

/* The top-k of one leaf's points. Each point has a word with a count, followed by that many words. A word holds a
 * score's rank (sl_neighbour_rank) in its upper half. The lower half is the complement of a target's place in the
 * leaf. */
typedef struct sl_leaf_note {
    uint64_t *words;
    size_t count, room;
} sl_leaf_note;
/* Words of the largest note, if a point has up to `most` results. Under IP a leaf may have more than SL_MAX_LEAF_POINTS
 * points. Such a leaf isn't noted but compared again. */
size_t sl_leaf_note_room(const sl_leaves *leaves, size_t most);
/* Notes leaf number `leaf`. Threads: any. Errors: SL_ENOSPC, SL_EIO. */
sl_status sl_leaf_note_write(sl_work *work, size_t leaf, const sl_leaf_note *note);
/* Reads the next note of a leaf, and its number into *leaf. Returns 0 at the end of the notes. A note that doesn't fit
 * `leaves` ends them. `most`: results of a point at most. */
int sl_leaf_note_read(sl_work *work, const sl_leaves *leaves, size_t most, size_t *leaf, sl_leaf_note *note);

#endif
