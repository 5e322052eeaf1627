/* The structs of an index, and the accessors of its rows.
 *
 * An index is a set of arrays. A node's number is its offset in every array of layer 0. A few per cent of the nodes are
 * on upper layers too. Each of these has a slot, its number among them, and links on upper layers name slots. A file's
 * sections are the same arrays, so opening a file means pointing into its mapping. */
#ifndef SL_HNSW_GRAPH_INDEX_H
#define SL_HNSW_GRAPH_INDEX_H

#include "base/numa.h"
#include "base/prefetch.h"
#include "base/share.h"
#include "distance/codec/coarse.h"
#include "distance/codec/quantise.h"
#include "storage/origin.h"
#include "storage/readers.h"
#include "storage/spill.h"
#include "storage/work.h"
#include "storage/writable.h"

#define SL_MAX_LEVEL 63u

typedef enum sl_array_kind {
#define SL_ARRAY(name, section, width, whole, slack, flags, stats, plan)           SL_ARRAY_##name,
#define SL_DERIVED(name, section, width, whole, slack, flags, stats, plan, derive) SL_ARRAY_##name,
#include "hnsw/graph/array_table.def"
#undef SL_ARRAY
#undef SL_DERIVED
    SL_ARRAY_KINDS
} sl_array_kind;

/* An array of rows: node i's row begins at at + i * step. */
typedef struct sl_array {
    uint8_t *at;  /* NULL: the array has no memory */
    size_t width; /* bytes of a row, padding included, in an array of its own; 0: the index has no such rows */
    size_t size;  /* bytes of a row where it lies; rows in records have no padding */
    size_t step;  /* width, or the pitch of a record */
} sl_array;

typedef struct sl_upper {
    uint32_t *nodes; /* slot -> node; count entries */
    uint32_t *start; /* slot -> its row of links on level 1; higher levels follow. count + 1 entries */
    uint32_t *links; /* rows of m slots, filled with SL_NONE */
    size_t count, rows;
    size_t nodes_capacity, start_capacity, rows_capacity; /* room in the three arrays that the index owns */
} sl_upper;

/* The map from id to node, by open addressing. The first look-up makes it. Read it under sl_publishing_lock. */
typedef struct sl_id_map {
    uint32_t *entries; /* node, or SL_NONE; if an id may have several vectors, the node added last */
    uint32_t *next;    /* node -> another node of the same id, or SL_NONE; NULL: no id has several vectors */
    size_t size;       /* of `entries`: a power of two; `next` has half as many */
    uint64_t seed;     /* of the ids' hash */
    size_t nodes;      /* nodes that are in the map: the first ones */
    /* These are for a handle that follows a file. */
    int follows;    /* 1: the map is that of such a handle */
    uint64_t *ids;  /* node -> its id in the map, or SL_NO_ID; size / 2 of them. The file may already have another */
    uint64_t as_of; /* the commit that the map knows */
} sl_id_map;

typedef struct sl_tuned_record sl_tuned_record;   /* tuned_record.h */
typedef struct sl_searcher_pool sl_searcher_pool; /* search/searcher_pool.h */
typedef struct sl_replicas sl_replicas;           /* place/replicas.h */
typedef struct sl_dram_copy sl_dram_copy;         /* place/dram_copy.h */
typedef struct sl_dram_filler sl_dram_filler;     /* place/dram_copy.h */
typedef struct sl_published sl_published;         /* publish.h */
typedef struct sl_versions sl_versions;           /* version.h */
typedef struct sl_reclaim sl_reclaim;             /* construct/reclaim.h */

/* Partitions of nodes; or groups, which are partitions of partitions and hold partition numbers. The arrays may lie in
 * an untrusted file: see sl_partition_nodes.
 *
 * Centroids have I8 codes of floats, or F32 if I8 does not tell neighbours of an L2 index apart. Their metric is IP for
 * a COSINE index, else L2. Groups have the same codec. Under IP a centroid is the mean direction of a partition's
 * vectors, times the length of the longest. Its row's bias is then a score, not a length: what the best vector of that
 * length likely scores above the centroid, for a query of length 1. A group's centroid comes from the group's longest
 * centroids. */
typedef struct sl_partitions {
    size_t count;       /* 0: there are none */
    uint32_t *starts;   /* count + 1 node numbers, ascending from 0. Nodes starts[p] to starts[p + 1] - 1 are partition
                           p's. Nodes from starts[count] on were added later and have no partition */
    sl_codec codec;     /* of the centroids */
    uint8_t *rows;      /* count code rows; codec.rows.base points here */
    unsigned band_bits; /* SL_BAND_BITS if there are bands, else 0 */
    uint8_t *bands;     /* SL_PARTITION_BANDS bytes per partition, falling: the length of a band's longest vector, in
                           255ths of the partition's longest, rounded up. NULL in groups, under other metrics than IP,
                           and from files without bands */
} sl_partitions;

