#include "hnsw/graph/version.h"

#include "base/thread.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/tuned_record.h"
#include "hnsw/graph/view.h"

struct sl_graph_version {
    sl_graph graph; /* first: readers have its address */
    sl_graph_version *next;
    uint64_t retired;  /* the epoch that began when another version took its place */
    size_t bytes;      /* of the version, and of what is freed with it */
    unsigned replaced; /* a bit for each kind of array that the next version has elsewhere */
    int upper_nodes_replaced, upper_start_replaced, upper_links_replaced, partitions_replaced, groups_replaced,
        tuned_replaced, lives_replaced;
};

static sl_graph_version *current_of(const sl_versions *versions) {
    return (sl_graph_version *)(void *)(uintptr_t)versions->current;
}

static sl_status make_spare(sl_index *index) {
    sl_versions *versions = index->versions;
    void *block;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, sizeof(sl_graph_version), &block));
    sl_graph_version *version = block;
    version->next = versions->spare;
    versions->spare = version;
    versions->spares++;
    return SL_OK;
}

sl_status sl_version_reserve(sl_index *index, size_t count) {
    sl_versions *versions = index->versions;
    sl_status status = SL_OK;
    sl_publishing_lock(index);
    while (versions->spares < count && status == SL_OK)
        status = make_spare(index);
    sl_publishing_unlock(index);
    return status;
}

void sl_version_unreserve(sl_index *index) {
    sl_versions *versions = index->versions;
    sl_publishing_lock(index);
    while (versions->spare) {
        sl_graph_version *version = versions->spare;
        versions->spare = version->next;
        SL_FREE(&index->graph.allocator, version);
    }
    versions->spares = 0;
    sl_publishing_unlock(index);
}

size_t sl_version_bytes(void) {
    return sizeof(sl_graph_version);
}

int sl_version_is_read(const sl_index *index) {
    return index->versions->current->n != 0;
}

static int owns_arrays(const sl_graph *graph) {
    return graph->place == SL_PLACE_DRAM;
}

/* Notes what the next version has elsewhere, or no longer. */
static void note_replaced(sl_graph_version *old, const sl_graph *now) {
    const sl_graph *was = &old->graph;
    old->replaced = 0;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        old->replaced |= (unsigned)(was->arrays[kind].at != now->arrays[kind].at) << kind;
    old->upper_nodes_replaced = was->upper.nodes != now->upper.nodes;
    old->upper_start_replaced = was->upper.start != now->upper.start;
    old->upper_links_replaced = was->upper.links != now->upper.links;
    old->partitions_replaced = was->partitions.starts != now->partitions.starts;
    old->groups_replaced = was->groups.starts != now->groups.starts;
    old->tuned_replaced = was->tuned != now->tuned;
    old->lives_replaced = was->lives.nodes != now->lives.nodes;
}

/* Frees a block, or only counts it. Returns its bytes. */
static size_t release(const sl_allocator *allocator, void *block, size_t size, int frees) {
    if (frees) sl_mem_free(allocator, block, size);
    return block ? size : 0;
}

static size_t release_upper(sl_graph_version *version, int frees) {
    const sl_allocator *allocator = &version->graph.allocator;
    const sl_upper *upper = &version->graph.upper;
    const size_t word = sizeof(uint32_t);
    size_t bytes = 0;
    if (version->upper_nodes_replaced) bytes += release(allocator, upper->nodes, upper->nodes_capacity * word, frees);
    if (version->upper_start_replaced) bytes += release(allocator, upper->start, upper->start_capacity * word, frees);
    if (version->upper_links_replaced)
        bytes += release(allocator, upper->links, upper->rows_capacity * version->graph.m * word, frees);
    return bytes;
}

static size_t release_partitions(const sl_allocator *allocator, sl_partitions *partitions, int frees) {
    const size_t bytes = sl_partitions_size(partitions);
    if (frees) sl_partitions_free(allocator, partitions);
    return bytes;
}

/* Frees what the version has alone, or only counts it. Returns its bytes. */
static size_t release_replaced(const sl_index *index, sl_graph_version *version, int frees) {
    sl_graph *graph = &version->graph;
    const sl_allocator *allocator = &graph->allocator;
    size_t bytes = 0;
    if (version->tuned_replaced)
        bytes += release(allocator, graph->tuned, graph->tuned_count * sizeof *graph->tuned, frees);
    if (version->lives_replaced) {
        bytes += sl_lives_bytes(&graph->lives);
        if (frees) sl_lives_free(&graph->lives);
    }
    if (!owns_arrays(graph)) return bytes;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (version->replaced >> kind & 1 && !(sl_array_lines[kind].flags & SL_ARRAY_FILED))
            bytes += release(sl_array_allocator(index, kind), graph->arrays[kind].at,
                             sl_array_bytes(graph, kind, graph->capacity), frees);
    bytes += release_upper(version, frees);
    if (version->partitions_replaced) bytes += release_partitions(allocator, &graph->partitions, frees);
    if (version->groups_replaced) bytes += release_partitions(allocator, &graph->groups, frees);
    return bytes;
}

static void version_free(const sl_index *index, sl_graph_version *version) {
    (void)release_replaced(index, version, 1);
    SL_FREE(&index->graph.allocator, version);
}

/* Frees the retired versions that no reader can hold. */
static void collect(sl_index *index) {
    sl_versions *versions = index->versions;
    const uint64_t oldest = versions->retired ? sl_epochs_oldest(&versions->epochs) : 0;
    while (versions->retired && versions->retired->retired <= oldest) {
        sl_graph_version *version = versions->retired;
        versions->retired = version->next;
        if (!versions->retired) versions->retired_end = &versions->retired;
        versions->retired_count--;
        versions->retired_bytes -= version->bytes;
        version_free(index, version);
    }
}

