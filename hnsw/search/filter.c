#include "hnsw/search/filter.h"

#include "base/params.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/tags.h"
#include "hnsw/graph/version.h"
#include "hnsw/search/ids_to_nodes.h"

#include <string.h>

void sl_filter_params_init_sized(sl_filter_params *params, size_t struct_size) {
    const sl_filter_params mine = {.struct_size = sizeof mine, .key_max = UINT64_MAX};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

static int selects_by_tags(const sl_filter_params *params) {
    return (params->any_tags | params->all_tags | params->none_tags) != 0;
}

static int selects_by_keys(const sl_filter_params *params) {
    return params->key_min != 0 || params->key_max != UINT64_MAX;
}

/* The most ids whose bytes can be counted. */
#define MOST (SIZE_MAX / sizeof(uint64_t))

static size_t words_of(size_t bits) {
    return (bits + 63) / 64;
}

static int bit_at(const uint64_t *bits, uint64_t at) {
    return bits[at / 64] >> (at % 64) & 1;
}

/* A set lists its nodes if at most one node in LISTED is allowed. The list then takes at most a quarter of the bits'
 * memory. */
enum { LISTED = 128, LISTED_AT_ONCE = 1024 };

/* Allocates zeroed bits. */
static sl_status make_bits(const sl_allocator *allocator, size_t bits, uint64_t **out) {
    void *block;
    SL_TRY(sl_mem_alloc(allocator, words_of(bits) * sizeof **out, &block));
    *out = block;
    return SL_OK;
}

static void free_bits(const sl_allocator *allocator, uint64_t *bits, size_t count) {
    SL_FREE_ARRAY(allocator, bits, words_of(count));
}

static void free_set(const sl_allocator *allocator, sl_filter_set *set) {
    free_bits(allocator, set->bits, set->n);
    SL_FREE_ARRAY(allocator, set->by_partition, set->partitions);
    SL_FREE_ARRAY(allocator, set->nodes, set->count);
    *set = (sl_filter_set){0};
}

/* ---------------------------------------------------------------------------------------------------------------
 * From ids, tags and keys to nodes
 * ------------------------------------------------------------------------------------------------------------- */

/* A set under construction, for the graph as it is now. */
typedef struct set_builder {
    sl_filter *filter;
    const sl_graph *graph;
    sl_filter_set set;
} set_builder;

/* Keeps the nodes whose bits are set if `having`, else the nodes whose bits aren't. */
static void keep_bits(const set_builder *builder, const uint64_t *nodes, int having) {
    const uint64_t flip = having ? 0 : ~(uint64_t)0;
    for (size_t i = 0; i < words_of(builder->set.n); i++)
        builder->set.bits[i] &= nodes[i] ^ flip;
}

/* Keeps the nodes whose ids are in the list if `having`, else all other nodes. */
static sl_status keep_listed(const set_builder *builder, const uint64_t *ids, size_t count, int having) {
    const sl_allocator *allocator = &builder->filter->allocator;
    uint64_t *nodes;
    SL_TRY(make_bits(allocator, builder->set.n, &nodes));
    sl_status status = sl_nodes_of_ids(builder->filter->index, builder->graph, allocator, ids, count, nodes);
    if (status == SL_OK) keep_bits(builder, nodes, having);
    free_bits(allocator, nodes, builder->set.n);
    return status;
}

static sl_status keep_by_bits(const set_builder *builder, const uint64_t *bits, size_t count) {
    const sl_allocator *allocator = &builder->filter->allocator;
    uint64_t *nodes;
    SL_TRY(make_bits(allocator, builder->set.n, &nodes));
    sl_nodes_of_id_bits(builder->graph, bits, count, nodes);
    keep_bits(builder, nodes, 1);
    free_bits(allocator, nodes, builder->set.n);
    return SL_OK;
}

/* Neither this nor the test of keys branches, because the order of tags and keys is unpredictable. */
static int tags_pass(const sl_filter_params *source, uint64_t tags) {
    return ((tags & source->all_tags) == source->all_tags) & ((tags & source->none_tags) == 0) &
           ((source->any_tags == 0) | ((tags & source->any_tags) != 0));
}

static int key_passes(const sl_filter_params *source, uint64_t key) {
    return (key >= source->key_min) & (key <= source->key_max);
}

/* Returns how many nodes share the word of bits that begins with node `first`. */
static size_t nodes_in_word(const set_builder *builder, size_t first) {
    return builder->set.n - first < 64 ? builder->set.n - first : 64;
}

static void keep_tagged(const set_builder *builder) {
    for (size_t first = 0; first < builder->set.n; first += 64) {
        uint64_t word = 0;
        for (size_t i = 0; i < nodes_in_word(builder, first); i++)
            word |= (uint64_t)tags_pass(&builder->filter->source, sl_tag_of(builder->graph, (uint32_t)(first + i)))
                    << i;
        builder->set.bits[first / 64] &= word;
    }
}

static void keep_keyed(const set_builder *builder) {
    for (size_t first = 0; first < builder->set.n; first += 64) {
        uint64_t word = 0;
        for (size_t i = 0; i < nodes_in_word(builder, first); i++)
            word |= (uint64_t)key_passes(&builder->filter->source, sl_key_of(builder->graph, (uint32_t)(first + i)))
                    << i;
        builder->set.bits[first / 64] &= word;
    }
}

static sl_status keep_accepted(const set_builder *builder) {
    const sl_filter_params *source = &builder->filter->source;
    for (size_t node = 0; node < builder->set.n; node++) {
        if (!bit_at(builder->set.bits, node) || sl_is_deleted(builder->graph, node)) continue;
        const uint64_t id = sl_id_of(builder->graph, (uint32_t)node);
        const int accepted = source->accept(source->accept_ctx, id);
        if (accepted < 0)
            return sl_fail(SL_ECANCELED, "accept returned %d for id %llu, which ends the making of the filter",
                           accepted, (unsigned long long)id);
        if (!accepted) builder->set.bits[node / 64] &= ~((uint64_t)1 << (node % 64));
    }
    return SL_OK;
}

static sl_status keep_allowed(const set_builder *builder) {
    const sl_filter_params *source = &builder->filter->source;
    if (selects_by_tags(source)) keep_tagged(builder);
    if (selects_by_keys(source)) keep_keyed(builder);
    if (source->allow) SL_TRY(keep_listed(builder, source->allow, source->allow_count, 1));
    if (source->bits) SL_TRY(keep_by_bits(builder, source->bits, source->bits_count));
    if (source->exclude) SL_TRY(keep_listed(builder, source->exclude, source->exclude_count, 0));
    return source->accept ? keep_accepted(builder) : SL_OK;
}

static void count_bits(sl_filter_set *set, const sl_graph *graph) {
    const sl_allowed all = {.bits = set->bits, .n = set->n};
    set->count = sl_allowed_count(&all, (sl_range){0, set->n});
    for (size_t p = 0; p < set->partitions; p++)
        set->by_partition[p] = (uint32_t)sl_allowed_count(&all, sl_partition_nodes(&graph->partitions, p, set->n));
}

/* Lists the nodes if they are few. Reading a list costs less than searching the bits. */
static sl_status list_nodes(const sl_allocator *allocator, sl_filter_set *set) {
    const sl_allowed all = {.bits = set->bits, .n = set->n};
    uint32_t some[LISTED_AT_ONCE];
    sl_range left = {0, set->n};
    void *block;
    if (!set->count || set->count > set->n / LISTED) return SL_OK;
    SL_TRY(sl_mem_alloc(allocator, set->count * sizeof *set->nodes, &block));
    set->nodes = block;
    for (size_t done = 0, found; left.first < left.end; done += found) {
        found = sl_allowed_list(&all, &left, some, LISTED_AT_ONCE);
        memcpy(set->nodes + done, some, found * sizeof *some);
    }
    return SL_OK;
}

static sl_status make_set(sl_filter *filter, const sl_graph *graph, sl_filter_set *out) {
    const sl_allocator *allocator = &filter->allocator;
    set_builder builder = {
        .filter = filter, .graph = graph, .set = {.numbering = graph->numbering, .as_of = graph->as_of, .n = graph->n}};
    void *block;
    sl_status status;
    SL_TRY_GOTO(make_bits(allocator, builder.set.n, &builder.set.bits), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, graph->partitions.count * sizeof(uint32_t), &block), fail);
    builder.set.by_partition = block;
    builder.set.partitions = graph->partitions.count;
    memset(builder.set.bits, 0xff, builder.set.n / 64 * sizeof *builder.set.bits);
    if (builder.set.n % 64) builder.set.bits[builder.set.n / 64] = ~(~(uint64_t)0 << (builder.set.n % 64));
    SL_TRY_GOTO(keep_allowed(&builder), fail);
    count_bits(&builder.set, graph);
    SL_TRY_GOTO(list_nodes(allocator, &builder.set), fail);
    *out = builder.set;
    return SL_OK;
fail:
    free_set(allocator, &builder.set);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The handle
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status check_filter_params(const sl_index *index, const sl_filter_params *params) {
    if (!params->bits && params->bits_count)
        return sl_fail(SL_EINVAL, "bits is NULL, bits_count %zu; give the bitmap, or 0", params->bits_count);
    if (params->bits_count > SIZE_MAX - 63 || params->allow_count > MOST || params->exclude_count > MOST)
        return sl_fail(SL_ELIMIT, "bits_count, allow_count or exclude_count is beyond all memory; give what there is");
    if (!params->allow && params->allow_count)
        return sl_fail(SL_EINVAL, "allow is NULL, allow_count %zu; give the ids, or 0", params->allow_count);
    if (!params->exclude && params->exclude_count)
        return sl_fail(SL_EINVAL, "exclude is NULL, exclude_count %zu; give the ids, or 0", params->exclude_count);
    if (params->key_min > params->key_max)
        return sl_fail(SL_EINVAL, "key_min is %llu, above key_max, %llu; give the lower one as key_min",
                       (unsigned long long)params->key_min, (unsigned long long)params->key_max);
    SL_TRY(sl_words_check_now(index, SL_ARRAY_TAGS, selects_by_tags(params)));
    return sl_words_check_now(index, SL_ARRAY_KEYS, selects_by_keys(params));
}

/* Replaces the caller's words by a copy. NULL stays NULL. */
static sl_status copy_words(const sl_allocator *allocator, const uint64_t **words, size_t count) {
    const uint64_t *given = *words;
    void *block;
    *words = NULL;
    if (!given) return SL_OK;
    SL_TRY(sl_mem_alloc_raw(allocator, (count ? count : 1) * sizeof *given, &block));
    if (count) memcpy(block, given, count * sizeof *given);
    *words = block;
    return SL_OK;
}

static void free_words(const sl_allocator *allocator, const uint64_t *words, size_t count) {
    if (words) sl_mem_free(allocator, (void *)(uintptr_t)words, (count ? count : 1) * sizeof *words);
}

static sl_status copy_source(sl_filter *filter, const sl_filter_params *given) {
    const sl_allocator *allocator = &filter->allocator;
    filter->source = *given;
    filter->source.bits = filter->source.allow = filter->source.exclude = NULL;
    const uint64_t *bits = given->bits, *allow = given->allow, *exclude = given->exclude;
    SL_TRY(copy_words(allocator, &bits, words_of(given->bits_count)));
    filter->source.bits = bits;
    SL_TRY(copy_words(allocator, &allow, given->allow_count));
    filter->source.allow = allow;
    SL_TRY(copy_words(allocator, &exclude, given->exclude_count));
    filter->source.exclude = exclude;
    return SL_OK;
}

sl_status sl_filter_refresh(sl_filter *filter) {
    if (!filter) return sl_fail(SL_EINVAL, "filter is NULL");
    sl_reading reading;
    sl_filter_set made;
    sl_status status = make_set(filter, sl_reading_begin(filter->index, &reading), &made);
    sl_reading_end(&reading);
    SL_TRY(status);
    free_set(&filter->allocator, &filter->set);
    filter->set = made;
    return SL_OK;
}

sl_status sl_filter_create(sl_index *index, const sl_filter_params *params, sl_filter **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    sl_filter_params mine;
    sl_filter_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_filter_params_init"));
    SL_TRY(check_filter_params(index, &mine));
    sl_allocator allocator = mine.allocator ? sl_allocator_of(mine.allocator) : index->graph.allocator;
    void *block;
    SL_TRY(sl_mem_alloc(&allocator, sizeof(sl_filter), &block));
    sl_filter *filter = block;
    *filter = (sl_filter){.allocator = allocator, .index = index};
    sl_status status;
    SL_TRY_GOTO(copy_source(filter, &mine), fail);
    SL_TRY_GOTO(sl_filter_refresh(filter), fail);
    *out = filter;
    return SL_OK;
fail:
    sl_filter_free(filter);
    return status;
}

void sl_filter_free(sl_filter *filter) {
    if (!filter) return;
    sl_allocator allocator = filter->allocator;
    const sl_filter_params *source = &filter->source;
    free_words(&allocator, source->bits, words_of(source->bits_count));
    free_words(&allocator, source->allow, source->allow_count);
    free_words(&allocator, source->exclude, source->exclude_count);
    free_set(&allocator, &filter->set);
    SL_FREE(&allocator, filter);
}

size_t sl_filter_count(const sl_filter *filter) {
    if (!filter) return 0;
    sl_reading reading;
    const sl_allowed allowed = sl_filter_allowed(filter, sl_reading_begin(filter->index, &reading));
    const size_t count = sl_allowed_count(&allowed, (sl_range){0, allowed.n});
    sl_reading_end(&reading);
    return count;
}

/* ---------------------------------------------------------------------------------------------------------------
 * For searches
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_filter_check(const sl_filter *filter, const sl_index *index, const sl_graph *graph) {
    if (filter->index != index)
        return sl_fail(SL_EINVAL, "the filter was made of another index handle; make one of this");
    if (filter->set.numbering != graph->numbering)
        return sl_fail(SL_EINVAL, "the index was renumbered after the filter was made; call sl_filter_refresh");
    return SL_OK;
}

sl_allowed sl_filter_allowed(const sl_filter *filter, const sl_graph *graph) {
    sl_allowed allowed = sl_allowed_all(graph);
    allowed.bits = filter->set.bits;
    allowed.by_age = graph->lives.changed != NULL;
    allowed.born_by = filter->set.as_of;
    allowed.nodes = filter->set.nodes;
    allowed.node_count = filter->set.count;
    if (filter->set.n < allowed.n) allowed.n = filter->set.n;
    if (filter->set.count < allowed.count) allowed.count = filter->set.count;
    return allowed;
}
