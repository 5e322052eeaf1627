/* The file of an index, as a header and sections that point into the index: for its sizes, and for a save. */
#ifndef SL_HNSW_INDEX_DESCRIBE_H
#define SL_HNSW_INDEX_DESCRIBE_H

#include "hnsw/graph/publish.h"
#include "storage/store.h"

/* How the file is to differ from the index as it lies. */
typedef struct sl_described_as {
    sl_layout layout;
    uint32_t id_width; /* bytes of an id in the file: 0, 4 or 8 */
    /* Arrays made for the time of a save, which stand for the index's own: those that have memory. */
    sl_array made[SL_ARRAY_KINDS];
    void *window; /* see sl_split_rows; NULL where nothing is going to be written */
} sl_described_as;

/* Sections whose rows lie apart: records, or every array of an index that lies in records. */
#define SL_DESCRIBED_ROWS 8u
static_assert(SL_DESCRIBED_ROWS >= SL_MAX_PARTS, "SL_DESCRIBED_ROWS");

typedef struct sl_description {
    sl_file_header header; /* without the fields that the store fills in */
    sl_section_source sections[SL_MAX_SECTIONS];
    size_t count;
    sl_split_rows rows[SL_DESCRIBED_ROWS];
    size_t row_count;
} sl_description;

/* The smallest file of the index, which cannot be written in place. */
void sl_describe(const sl_graph *graph, const sl_described_as *as, sl_description *out);
/* The same in the layout and with the ids that the index has; only for its sizes. */
void sl_describe_own(const sl_graph *graph, sl_description *out);
/* The file with room to be written in place, whole ids, checksums, and `live` of SL_LIVE_SIZE bytes. */
void sl_describe_writable(const sl_graph *graph, sl_extent room, const sl_described_as *as, const uint8_t *live,
                          sl_description *out);

/* Bytes of an id in the smallest file: 0 where ids are the nodes' numbers, 4 where they fit, else 8. */
uint32_t sl_file_id_width(const sl_graph *graph);

/* Room for n vectors, and for so many more on the upper layers than are expected that these never run out first. */
sl_extent sl_room_for(const sl_graph *graph, size_t n);

/* Adds a section's bytes to the member of sl_index_stats or sl_plan that counts them. */
void sl_count_in_stats(const sl_section_source *section, sl_index_stats *stats);
void sl_count_in_plan(const sl_section_source *section, sl_plan *plan);

#endif