/* When a node was added and deleted: the epochs of these changes (base/epochs.h), or in a file the commits. 0: before
 * the handle was made, or never. */
typedef struct sl_life {
    uint64_t born; /* SL_UNBORN: no search may find the node yet */
    uint64_t died;
} sl_life;
#define SL_UNBORN UINT64_MAX

/* The lives of all nodes. The tombstones say who is deleted now; lives say who was when a search began. NULL until the
 * first change that a search must tell from its own time. */
typedef struct sl_lives {
    sl_life *nodes;
    uint64_t *changed; /* of each 64 nodes, the epoch of the last change */
    size_t capacity;   /* nodes that there's room for */
    int is_filed;      /* 1: they lie in the mapping of a file */
} sl_lives;

/* The layout of a record: see record.h. All fields are 0 if each part has an array of its own. */
typedef struct sl_record {
    size_t pitch;                /* bytes from one record to the next */
    size_t at[SL_ARRAY_KINDS];   /* byte of the record at which the part begins; 0 for the first part */
    size_t size[SL_ARRAY_KINDS]; /* bytes of the part; 0: the record has no such part */
} sl_record;

/* A set of nodes, one bit each. */
typedef struct sl_node_set {
    uint64_t *bits; /* NULL: the set is empty */
    size_t capacity, count;
} sl_node_set;

/* The graph: all that a reader needs of an index. Writers change the handle's own. Readers read a version, a copy that
 * never changes: see version.h. */
typedef struct sl_graph {
    /* The geometry is fixed when the index is made. */
    sl_allocator allocator;
    const sl_kernels *kernels;
    size_t m, m0, ef_construction;
    uint64_t seed;
    sl_place place;
    sl_codes codes; /* as the user chose them */
    sl_refine refine;
    sl_codec codec;        /* the codec of layer 0's rows, with their base */
    sl_coarse coarse;      /* the codec of the coarse rows that walks read under codes I4; pitch 0: there are none */
    sl_codec refine_codec; /* the codec of refine rows in I16 */
    int has_tags, has_keys;
    int multi; /* 1: an id may have several vectors */

    /* Arrays, and the room in them. */
    size_t capacity; /* nodes that the arrays have room for */
    sl_array arrays[SL_ARRAY_KINDS];
    sl_lives lives;
    sl_record record;
    sl_upper upper;
    sl_partitions partitions;
    sl_partitions groups;   /* groups of partitions: see partition.h */
    sl_tuned_record *tuned; /* settings that tuning stored, in memory of the index: see search/settings.h */
    size_t tuned_count;

    const sl_ranks *ranks; /* the ranks that build this graph together; NULL: this process alone */
    unsigned parted;       /* one bit per kind of array: each rank has the rows of sl_share_mine(ranks, n,
                              SL_SHARED_ROWS) alone, in a sparse block */

    /* Copies, which readers prefer to the originals. */
    sl_replicas *replicas;                /* copies of the upper layers, one for each memory node; NULL: none */
    const sl_dram_copy *const *dram_copy; /* where the handle has its copy in DRAM; NULL: the graph has no handle */

    /* Counts. A version has its own. */
    uint64_t as_of;       /* the epoch in which a version began; in a file that another process may write, its commit.
                             UINT64_MAX in the handle's own graph */
    size_t n;             /* nodes */
    uint64_t entry;       /* the entry point: see entry.h. Atomic while an add runs */
    size_t deleted_count; /* tombstones that are set */
    size_t free_count;    /* those of places without a vector: see free_nodes.h */
    uint64_t next_id;     /* one above the largest id */
    uint64_t numbering;   /* how often nodes were renumbered */
    int bytes_are_coarse; /* 1: builds compare floats, because bytes don't tell these vectors apart */
    sl_quant_error quant_error;
} sl_graph;

/* The handle: the graph, its file, and the fields of owners and writers. */
struct sl_index {
    sl_graph graph;

