/* The parts of an index in a file: names and bytes. */
#ifndef CLI_INSPECT_INDEX_PARTS_H
#define CLI_INSPECT_INDEX_PARTS_H

#include <shortlist.h>

enum { INDEX_PARTS = 8 };

/* A part: its name for people; its key, "bytes_codes", in JSON; its bytes. */
typedef struct index_part {
    const char *title, *key;
    uint64_t bytes;
} index_part;

void list_index_parts(const sl_index_stats *stats, index_part parts[INDEX_PARTS]);

#endif
