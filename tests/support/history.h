/* Histories of operations on one register per id, and whether they are linearizable: whether each operation could have
 * happened at one moment between its begin and its end. An index is linearizable if the history of each id is (Herlihy
 * and Wing, Linearizability, ACM TOPLAS 12(3), 1990: locality). */
#ifndef SL_TESTS_HISTORY_H
#define SL_TESTS_HISTORY_H

#include <stddef.h>
#include <stdint.h>

/* An id has no vector at first. */
typedef enum history_kind {
    HISTORY_ADD,      /* sets the version; refused: there is one already */
    HISTORY_REPLACE,  /* sets the version */
    HISTORY_DELETE,   /* refused: there is none */
    HISTORY_UNDELETE, /* brings the version of the last delete back; refused, version 1: there is one; 0: its memory is
                         used again */
    HISTORY_READ,     /* finds this version, or 0: none */
    HISTORY_WALK,     /* the same by a walk, which may miss the version that is there, and then finds 0 */
    HISTORY_CONTAINS  /* finds any version, or 0: none */
} history_kind;

typedef struct history_op {
    uint64_t begun, ended; /* of one count that all threads raise */
    uint32_t id;
    uint32_t version; /* above 0 if written */
    history_kind kind;
    int refused;
} history_op;

/* Returns an operation whose result no order of the operations explains, or NULL: the history is linearizable. Puts the
 * history in the order of ids and begins. At most 64 operations of an id run at any moment. */
const history_op *history_fault(history_op *ops, size_t count);

/* Counts the walks that missed a version that was there, up to `most` + 1, and takes them out of the history. *count
 * becomes the number of the other operations. Call it for a linearizable history without the walks that found 0. */
size_t history_missed(history_op *ops, size_t *count, size_t most);

/* Writes an operation to out, and returns it. */
const char *history_text(const history_op *op, char *out, size_t size);

#endif
