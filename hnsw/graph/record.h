/* Records: a node's codes, id, checksum and links side by side in a file, a multiple of 256 bytes that begins at one,
 * so that a medium that is read in blocks as large is asked once for all that a walk or a re-ranking needs of a node.
 * In memory, and in files that are read from it, the same parts lie in arrays of their own. */
#ifndef SL_HNSW_GRAPH_RECORD_H
#define SL_HNSW_GRAPH_RECORD_H

#include "hnsw/graph/index.h"

/* What persistent memory reads and writes at a time, and a part of what disks do. */
#define SL_RECORD_BLOCK 256u

/* Parts of a record, in the order of their numbers. */
enum { SL_RECORD_ROW, SL_RECORD_ID, SL_RECORD_SUM, SL_RECORD_LINKS, SL_RECORD_PARTS };

/* Where the parts of the index's nodes would lie in records. Of I4 codes that have no others beside them the row is
 * what 4 bits leave over: the 4 bits, which walks read, stay in an array of their own. */
sl_record sl_record_of(const sl_index *index);

/* Whether a section of this kind is in the records, where there are any, and has no array of its own. */
int sl_record_holds(const sl_index *index, sl_section_kind kind);

/* Gives the index the rows at base that records hold, as an array or in records. */
void sl_record_set_rows(sl_index *index, uint8_t *base);

/* From here on the index's parts are those of the records at base. */
void sl_record_adopt(sl_index *index, const sl_record *record, uint8_t *base);

/* The parts of an index as they lie now, for a section of records: `ids` whole ones and `sums` where the index has not
 * both as records need them, else NULL. */
void sl_record_parts(const sl_index *index, const sl_record *record, const uint64_t *ids, const uint32_t *sums,
                     sl_part parts[SL_RECORD_PARTS]);

#endif
