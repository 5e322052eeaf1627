/* An index's file, described as a header and a list of sections that point into the index. A save writes the file from
 * the description. Plans and statistics take sizes from it. */
#ifndef SL_HNSW_INDEX_DESCRIBE_H
#define SL_HNSW_INDEX_DESCRIBE_H

#include "hnsw/graph/publish.h"
#include "storage/store.h"

/* The parts that may differ between the file and the index in memory. */
typedef struct sl_described_as {
    sl_layout layout;
    uint32_t id_width; /* bytes of an id in the file: 0, 4 or 8 */
    /* Arrays that a save made. An entry with memory replaces the index's own array. */
    sl_array made[SL_ARRAY_KINDS];
    void *window; /* see sl_split_rows; NULL if no file is written */
} sl_described_as;

/* Sections that the writer puts together from rows: records, or all arrays of an index that lies in records. */
#define SL_DESCRIBED_ROWS 8u
static_assert(SL_DESCRIBED_ROWS >= SL_MAX_PARTS, "SL_DESCRIBED_ROWS");

typedef struct sl_description {
    sl_file_header header; /* the index's own fields; the store fills in the others */
    sl_section_source sections[SL_MAX_SECTIONS];
    size_t count;
    sl_split_rows rows[SL_DESCRIBED_ROWS];
    size_t row_count;
} sl_description;

/* Describes the smallest file of the index, which can't be written in place. */
void sl_describe(const sl_graph *graph, const sl_described_as *as, sl_description *out);
/* Describes that file in the index's own layout and width of ids. The description is for sizes alone; nothing must be
 * written from it. */
void sl_describe_own(const sl_graph *graph, sl_description *out);
/* Describes a file with room, to be written in place, with ids of 64 bits and checksums.
 * Parameters: `live` has SL_LIVE_SIZE bytes. */
void sl_describe_writable(const sl_graph *graph, sl_extent room, const sl_described_as *as, const uint8_t *live,
                          sl_description *out);

/* Bytes of an id in the smallest file: 0 if ids are node numbers, 4 if they fit, else 8. */
uint32_t sl_file_id_width(const sl_graph *graph);

/* Room for n vectors. The upper layers get so much room that it lasts until the n vectors are there. */
sl_extent sl_room_for(const sl_graph *graph, size_t n);

/* Add a section's bytes to the member of sl_index_stats or sl_plan that counts them. */
void sl_count_in_stats(const sl_section_source *section, sl_index_stats *stats);
void sl_count_in_plan(const sl_section_source *section, sl_plan *plan);

#endif
