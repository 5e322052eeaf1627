/*
 * The index in memory: arrays and nothing else. A node is its number, an offset into every array of layer 0; the few
 * per cent of nodes that stand on upper layers also have a slot, their number among those, and upper links name
 * slots. The same arrays are the sections of the file, so that opening one is pointing into it.
 */
#ifndef SL_HNSW_GRAPH_INDEX_H
#define SL_HNSW_GRAPH_INDEX_H

#include "base/numa.h"
#include "base/prefetch.h"
#include "distance/codec/coarse.h"
#include "distance/codec/quantise.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/partition.h"
#include "storage/origin.h"
#include "storage/writable.h"

#define SL_MAX_LEVEL 63u

typedef struct sl_upper {
    uint32_t *nodes; /* slot -> node; count entries */
    uint32_t *start; /* slot -> its first row of links; count + 1 entries. Row start + level - 1 is the level's */
    uint32_t *links; /* rows of m slots, filled with SL_NONE */
    size_t count, rows;
    size_t nodes_capacity, start_capacity, rows_capacity; /* of the three arrays, when they are the index's own */
} sl_upper;

/* id -> node, made when it is first needed: open addressing over the index's own ids. */
typedef struct sl_id_map {
    uint32_t *slots; /* node, or SL_NONE; a power of two of them */
    size_t size;
    size_t nodes; /* that are in it, the first so many */
    sl_spin lock; /* of its making: readers may be the first to need it */
} sl_id_map;

/* search/settings.h */
typedef struct sl_tuned_record sl_tuned_record;

typedef struct sl_searcher_pool sl_searcher_pool; /* search/searcher_pool.h */
typedef struct sl_replicas sl_replicas;           /* place/replicas.h */

typedef struct sl_published sl_published; /* publish.h */

/* Where the parts of a node lie in its record, see record.h; all 0 where they lie in arrays. */
typedef struct sl_record {
    size_t pitch;                /* bytes from one record to the next */
    size_t at[SL_ARRAY_KINDS];   /* byte of the record where the part begins; 0 for the part that lies first */
    size_t size[SL_ARRAY_KINDS]; /* bytes of the part; 0: it is none */
} sl_record;
/* place/dram_copy.h */
typedef struct sl_dram_copy sl_dram_copy;
typedef struct sl_dram_filler sl_dram_filler;

/* What a reader sees of an index: its geometry, its arrays, and how much of them counts. A handle that follows a file
 * gives each search a copy of its own, brought up to date before: see sl_view_of. */
struct sl_graph {
    /* Geometry: settled when the index is made. */
    sl_allocator allocator;
    const sl_kernels *kernels;
    size_t m, m0, ef_construction;
    uint64_t seed;
    sl_place place;
    sl_codes codes; /* as asked for */
    sl_refine refine;
    sl_codec codec;        /* of the rows of layer 0, base included */
    sl_coarse coarse;      /* of the rows that walks score beside finer codes of I4; pitch 0: there are none */
    sl_codec refine_codec; /* of an I16 refine array */

    /* Arrays, and the room in them. */
    size_t capacity; /* nodes */
    sl_array arrays[SL_ARRAY_KINDS];
    sl_record record;
    sl_upper upper;
    sl_partitions partitions;
    sl_partitions groups;   /* of partitions, see partition.h */
    sl_tuned_record *tuned; /* settings that tuning stored, see settings.h; always the index's own */
    size_t tuned_count;

    /* Copies that readers take instead of the index's own. */
    sl_replicas *replicas;         /* of the upper layers, one a memory node; NULL: none */
    const sl_dram_copy *dram_copy; /* atomic: of a mapped index, once it is whole; else NULL */

    /* What of the arrays counts. */
    size_t n;          /* nodes */
    uint64_t entry;    /* atomic while building: see sl_entry */
    size_t dead_count; /* nodes that are marked as deleted */
    uint64_t next_id;  /* one above the largest id */
    sl_quant_error quant_error;
};

/* The handle: the graph, the file that it lies in, and what only writers and owners have. */
struct sl_index {
    sl_graph graph;

    /* Memory and messages. */
    sl_allocator layer0; /* of the arrays of layer 0; without a NUMA policy that of the graph */
    sl_numa *numa;       /* NULL: no policy */
    sl_numa_memory layer0_memory;
    sl_log_fn log;
    void *log_ctx;
    sl_dram_filler *filler;      /* of the copy in DRAM; NULL: there will be none */
    sl_searcher_pool *searchers; /* between batch calls, of which there may be many at once */

