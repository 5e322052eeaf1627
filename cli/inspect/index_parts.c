#include "cli/inspect/index_parts.h"

#include <string.h>

void list_index_parts(const sl_index_stats *stats, index_part parts[INDEX_PARTS]) {
    const index_part all[INDEX_PARTS] = {
        {"codes", "bytes_codes", stats->bytes_codes},    {"links", "bytes_links", stats->bytes_links},
        {"ids", "bytes_ids", stats->bytes_ids},          {"upper layers", "bytes_upper", stats->bytes_upper},
        {"refine", "bytes_refine", stats->bytes_refine}, {"tags", "bytes_tags", stats->bytes_tags},
        {"keys", "bytes_keys", stats->bytes_keys},       {"partitions", "bytes_partitions", stats->bytes_partitions}};
    memcpy(parts, all, sizeof all);
}
