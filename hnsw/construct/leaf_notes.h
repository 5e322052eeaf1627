/* Notes in a work file: the leaves, and what comparing each leaf gave. An interrupted build goes on from its notes. */
#ifndef SL_HNSW_CONSTRUCT_LEAF_NOTES_H
#define SL_HNSW_CONSTRUCT_LEAF_NOTES_H

#include "hnsw/construct/leaves.h"
#include "storage/work.h"

/* Begins reading the work file's notes if they are of the same rows and parameters. Otherwise drops them and starts new
 * ones. `width`: of the neighbour lists. Errors: SL_EINVAL if a save has removed the file; SL_ENOSPC, SL_EIO. */
sl_status sl_leaf_notes_begin(sl_work *work, const sl_points *points, size_t fan_out, size_t width);

/* Reads leaves from the notes. Returns 0 if the notes have no leaves that fit these points. The leaves are then empty,
 * and the call has dropped all notes. */
int sl_leaf_notes_read(sl_work *work, sl_leaves *leaves);
/* Writes the leaves as notes. Errors: SL_ENOSPC, SL_EIO. */
sl_status sl_leaf_notes_write(sl_work *work, const sl_leaves *leaves);

/* The top-k of each point of one leaf. For each point there is a word with a count, then one word for each of that many
 * targets. The upper half of such a word is the rank of a score (sl_neighbour_rank). The lower half is the complement
 * of the target's place in the leaf. */
typedef struct sl_leaf_note {
    uint64_t *words;
    size_t count, room;
} sl_leaf_note;
/* Words of the largest note, if a point's top-k has up to `most` targets. Under IP a leaf may have more than
 * SL_MAX_LEAF_POINTS points. Such a leaf gets no note. A build that goes on compares it again. */
size_t sl_leaf_note_room(const sl_leaves *leaves, size_t most);
/* Writes the note of leaf number `leaf`. Threads: any. Errors: SL_ENOSPC, SL_EIO. */
sl_status sl_leaf_note_write(sl_work *work, size_t leaf, const sl_leaf_note *note);
/* Reads the next leaf's note into `note`, and the number of its leaf into *leaf. Returns 0 if none is left. If the next
 * note doesn't fit `leaves`, the call drops it and all notes behind it, and returns 0. `most`: the most targets of a
 * point's top-k. */
int sl_leaf_note_read(sl_work *work, const sl_leaves *leaves, size_t most, size_t *leaf, sl_leaf_note *note);

#endif