    /* The file. */
    sl_store *store;               /* open, with the arrays in it; NULL when these are the index's own */
    sl_origin *origin;             /* what a save over the file is held to; NULL: the index was not opened */
    const sl_published *published; /* the head page of a file that another process may write; else NULL */

    /* What may change beside readers. */
    sl_id_map id_map;
    sl_spin settling;  /* held while reachability is proved */
    size_t unverified; /* nodes added since reachability was last proved */

    /* The writer's. */
    sl_writable *writer; /* of a file that is written in place: what was touched, and the log; else NULL */
    size_t ordered;      /* nodes when they were last numbered anew */
    size_t threads;      /* that the last add was asked to use */
};

/* The codec of the rows that walks score. */
static inline const sl_codec *sl_codec_of_walks(const sl_graph *graph) {
    return graph->coarse.codec.rows.pitch ? &graph->coarse.codec : &graph->codec;
}

/* The entry point in one word, so that a thread reads its place and level together: level in the upper half; below
 * it the slot, or the node itself where no node is above layer 0. */
typedef struct sl_entry {
    uint32_t level;
    uint32_t slot; /* SL_NONE on level 0 */
    uint32_t node;
} sl_entry;

sl_entry sl_entry_get(const sl_graph *graph);
/* The same read by way of a copy of the upper layers. */
sl_entry sl_entry_in(const sl_graph *graph, const sl_upper *upper);
void sl_entry_set(sl_index *index, uint32_t level, uint32_t slot_or_node);

/* One layer as the walk sees it: on layer 0 ids are nodes, above it slots. */
typedef struct sl_layer {
    const sl_graph *graph;
    const sl_upper *upper; /* the index's, or a copy of it */
    uint32_t level;
    size_t degree; /* words of a link row */
    size_t count;  /* ids are below it */
} sl_layer;

static inline sl_layer sl_layer_in(const sl_graph *graph, const sl_upper *upper, uint32_t level) {
    return level ? (sl_layer){graph, upper, level, graph->m, upper->count}
                 : (sl_layer){graph, upper, 0, graph->m0, graph->n};
}
static inline sl_layer sl_layer_at(const sl_graph *graph, uint32_t level) {
    return sl_layer_in(graph, &graph->upper, level);
}

