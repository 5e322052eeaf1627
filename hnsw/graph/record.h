/* Records: a node's codes, id, checksum and links side by side in a file, in a multiple of 256 bytes that begins at
 * one. A medium that is read in blocks of that size is asked once for all that a walk or a re-ranking needs of a node.
 * In memory, and in files with the layout of arrays, each part has an array of its own. */
#ifndef SL_HNSW_GRAPH_RECORD_H
#define SL_HNSW_GRAPH_RECORD_H

#include "hnsw/graph/index.h"

/* Bytes that persistent memory reads and writes at a time. Disks read a multiple of them. */
#define SL_RECORD_BLOCK 256u

/* Where the parts of the index's nodes would lie in records. The row at the beginning holds the finest codes: of I4
 * codes without coarse rows the rest. The 4 bits, which walks read, then stay in an array of their own. */
sl_record sl_record_of(const sl_graph *graph);

/* Whether an array is a part of the records of a file that has records. */
int sl_record_holds(const sl_graph *graph, sl_array_kind kind);

/* The index's parts are from here on those of the records at base. */
void sl_record_adopt(sl_graph *graph, const sl_record *record, uint8_t *base);

/* The parts as they lie, for a section of records. `made` has SL_ARRAY_KINDS entries; one with memory stands for the
 * index's own array. Returns how many parts there are. */
size_t sl_record_parts(const sl_graph *graph, const sl_record *record, const sl_array *made,
                       sl_part parts[SL_MAX_PARTS]);

#endif
