/* Records: a node's codes, id, checksum and links side by side in a file. A record begins at a multiple of 256 bytes
 * and fills whole blocks of this size. A medium with such blocks then reads all that a walk or a re-ranking needs of a
 * node at once. In memory, and in files of arrays, each part has an array of its own. */
#ifndef SL_HNSW_GRAPH_RECORD_H
#define SL_HNSW_GRAPH_RECORD_H

#include "hnsw/graph/index.h"

/* Bytes that persistent memory reads or writes at a time. A disk reads a multiple. */
#define SL_RECORD_BLOCK 256u

/* The layout of the index's records. The finest codes come first. Codes I4 without coarse rows put their rest there;
 * their 4-bit rows, which walks read, stay in an array. */
sl_record sl_record_of(const sl_graph *graph);

/* Returns whether the array is a part of records, in a file that has records. */
int sl_record_holds(const sl_graph *graph, sl_array_kind kind);

/* Points the index's arrays into the records at `base`. */
void sl_record_adopt(sl_graph *graph, const sl_record *record, uint8_t *base);

/* Lists where the parts come from, to write a section of records.
 * Parameters: `made`: NULL, or SL_ARRAY_KINDS entries; an entry with memory replaces the index's own array.
 * Returns: the number of parts. */
size_t sl_record_parts(const sl_graph *graph, const sl_record *record, const sl_array *made,
                       sl_part parts[SL_MAX_PARTS]);

#endif