/* Whether nodes have such rows. */
static inline int sl_has(const sl_graph *graph, sl_array_kind kind) {
    return graph->arrays[kind].width != 0;
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

/* The link row of an id, or NULL where a damaged file says that the id is not on this layer. */
static inline uint32_t *sl_layer_links(const sl_layer *layer, uint32_t id) {
    const sl_graph *graph = layer->graph;
    if (layer->level == 0) return sl_links(graph, id);
    const sl_upper *upper = layer->upper;
    size_t row = (size_t)upper->start[id] + layer->level - 1;
    if (row >= upper->start[id + 1] || row >= upper->rows) return NULL;
    return upper->links + row * graph->m;
}

/* After [at, at + size) of one of the index's arrays was written to: of one that is written in place, so that the next
 * sync makes it durable. From any number of threads. */
static inline void sl_index_touch(const sl_index *index, const void *at, size_t size) {
    if (index->writer) sl_writable_touch(index->writer, at, size);
}

/* The same of `size` bytes each of n nodes, `step` bytes from one's to the next's. */
static inline void sl_index_touch_each(const sl_index *index, const void *at, size_t step, size_t size, size_t n) {
    if (n) sl_index_touch(index, at, (n - 1) * step + size);
}

/* What was told of is durable, in persistent memory, before what this thread writes from here on. */
static inline void sl_index_fence(const sl_index *index) {
    if (index->writer) sl_writable_fence(index->writer);
}

/* Whether each word that is written must leave the index sound. */
static inline int sl_index_is_direct(const sl_index *index) {
    return index->writer && index->writer->direct;
}

/* Links are words that several threads of a build read and write without waiting. Any mixture of old and new words is
 * a valid list, so relaxed order is enough. */
static inline uint32_t sl_link_load(const uint32_t *link) {
    return __atomic_load_n(link, __ATOMIC_RELAXED);
}
static inline void sl_link_store(uint32_t *link, uint32_t id) {
    __atomic_store_n(link, id, __ATOMIC_RELAXED);
}

/* The links of a list that are ids of the layer, in their order, into out, which has room for `degree`; how many.
 * SL_NONE alone ends a list. An id out of range is passed over: a reader meets some while a sync is being written to
 * the file, and a damaged file may hold any. */
static inline size_t sl_links_known(const sl_layer *layer, const uint32_t *links, uint32_t *out) {
    size_t known = 0;
    for (size_t i = 0; i < layer->degree; i++) {
        uint32_t id = sl_link_load(links + i);
        if (id == SL_NONE) break;
        if (id < layer->count) out[known++] = id;
    }
    return known;
}

static inline uint8_t *sl_row(const sl_graph *graph, uint32_t node) {
    return sl_array_row(graph, SL_ARRAY_CODES, node);
}

static inline uint8_t *sl_walk_row(const sl_graph *graph, uint32_t node) {
    return sl_array_row(graph, sl_has(graph, SL_ARRAY_COARSE) ? SL_ARRAY_COARSE : SL_ARRAY_CODES, node);
}

static inline uint8_t *sl_rest_row(const sl_graph *graph, uint32_t node) {
    return sl_array_row(graph, SL_ARRAY_REST, node);
}

/* Of an index with a refine tier: a node's row there, and what one unit of its elements stands for. */
static inline const uint8_t *sl_refine_row(const sl_graph *graph, uint32_t node) {
    return sl_array_row(graph, SL_ARRAY_REFINE, node);
}
static inline float sl_refine_scale(const sl_graph *graph, const uint8_t *row) {
    return graph->refine == SL_REFINE_I16 ? *(const float *)(row + graph->refine_codec.rows.factor) : 1;
}
static inline void sl_refine_prefetch(const sl_graph *graph, uint32_t node) {
    sl_prefetch(sl_refine_row(graph, node), graph->arrays[SL_ARRAY_REFINE].width);
}

static inline uint32_t *sl_sum_at(const sl_graph *graph, size_t node) {
    return (uint32_t *)(void *)sl_array_row(graph, SL_ARRAY_SUMS, node);
}

/* Where a node's id is kept, of an index that keeps whole ids. */
static inline uint64_t *sl_id_at(const sl_graph *graph, size_t node) {
    return (uint64_t *)(void *)sl_array_row(graph, SL_ARRAY_IDS, node);
}

/* The user's id of a node. */
static inline uint64_t sl_id_of(const sl_graph *graph, uint32_t node) {
    const sl_array *ids = &graph->arrays[SL_ARRAY_IDS];
    if (ids->width == sizeof(uint64_t)) return *sl_id_at(graph, node);
    if (ids->width == sizeof(uint32_t)) return ((const uint32_t *)(const void *)ids->at)[node];
    return node;
}

static inline void sl_id_prefetch(const sl_graph *graph, uint32_t node) {
    const sl_array *ids = &graph->arrays[SL_ARRAY_IDS];
    if (ids->width) sl_prefetch(ids->at + (size_t)node * ids->step, ids->width);
}

/* Marks of deleted nodes: bit node % 64 of word node / 64, and 0 from n on. NULL before the first delete. */
static inline uint64_t *sl_dead(const sl_graph *graph) {
    return (uint64_t *)(void *)graph->arrays[SL_ARRAY_DEAD].at;
}
static inline int sl_is_marked(const uint64_t *dead, size_t node) {
    return dead[node / 64] >> (node % 64) & 1;
}

/* Whether a node is deleted: it stays in the graph, which others hang on, and is no result any more. */
static inline int sl_is_dead(const sl_graph *graph, size_t node) {
    const uint64_t *dead = sl_dead(graph);
    return dead && sl_is_marked(dead, node);
}
/* How many nodes are not. Of a damaged file more may be said to be deleted than there are. */
static inline size_t sl_undeleted_count(const sl_graph *graph) {
    return graph->dead_count < graph->n ? graph->n - graph->dead_count : 0;
}
/* deleted.c: the first node from `from` on that is not deleted; n, or more where `from` is, where there is none. */
size_t sl_next_undeleted(const sl_graph *graph, size_t from);
/* deleted.c: bytes of the marks of n nodes. */
size_t sl_dead_bytes(size_t n);
/* deleted.c: the marks of nodes from `first` on, which are zeros, are written too, so that no reader meets a hole. */
void sl_dead_extend(const sl_index *index, size_t first);
/* deleted.c: sets a node's mark, or takes it away where it is set; dead_count is the caller's to follow. The marks must
 * be there. */
void sl_dead_mark(sl_index *index, uint32_t node);
/* deleted.c: how many marks there are. */
size_t sl_dead_marks(const sl_graph *graph);
/* deleted.c: SL_ECORRUPT where the marks are not as many as dead_count, or of nodes that are not there. */
sl_status sl_dead_check(const sl_graph *graph);

/* index/lifecycle.c: an index without arrays, its geometry settled; the parameters have been read. */
sl_status sl_index_new(const sl_index_params *params, sl_index **out);
/* arrays.c: frees whatever is there; store and arrays alike. */
void sl_index_release_arrays(sl_index *index);
/* vectors.c: SL_EINVAL where rows of this type cannot lie at vectors with this stride (0: dense). */
sl_status sl_check_stride(const void *vectors, sl_dtype dtype, size_t dim, size_t stride);
/* arrays.c: SL_EREADONLY for an index mapped from its file. */
sl_status sl_index_writable(const sl_index *index);
/* codes.c: the codecs of an index for these codes. */
sl_status sl_codes_init(sl_graph *graph, const sl_index_params *params);
/* codes.c: bytes of a refine row; 0 where the index has none. */
size_t sl_refine_width(const sl_graph *graph);
/* codes.c: coarse rows for nodes [first, first + n), which have all else; the projection is learned if that is due,
 * and then all nodes get theirs anew. Nothing has changed on failure. */
sl_status sl_codes_extend(sl_index *index, size_t first, size_t n, size_t threads);

/* vectors.c: a node's vector from the refine tier, and from the codes. */
void sl_refined_floats(const sl_graph *graph, uint32_t node, float *out);
void sl_coded_floats(const sl_graph *graph, uint32_t node, float *out);
/* vectors.c: a node's vector as sl_index_get gives it, as floats or as the integers of an integer index. */
void sl_vector_of(const sl_graph *graph, uint32_t node, sl_dtype dtype, void *out);

/* upper.c: level that a node about to be added gets, from the seed and its number alone. */
uint32_t sl_level_of(const sl_graph *graph, uint32_t node);
/* upper.c: slots and link rows for nodes [first, n) that stand above layer 0. */
sl_status sl_upper_extend(sl_index *index, size_t first, size_t n);
/* upper.c: takes them away again for nodes from first on. */
void sl_upper_truncate(sl_graph *graph, size_t first);
void sl_upper_free(sl_graph *graph);
/* Some memory, and where a copy of it goes. */
typedef struct sl_copying {
    const void *from;
    void *to;
    size_t size;
} sl_copying;
#define SL_UPPER_PARTS 3u
/* upper.c: a copy of the upper layers, of which there are some, in one block of so many bytes: its arrays there, and
 * what is yet to be copied into them. */
size_t sl_upper_copy_size(const sl_graph *graph);
sl_upper sl_upper_lay_out(const sl_graph *graph, void *block, sl_copying parts[SL_UPPER_PARTS]);
/* upper.c: the slot of a node that stands above layer 0, or SL_NONE. Slots are in node order. */
uint32_t sl_slot_of(const sl_graph *graph, uint32_t node);
/* upper.c: the level a node stands on, and its slot, SL_NONE on level 0. */
uint32_t sl_level_and_slot(const sl_graph *graph, uint32_t node, uint32_t *slot);

/* ids.c: SL_OK and the node, which is not deleted, or SL_ENOTFOUND. Makes the map if there is none. */
sl_status sl_id_find(sl_index *index, uint64_t id, uint32_t *node);
/* ids.c: takes n ids for the nodes from index->n on; ids NULL goes on from next_id. SL_EEXIST names the row. An id that
 * a deleted node has is free. Nothing is changed on failure, and sl_ids_undo, with the next_id from before, undoes it.
 */
sl_status sl_ids_append(sl_index *index, const uint64_t *ids, size_t n);
void sl_ids_undo(sl_index *index, uint64_t next_id);
/* ids.c: ids of nodes have changed, or who of several has one: the map is made anew when it is next needed. */
void sl_ids_forget(sl_index *index);
/* ids.c: takes over an array of `capacity` whole ids, of which the first n are the nodes'. */
void sl_ids_adopt(sl_index *index, uint64_t *ids);
/* ids.c: nodes whose id an earlier node has, deleted ones left out: 0 unless a file is damaged. */
sl_status sl_ids_count_duplicates(const sl_graph *graph, size_t *duplicates);

#endif