    /* Memory and messages. */
    sl_allocator layer0; /* allocates layer 0; without a NUMA policy the same as the graph's */
    sl_numa *numa;       /* NULL: no policy */
    sl_numa_memory layer0_memory;
    sl_log_fn log;
    void *log_ctx;
    sl_spill *spill;               /* the bound on the handle's memory; NULL: none */
    sl_work *work;                 /* notes of an add that is under way; NULL: none */
    sl_dram_filler *filler;        /* the thread that fills the copy in DRAM; NULL: there is no copy */
    const sl_dram_copy *dram_copy; /* atomic: the copy of a mapped index, once it is whole; else NULL */
    sl_searcher_pool *searchers;   /* idle searchers that batch calls reuse */

    /* The file. */
    sl_store *store;   /* the open file that holds the arrays; NULL: the index owns its arrays */
    sl_origin *origin; /* what the file was at opening; a save over it compares. NULL: the index was made in memory */
    const sl_published *published; /* the head page of a file that another process may write; else NULL */
    sl_readers *readers;           /* tells that process of this handle's searches; NULL: nothing does */

    /* Fields that may change beside readers. */
    sl_versions *versions; /* what readers see of the graph */
    sl_id_map id_map;
    sl_spin settling;  /* held by the thread that proves reachability */
    size_t unverified; /* nodes whose reachability is not proved yet; 0: no proof is pending */
    int swept;         /* 1: deleted nodes began to leave, and that all others can be reached is not proved yet */
    uint64_t commit;   /* the file's last commit when it was opened; for a writer, the last one. 0: it counts none */

    /* The writer's fields. */
    sl_node_set free;        /* places without a vector, which no list names: the next adds use them */
    sl_node_set leaving;     /* deleted nodes that are being taken out of the graph: no list gets a link to them */
    sl_reclaim *reclaim;     /* the work on these; NULL: there is none */
    size_t reclaim_owed;     /* deleted nodes for which the next step of that work pays, too */
    uint64_t freed_until;    /* the last epoch of a delete whose place was freed: older deletes can't be taken back */
    uint64_t reclaim_looked; /* how far readers had moved on at the last look for nodes that can leave */
    int keeps_deleted;       /* 1: deleted nodes stay in the graph; set by tests of searches among them */
    uint64_t added;          /* vectors that adds of this handle began to link. Atomic: other threads read it */
    int has_deleted;         /* 1: the handle deleted or replaced a vector, so an id may come back with another one */
    sl_writable *writer;     /* of a file that is written in place: its touched ranges and its log; else NULL */
    sl_lives file_lives;     /* those that the writer's file has for other processes; NULL: it has none */
    size_t ordered;          /* nodes at the last renumbering */
    size_t reused;           /* vectors that came to these places since */
    size_t threads;          /* the threads parameter of the last add */
};

static inline int sl_node_set_has(const sl_node_set *set, size_t node) {
    return set->bits && node < set->capacity && (set->bits[node / 64] >> (node % 64) & 1);
}

/* The codec of the rows that walks score. */
static inline const sl_codec *sl_codec_of_walks(const sl_graph *graph) {
    return graph->coarse.codec.rows.pitch ? &graph->coarse.codec : &graph->codec;
}

/* One layer, as a walk uses it. Ids are node numbers on layer 0, and slots above. */
typedef struct sl_layer {
    const sl_graph *graph;
    const sl_upper *upper; /* the graph's own, or a copy */
    uint32_t level;
    size_t degree; /* words in a row of links */
    size_t count;  /* all ids are smaller */
} sl_layer;

static inline sl_layer sl_layer_in(const sl_graph *graph, const sl_upper *upper, uint32_t level) {
    return (sl_layer){.graph = graph,
                      .upper = upper,
                      .level = level,
                      .degree = level ? graph->m : graph->m0,
                      .count = level ? upper->count : graph->n};
}
static inline sl_layer sl_layer_at(const sl_graph *graph, uint32_t level) {
    return sl_layer_in(graph, &graph->upper, level);
}

/* Returns whether each rank has its own rows of this kind alone. */
static inline int sl_is_parted(const sl_graph *graph, sl_array_kind kind) {
    return graph->parted >> kind & 1;
}

/* Returns whether nodes have rows of this kind. */
static inline int sl_has(const sl_graph *graph, sl_array_kind kind) {
    return graph->arrays[kind].width != 0;
}

/* Returns whether two undeleted nodes may have the same id. */
static inline int sl_ids_repeat(const sl_graph *graph) {
    return graph->multi && sl_has(graph, SL_ARRAY_IDS);
}

/* A node's row of an array. */
static inline uint8_t *sl_array_row(const sl_graph *graph, sl_array_kind kind, size_t node) {
    const sl_array *array = &graph->arrays[kind];
    return array->at + node * array->step;
}

