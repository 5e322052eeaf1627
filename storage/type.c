#include "storage/store.h"

#define KIND(name) (UINT64_C(1) << SL_SECTION_##name)

const sl_file_type sl_index_file = {
    .magic = "SHORTLST",
    .name = "an index",
    .version = 1,
    .known_kinds = KIND(CODES) | KIND(LINKS) | KIND(IDS) | KIND(UPPER_NODES) | KIND(UPPER_START) | KIND(UPPER_LINKS) |
                   KIND(REFINE) | KIND(REST) | KIND(TUNED) | KIND(COARSE) | KIND(PROJECTION) | KIND(PARTITION_STARTS) |
                   KIND(PARTITION_ROWS) | KIND(DEAD) | KIND(LIVE) | KIND(SUMS) | KIND(RECORDS) | KIND(GROUP_STARTS) |
                   KIND(GROUP_ROWS) | KIND(PARTITION_BANDS) | KIND(PAGE_SUMS) | KIND(TAGS) | KIND(KEYS) | KIND(MULTI) |
                   KIND(LIFETIMES),
    .fields_end = offsetof(sl_file_header, reserved),
};

const sl_file_type sl_ranker_file = {
    .magic = "SLRANKER",
    .name = "a ranker model",
    .version = 1,
    .known_kinds = KIND(SPEC) | KIND(FEATURES) | KIND(WIDE) | KIND(EMBEDDINGS) | KIND(DENSE) | KIND(TRAINER) |
                   KIND(TABLE_CODES) | KIND(TABLE_ROWS) | KIND(LAYERS) | KIND(RANGES),
    .fields_end = SL_HEADER_COMMON,
};

/* A zero fills this magic to 8 bytes. */
const sl_file_type sl_items_file = {
    .magic = "SLITEMS",
    .name = "an item table",
    .version = 1,
    .known_kinds = KIND(DIRECTORY) | KIND(ITEM_IDS) | KIND(COLUMNS) | KIND(TEXT),
    .fields_end = SL_HEADER_COMMON,
};

/* A zero fills this magic to 8 bytes. */
const sl_file_type sl_split_file = {
    .magic = "SLSPLIT",
    .name = "the routing file of a split",
    .version = 1,
    .known_kinds = KIND(SPLIT_FACTS) | KIND(SPLIT_PARTS) | KIND(SPLIT_STARTS) | KIND(SPLIT_CELLS) | KIND(SPLIT_GROUPS) |
                   KIND(SPLIT_REACHES),
    .fields_end = SL_HEADER_COMMON,
};

static const char *const section_names[] = {
    [SL_SECTION_CODES] = "codes of the vectors",
    [SL_SECTION_LINKS] = "links of layer 0",
    [SL_SECTION_IDS] = "ids of the vectors",
    [SL_SECTION_UPPER_NODES] = "nodes of the upper layers",
    [SL_SECTION_UPPER_START] = "first rows of the upper layers",
    [SL_SECTION_UPPER_LINKS] = "links of the upper layers",
    [SL_SECTION_REFINE] = "finer data of the vectors",
    [SL_SECTION_REST] = "rest of the 4-bit codes",
    [SL_SECTION_TUNED] = "tuned settings",
    [SL_SECTION_COARSE] = "4-bit rows to walk on",
    [SL_SECTION_PROJECTION] = "projection of the 4-bit rows",
    [SL_SECTION_PARTITION_STARTS] = "first nodes of the partitions",
    [SL_SECTION_PARTITION_ROWS] = "centroids of the partitions",
    [SL_SECTION_DEAD] = "marks of deleted vectors",
    [SL_SECTION_LIVE] = "superblocks and head page",
    [SL_SECTION_PARTITION_BANDS] = "bands of the partitions",
    [SL_SECTION_PAGE_SUMS] = "checksums of the pages",
    [SL_SECTION_SUMS] = "checksums of the vectors",
    [SL_SECTION_RECORDS] = "records of the vectors",
    [SL_SECTION_GROUP_STARTS] = "first partitions of the groups",
    [SL_SECTION_GROUP_ROWS] = "centroids of the groups",
    [SL_SECTION_TAGS] = "tags of the vectors",
    [SL_SECTION_KEYS] = "keys of the vectors",
    [SL_SECTION_MULTI] = "several vectors an id",
    [SL_SECTION_LIFETIMES] = "lives of the vectors",
    [SL_SECTION_SPEC] = "spec",
    [SL_SECTION_FEATURES] = "fitted features",
    [SL_SECTION_WIDE] = "weights of the wide part",
    [SL_SECTION_EMBEDDINGS] = "embeddings",
    [SL_SECTION_DENSE] = "weights of the deep part",
    [SL_SECTION_TRAINER] = "state of the training",
    [SL_SECTION_TABLE_CODES] = "codings of the embedding tables",
    [SL_SECTION_TABLE_ROWS] = "coded embeddings",
    [SL_SECTION_LAYERS] = "layers in codes",
    [SL_SECTION_RANGES] = "ranges of the training",
    [SL_SECTION_DIRECTORY] = "directory of the columns",
    [SL_SECTION_ITEM_IDS] = "ids of the items",
    [SL_SECTION_COLUMNS] = "values of the columns",
    [SL_SECTION_TEXT] = "texts of the columns",
    [SL_SECTION_SPLIT_FACTS] = "facts of the split",
    [SL_SECTION_SPLIT_PARTS] = "parts of the split",
    [SL_SECTION_SPLIT_STARTS] = "first groups and cells",
    [SL_SECTION_SPLIT_CELLS] = "centres of the cells",
    [SL_SECTION_SPLIT_GROUPS] = "centres of the groups",
    [SL_SECTION_SPLIT_REACHES] = "reaches by recall",
};

const char *sl_section_name(uint32_t kind) {
    const char *name = kind < sizeof section_names / sizeof *section_names ? section_names[kind] : NULL;
    return name ? name : "of a kind that this library does not know";
}