static sl_graph_version *fill_spare(sl_index *index) {
    sl_versions *versions = index->versions;
    sl_graph_version *version = versions->spare;
    versions->spare = version->next;
    versions->spares--;
    *version = (sl_graph_version){.graph = index->graph};
    version->graph.entry = __atomic_load_n(&index->graph.entry, __ATOMIC_ACQUIRE);
    version->graph.as_of = index->published ? index->commit : sl_epochs_now(&versions->epochs) + 1;
    return version;
}

void sl_version_publish(sl_index *index) {
    sl_versions *versions = index->versions;
    sl_graph_version *old = current_of(versions), *now = fill_spare(index);
    note_replaced(old, &now->graph);
    __atomic_store_n(&versions->current, &now->graph, __ATOMIC_SEQ_CST);
    old->retired = sl_epochs_advance(&versions->epochs);
    old->next = NULL;
    old->bytes = sizeof *old + release_replaced(index, old, 0);
    *versions->retired_end = old;
    versions->retired_end = &old->next;
    versions->retired_count++;
    versions->retired_bytes += old->bytes;
    collect(index);
}

void sl_version_publish_now(sl_index *index) {
    sl_publishing_lock(index);
    sl_version_publish(index);
    sl_publishing_unlock(index);
}

void sl_publishing_lock(const sl_index *index) {
    sl_spin_lock_owned(&index->versions->publishing);
}

void sl_publishing_unlock(const sl_index *index) {
    sl_spin_unlock(&index->versions->publishing);
}

sl_status sl_versions_init(sl_index *index) {
    void *block;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, sizeof(sl_versions), &block));
    sl_versions *versions = block;
    index->versions = versions;
    versions->retired_end = &versions->retired;
    sl_epochs_init(&versions->epochs, &index->graph.allocator);
    sl_gate_init(&versions->gate);
    sl_gate_init(&versions->saves);
    sl_status status = make_spare(index);
    if (status == SL_OK)
        versions->current = &fill_spare(index)->graph;
    else
        sl_versions_free(index);
    return status;
}

void sl_versions_free(sl_index *index) {
    sl_versions *versions = index->versions;
    const sl_allocator *allocator = &index->graph.allocator;
    if (!versions) return;
    if (versions->current) {
        note_replaced(current_of(versions), &index->graph);
        version_free(index, current_of(versions));
    }
    for (sl_graph_version *version = versions->retired, *next; version; version = next) {
        next = version->next;
        version_free(index, version);
    }
    for (sl_graph_version *version = versions->spare, *next; version; version = next) {
        next = version->next;
        SL_FREE(allocator, version);
    }
    sl_epochs_free(&versions->epochs);
    sl_gate_free(&versions->gate);
    sl_gate_free(&versions->saves);
    SL_FREE(allocator, versions);
    index->versions = NULL;
}

sl_versions_held sl_versions_get_held(const sl_index *index) {
    const sl_versions *versions = index->versions;
    sl_publishing_lock(index);
    const sl_versions_held held = {.epoch = sl_epochs_now(&versions->epochs),
                                   .oldest = sl_epochs_oldest(&versions->epochs),
                                   .versions = versions->retired_count,
                                   .bytes = versions->retired_bytes};
    sl_publishing_unlock(index);
    return held;
}

/* Returns whether the current version has a block. */
static int is_read(const sl_index *index, const void *block) {
    const sl_graph *graph = index->versions ? index->versions->current : NULL;
    if (!graph || !block) return 0;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (graph->arrays[kind].at == block) return 1;
    return graph->upper.nodes == block || graph->upper.start == block || graph->upper.links == block ||
           graph->partitions.starts == block || graph->groups.starts == block || graph->tuned == block;
}

void sl_version_release(const sl_index *index, const sl_allocator *allocator, void *block, size_t size) {
    if (!is_read(index, block)) sl_mem_free(allocator, block, size);
}

void sl_version_release_partitions(const sl_index *index, sl_partitions *partitions) {
    if (!is_read(index, partitions->starts)) sl_partitions_free(&index->graph.allocator, partitions);
    *partitions = (sl_partitions){0};
}

/* Announces a search to the process that writes the file. Searches of a file without commits announce nothing. */
static void announce(const sl_index *index, sl_epoch_reader *reader) {
    sl_reader_entry *entry = reader->outside;
    if (!entry || !sl_reader_is_mine(entry)) reader->outside = entry = sl_readers_take(index->readers);
    if (entry) sl_reader_announce(entry, __atomic_load_n(&index->published->commit, __ATOMIC_ACQUIRE));
}

const sl_graph *sl_version_enter(const sl_index *index, sl_epoch_reader *reader) {
    sl_epoch_enter(&index->versions->epochs, reader);
    if (index->readers && reader) announce(index, reader);
    return __atomic_load_n(&index->versions->current, __ATOMIC_SEQ_CST);
}

void sl_version_exit(const sl_index *index, sl_epoch_reader *reader) {
    if (index->readers && reader && reader->outside && sl_reader_is_mine(reader->outside))
        sl_reader_done(reader->outside);
    sl_epoch_exit(&index->versions->epochs, reader);
}

const sl_graph *sl_reading_begin(const sl_index *index, sl_reading *reading) {
    reading->index = index;
    reading->reader = sl_epochs_join(&index->versions->epochs);
    reading->graph = sl_version_enter(index, reading->reader);
    if (!index->published) return reading->graph;
    reading->view = *reading->graph;
    sl_view_follow(index, &reading->view);
    return reading->graph = &reading->view;
}

void sl_reading_end(sl_reading *reading) {
    sl_version_exit(reading->index, reading->reader);
    sl_epochs_leave(reading->reader);
}