/* The links of a node on layer 0. */
static inline uint32_t *sl_links(const sl_graph *graph, size_t node) {
    return (uint32_t *)(void *)sl_array_row(graph, SL_ARRAY_LINKS, node);
}

/* The links of an id on this layer. NULL if a damaged file says that the id is not on the layer. */
static inline uint32_t *sl_layer_links(const sl_layer *layer, uint32_t id) {
    const sl_graph *graph = layer->graph;
    if (layer->level == 0) return sl_links(graph, id);
    const sl_upper *upper = layer->upper;
    size_t row = (size_t)upper->start[id] + layer->level - 1;
    if (row >= upper->start[id + 1] || row >= upper->rows) return NULL;
    return upper->links + row * graph->m;
}

/* Notes that [at, at + size) of an array was written. In a file that is written in place, the next sync makes the range
 * durable. Threads: any number. */
static inline void sl_index_touch(const sl_index *index, const void *at, size_t size) {
    if (index->writer) sl_writable_touch(index->writer, at, size);
}

/* The same for n nodes with `size` bytes each, `step` bytes apart. */
static inline void sl_index_touch_each(const sl_index *index, const void *at, size_t step, size_t size, size_t n) {
    if (n) sl_index_touch(index, at, (n - 1) * step + size);
}

/* In persistent memory, makes the noted ranges durable before any later write of this thread. */
static inline void sl_index_fence(const sl_index *index) {
    if (index->writer) sl_writable_fence(index->writer);
}

/* Returns whether the index is written in persistent memory. Each stored word must then leave the index sound. */
static inline int sl_index_is_direct(const sl_index *index) {
    return index->writer && index->writer->direct;
}

/* Threads read and write links without locks. Any mixture of old and new words is a valid list. A node has its rows
 * before a list names it, so a link is stored in release order. See SL_LINK_ORDER for the loads. */
static inline uint32_t sl_link_load(const uint32_t *link) {
    return __atomic_load_n(link, SL_LINK_ORDER);
}
static inline void sl_link_store(uint32_t *link, uint32_t id) {
    __atomic_store_n(link, id, __ATOMIC_RELEASE);
}

/* Copies a list's links to `out`, in their order. A list ends at its first SL_NONE. Ids out of range are left out: a
 * reader may see some during another process's sync, and a damaged file may hold any.
 * Parameters: `out` has room for `degree` ids. Returns: the number of ids. */
static inline size_t sl_links_known(const sl_layer *layer, const uint32_t *links, uint32_t *out) {
    size_t known = 0;
    for (size_t i = 0; i < layer->degree; i++) {
        uint32_t id = sl_link_load(links + i);
        if (id == SL_NONE) break;
        if (id < layer->count) out[known++] = id;
    }
    return known;
}

/* The row of a node's codes. */
static inline uint8_t *sl_row(const sl_graph *graph, uint32_t node) {
    return sl_array_row(graph, SL_ARRAY_CODES, node);
}

/* The row that walks score. */
static inline uint8_t *sl_walk_row(const sl_graph *graph, uint32_t node) {
    return sl_array_row(graph, sl_has(graph, SL_ARRAY_COARSE) ? SL_ARRAY_COARSE : SL_ARRAY_CODES, node);
}

static inline uint8_t *sl_rest_row(const sl_graph *graph, uint32_t node) {
    return sl_array_row(graph, SL_ARRAY_REST, node);
}

/* A node's refine row, and the value of one unit of its elements. The index must have refine rows. */
static inline const uint8_t *sl_refine_row(const sl_graph *graph, uint32_t node) {
    return sl_array_row(graph, SL_ARRAY_REFINE, node);
}
static inline float sl_refine_scale(const sl_graph *graph, const uint8_t *row) {
    return graph->refine == SL_REFINE_I16 ? *(const float *)(row + graph->refine_codec.rows.factor) : 1;
}
static inline void sl_refine_prefetch(const sl_graph *graph, uint32_t node) {
    sl_prefetch(sl_refine_row(graph, node), graph->arrays[SL_ARRAY_REFINE].width);
}

/* A node's checksum. The index must have checksums. */
static inline uint32_t *sl_checksum_at(const sl_graph *graph, size_t node) {
    return (uint32_t *)(void *)sl_array_row(graph, SL_ARRAY_CHECKSUMS, node);
}

/* Returns the address of a node's id. The ids must have 64 bits. */
static inline uint64_t *sl_id_at(const sl_graph *graph, size_t node) {
    return (uint64_t *)(void *)sl_array_row(graph, SL_ARRAY_IDS, node);
}

