#include "storage/store.h"

#define KIND(name) (1u << SL_SECTION_##name)

const sl_file_type sl_index_file = {
    .magic = "SHORTLST",
    .name = "an index",
    .version = 1,
    .known_kinds = KIND(CODES) | KIND(LINKS) | KIND(IDS) | KIND(UPPER_NODES) | KIND(UPPER_START) | KIND(UPPER_LINKS) |
                   KIND(REFINE) | KIND(REST) | KIND(TUNED) | KIND(COARSE) | KIND(PROJECTION) | KIND(PARTITION_STARTS) |
                   KIND(PARTITION_ROWS) | KIND(DEAD) | KIND(LIVE) | KIND(SUMS) | KIND(RECORDS) | KIND(GROUP_STARTS) |
                   KIND(GROUP_ROWS) | KIND(PARTITION_BANDS) | KIND(PAGE_SUMS),
    .fields_end = offsetof(sl_file_header, reserved),
};

const sl_file_type sl_ranker_file = {
    .magic = "SLRANKER",
    .name = "a ranker model",
    .version = 1,
    .known_kinds = KIND(SPEC) | KIND(FEATURES) | KIND(WIDE) | KIND(EMBEDDINGS) | KIND(DENSE) | KIND(TRAINER),
    .fields_end = SL_HEADER_COMMON,
};

/* Its magic fills the 8 bytes with a zero. */
const sl_file_type sl_items_file = {
    .magic = "SLITEMS",
    .name = "an item table",
    .version = 1,
    .known_kinds = KIND(DIRECTORY) | KIND(ITEM_IDS) | KIND(COLUMNS) | KIND(TEXT),
    .fields_end = SL_HEADER_COMMON,
};
