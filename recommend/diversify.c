#include "base/id_hash.h"
#include "recommend/recommender.h"

#include <string.h>

/* Finds the entry of a group. Groups are hashes made elsewhere, so they are hashed again here. */
static sl_group_count *count_of(sl_group_count *counts, size_t room, uint64_t group) {
    size_t at = (size_t)sl_id_hash(sl_id_seed(), group) & (room - 1);
    while (counts[at].count && counts[at].group != group)
        at = (at + 1) & (room - 1);
    return &counts[at];
}

size_t sl_diversify(sl_top_entry *entries, size_t count, size_t n, size_t most, const sl_candidate *candidates,
                    sl_group_count *counts, size_t room) {
    size_t kept = 0;
    memset(counts, 0, room * sizeof *counts);
    for (size_t i = 0; i < count && kept < n; i++) {
        const sl_candidate *candidate = &candidates[entries[i].id];
        uint64_t group = candidate->part->marks[candidate->row].group;
        if (group) {
            sl_group_count *of_group = count_of(counts, room, group);
            if (of_group->count == most) continue;
            /* Only kept entries count, so the table has at most n groups. */
            of_group->group = group;
            of_group->count++;
        }
        entries[kept++] = entries[i];
    }
    return kept;
}
