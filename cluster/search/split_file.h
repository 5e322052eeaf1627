/* The routing file of a split, DIR/routing.sls: the parts of a set, and which of them a query asks. The parts are index
 * files beside it, DIR/part-R.sl. docs/FORMAT.md describes the bytes. */
#ifndef SL_CLUSTER_SEARCH_SPLIT_FILE_H
#define SL_CLUSTER_SEARCH_SPLIT_FILE_H

#include "base/memory.h"
#include "base/status.h"
#include "cluster/search/cells.h"

#include <assert.h>

#define SL_SPLIT_MAX_PARTS   1024u
#define SL_SPLIT_MAX_REACHES 64u
/* Bytes of a path inside a split at most. */
#define SL_SPLIT_PATH 4096

/* Slices: rows in their order; every query asks every part. Neighbourhoods: near cells in one part; a query asks the
 * parts of its nearest cells. */
typedef enum sl_split_kind { SL_SPLIT_SLICES = 0, SL_SPLIT_NEIGHBOURHOODS = 1 } sl_split_kind;

/* Section SPLIT_FACTS. */
typedef struct sl_split_facts {
    uint64_t n;      /* vectors of the base, each counted once */
    uint64_t stored; /* vectors in all parts together */
    uint32_t kind, metric, dtype, dim;
    uint32_t parts, groups, cells; /* no groups and cells in slices */
    uint32_t opened;               /* see sl_opening */
    float gap;
    uint32_t bound_after; /* candidates that a further part expands whatever they score */
    uint32_t reaches;
    uint32_t reserved; /* 0 */
} sl_split_facts;

/* Entry of section SPLIT_PARTS: what tells the part's file from that of another split. */
typedef struct sl_split_part {
    uint64_t n, file_size;
    uint32_t header_crc; /* checksum of the file's header page, which has the checksums of its sections */
    uint32_t reserved;
} sl_split_part;

/* Entry of section SPLIT_REACHES, by rising share: parts within this reach (sl_reach_found) hold this share of the true
 * neighbours. */
typedef struct sl_split_reach {
    double share;
    float reach;
    float asked; /* parts asked per query, on average */
} sl_split_reach;

static_assert(sizeof(sl_split_facts) == 64, "sl_split_facts");
static_assert(sizeof(sl_split_part) == 24, "sl_split_part");
static_assert(sizeof(sl_split_reach) == 16, "sl_split_reach");

typedef struct sl_split {
    sl_allocator allocator;
    sl_split_facts facts;
    sl_split_part *parts;
    sl_cells cells; /* of neighbourhoods; else empty */
    sl_split_reach reaches[SL_SPLIT_MAX_REACHES];
    uint32_t header_crc; /* of the file's header page, which has the checksums of its sections; 0: not from a file */
} sl_split;

/* The reach of a further part once the first has answered: the distance of the border as a share of the distance of
 * the k-th result, less for results that the further part holds too. They lie at its border.
 * Parameters:
 *   border   sl_route.reach
 *   score    of the k-th result, or of the last one
 *   copies   share of the results that the further part holds too */
float sl_reach_found(sl_metric metric, float border, float score, float copies);

/* Makes reaches of the borders of a query's routes but the first, from what the first part found.
 * Parameters:
 *   others   of each of the `found` results: the other part that holds it, or a number above all parts
 *   score    of the k-th result, or of the last one */
void sl_reaches_adjust(sl_metric metric, const uint16_t *others, size_t found, float score, sl_route *routes,
                       size_t count);

/* How a query opens groups. */
static inline sl_opening sl_split_opening(const sl_split *split) {
    return (sl_opening){.least = split->facts.opened, .gap = split->facts.gap};
}

/* Writes the routing file of the folder, as sl_store_save does. Errors: SL_EVALUE (sl_split_read would refuse the
 * cells), SL_EIO, SL_ENOSPC, SL_EBUSY. */
sl_status sl_split_save(const sl_split *split, const char *folder);

/* Reads and checks the routing file of a folder. The caller frees, also on failure. Errors: SL_EIO (there is none),
 * SL_EFORMAT, SL_EVERSION, SL_ECORRUPT, SL_ENOMEM. */
sl_status sl_split_read(const char *folder, const sl_allocator *allocator, sl_split *out);
void sl_split_free(sl_split *split);

/* Writes the path of a part's file, or of the routing file. Errors: SL_EINVAL (the folder's name is too long). */
sl_status sl_split_part_path(const char *folder, size_t part, char path[SL_SPLIT_PATH]);
sl_status sl_split_routing_path(const char *folder, char path[SL_SPLIT_PATH]);

/* Reads what tells a part's file from others. Errors: of opening an index. */
sl_status sl_split_identify(const char *path, sl_split_part *out);

/* Returns the smallest known reach whose parts hold this share of the true neighbours; INFINITY if none does. */
float sl_split_reach_of(const sl_split *split, double share);

#endif
