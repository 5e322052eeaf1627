#include "base/key_counts.h"
#include "recommend/recommender.h"

size_t sl_diversify(sl_top_entry *entries, size_t count, size_t n, size_t most, const sl_candidate *candidates,
                    void *scratch) {
    size_t kept = 0;
    sl_key_counts groups;
    sl_key_counts_start(&groups, scratch, sl_key_counts_places(n));
    for (size_t i = 0; i < count && kept < n; i++) {
        const sl_candidate *candidate = &candidates[entries[i].id];
        uint64_t group = candidate->part->marks[candidate->row].group;
        if (group) {
            size_t *of_group = sl_key_counts_of(&groups, group);
            if (*of_group == most) continue;
            /* Only kept entries are counted, so the table has at most n groups. */
            ++*of_group;
        }
        entries[kept++] = entries[i];
    }
    return kept;
}