/* A node's id. A filter also reads those of free places, which change meanwhile. */
static inline uint64_t sl_id_of(const sl_graph *graph, uint32_t node) {
    const sl_array *ids = &graph->arrays[SL_ARRAY_IDS];
    if (ids->width == sizeof(uint64_t)) return __atomic_load_n(sl_id_at(graph, node), __ATOMIC_RELAXED);
    if (ids->width == sizeof(uint32_t))
        return __atomic_load_n((const uint32_t *)(const void *)ids->at + node, __ATOMIC_RELAXED);
    return node;
}

/* Stores a node's id. The ids must have 64 bits. */
static inline void sl_id_store(const sl_graph *graph, size_t node, uint64_t id) {
    __atomic_store_n(sl_id_at(graph, node), id, __ATOMIC_RELAXED);
}

static inline void sl_id_prefetch(const sl_graph *graph, uint32_t node) {
    const sl_array *ids = &graph->arrays[SL_ARRAY_IDS];
    if (ids->width) sl_prefetch(ids->at + (size_t)node * ids->step, ids->width);
}

/* A node's tag word and key. The index must have tags, or keys. */
static inline uint64_t sl_tag_of(const sl_graph *graph, uint32_t node) {
    return __atomic_load_n((const uint64_t *)(const void *)graph->arrays[SL_ARRAY_TAGS].at + node, __ATOMIC_RELAXED);
}
static inline uint64_t sl_key_of(const sl_graph *graph, uint32_t node) {
    return __atomic_load_n((const uint64_t *)(const void *)graph->arrays[SL_ARRAY_KEYS].at + node, __ATOMIC_RELAXED);
}

/* The tombstones of deleted nodes: bit node % 64 of word node / 64. Bits from n on are 0. NULL before the first delete.
 */
static inline uint64_t *sl_tombstones(const sl_graph *graph) {
    return (uint64_t *)(void *)graph->arrays[SL_ARRAY_TOMBSTONES].at;
}
/* Bytes of the tombstones of n nodes. */
static inline size_t sl_tombstones_bytes(size_t n) {
    return (n + 63) / 64 * sizeof(uint64_t);
}
static inline int sl_has_tombstone(const uint64_t *tombstones, size_t node) {
    return tombstones[node / 64] >> (node % 64) & 1;
}

/* Corrects a word of tombstones by the lives of its nodes, as of the graph's epoch. */
uint64_t sl_deleted_as_of(const sl_graph *graph, size_t word, uint64_t tombstones);

/* Returns which of the nodes 64 * word + bit are deleted, or not yet added, as of the graph's epoch. A writer changes
 * lives first, then `changed`, then tombstones; this reads them in the other order. */
static inline uint64_t sl_deleted_word(const sl_graph *graph, size_t word) {
    const uint64_t *tombstones = sl_tombstones(graph);
    const uint64_t set = tombstones ? __atomic_load_n(&tombstones[word], __ATOMIC_ACQUIRE) : 0;
    if (!graph->lives.changed || __atomic_load_n(&graph->lives.changed[word], __ATOMIC_ACQUIRE) <= graph->as_of)
        return set;
    return sl_deleted_as_of(graph, word, set);
}

/* Returns which of the nodes 64 * word + bit were added after an epoch. */
uint64_t sl_born_after(const sl_graph *graph, size_t word, uint64_t epoch);
static inline uint64_t sl_newer_word(const sl_graph *graph, size_t word, uint64_t epoch) {
    if (!graph->lives.changed || __atomic_load_n(&graph->lives.changed[word], __ATOMIC_ACQUIRE) <= epoch) return 0;
    return sl_born_after(graph, word, epoch);
}

/* Returns whether a node is deleted. Walks pass through a deleted node, but it is no result. */
static inline int sl_is_deleted(const sl_graph *graph, size_t node) {
    return sl_deleted_word(graph, node / 64) >> (node % 64) & 1;
}
/* The number of undeleted nodes. A damaged file may claim more tombstones than nodes. */
static inline size_t sl_undeleted_count(const sl_graph *graph) {
    return graph->deleted_count < graph->n ? graph->n - graph->deleted_count : 0;
}

/* The first undeleted node from `from` on; n if there is none, or `from` if that is larger. */
static inline size_t sl_next_undeleted(const sl_graph *graph, size_t from) {
    if (!graph->deleted_count) return from;
    while (from < graph->n) {
        uint64_t undeleted = ~sl_deleted_word(graph, from / 64) >> (from % 64);
        if (undeleted) return from + (size_t)__builtin_ctzll(undeleted);
        from = (from / 64 + 1) * 64;
    }
    return from;
}

#endif
