#include "hnsw/index/lifecycle.h"

#include "base/params.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/codes.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/upper.h"
#include "hnsw/graph/version.h"
#include "hnsw/place/dram_copy.h"
#include "hnsw/place/numa_place.h"
#include "hnsw/search/searcher_pool.h"
#include "hnsw/search/settings.h"

void sl_index_params_init_sized(sl_index_params *params, size_t struct_size) {
    const sl_index_params mine = {.struct_size = sizeof mine,
                                  .metric = SL_METRIC_COSINE,
                                  .dtype = SL_F32,
                                  .codes = SL_CODES_I8,
                                  .refine = SL_REFINE_NONE,
                                  .m = 16,
                                  .ef_construction = 200,
                                  .seed = 1,
                                  .clip_share = 0.01};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

static sl_status check_params(const sl_index_params *p) {
    if (p->m < 2 || p->m > SL_MAX_M) return sl_fail(SL_EINVAL, "m is %zu; give 2 to %u", p->m, SL_MAX_M);
    if (p->ef_construction < p->m || p->ef_construction > SL_MAX_EF)
        return sl_fail(SL_EINVAL, "ef_construction is %zu; give m (%zu) to %u", p->ef_construction, p->m, SL_MAX_EF);
    if ((unsigned)p->refine > SL_REFINE_I16)
        return sl_fail(SL_EINVAL, "refine is %d; give SL_REFINE_NONE, F32, BF16 or I16", (int)p->refine);
    if (p->refine == SL_REFINE_NONE) return SL_OK;
    if (!sl_dtype_is_float(p->dtype))
        return sl_fail(SL_EINVAL, "%s vectors are kept exactly and need no refine copy; use none",
                       sl_dtype_name(p->dtype));
    if (p->codes == SL_CODES_F32)
        return sl_fail(SL_EINVAL, "codes f32 already hold the vectors; use refine none, or codes i8 or i16");
    if (p->codes == SL_CODES_I4 && p->refine == SL_REFINE_BF16 && !sl_coarse_wanted(p->dim, p->metric, p->dtype))
        return sl_fail(SL_EINVAL, "codes i4 keep 12 bits an element, and bf16 would hold hardly more; use refine none, "
                                  "i16 or f32");
    return SL_OK;
}

sl_status sl_index_new(const sl_index_params *params, sl_index **out) {
    *out = NULL;
    SL_TRY(check_params(params));
    sl_allocator allocator = sl_allocator_of(params->allocator);
    void *block;
    SL_TRY(sl_mem_alloc(&allocator, sizeof(sl_index), &block));
    sl_index *index = block;
    *index = (sl_index){.graph = {.allocator = allocator,
                                  .kernels = sl_kernels_best(),
                                  .m = params->m,
                                  .m0 = 2 * params->m,
                                  .ef_construction = params->ef_construction,
                                  .seed = params->seed,
                                  .has_tags = params->tags != 0,
                                  .has_keys = params->keys != 0,
                                  .multi = params->multi != 0,
                                  .place = SL_PLACE_DRAM,
                                  .as_of = UINT64_MAX},
                        .layer0 = allocator,
                        .log = params->log,
                        .log_ctx = params->log_ctx};
    sl_status status;
    SL_TRY_GOTO(sl_codes_init(&index->graph, params), fail);
    index->graph.dram_copy = &index->dram_copy;
    SL_TRY_GOTO(sl_searcher_pool_init(index), fail);
    SL_TRY_GOTO(sl_versions_init(index), fail);
    *out = index;
    return SL_OK;
fail:
    sl_searcher_pool_free(index);
    SL_FREE(&allocator, index);
    return status;
}

static sl_status create_index(const sl_index_params *params, sl_spill *spill, sl_index **out) {
    sl_index_params mine = *params;
    sl_allocator bounded;
    sl_index *index;
    if (spill) {
        bounded = sl_spill_allocator(spill);
        mine.allocator = &bounded;
    }
    SL_TRY(sl_index_new(&mine, &index));
    sl_status status = sl_numa_place_init(index, mine.numa, mine.numa_node, mine.numa_ops);
    if (status == SL_OK && mine.work_path) status = sl_work_open(mine.work_path, &index->graph.allocator, &index->work);
    if (status != SL_OK) {
        sl_index_free(index);
        return status;
    }
    index->spill = spill;
    *out = index;
    return SL_OK;
}

sl_status sl_index_create(const sl_index_params *params, sl_index **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    sl_index_params mine;
    sl_index_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_index_params_init"));
    if (!mine.max_memory && !mine.work_path) return create_index(&mine, NULL, out);
    if (mine.numa != SL_NUMA_DEFAULT)
        return sl_fail(SL_EINVAL, "max_memory and work_path place blocks, and so does a NUMA policy; give one of them");
    const sl_allocator allocator = sl_allocator_of(mine.allocator);
    sl_spill *spill;
    SL_TRY(sl_spill_open(&allocator, mine.max_memory ? mine.max_memory : SIZE_MAX, mine.work_path, &spill));
    sl_status status = sl_spill_explain(spill, create_index(&mine, spill, out));
    if (status != SL_OK) sl_spill_close(spill);
    return status;
}

/* Closes the file and its writer, or frees the arrays. */
static void release_arrays(sl_index *index) {
    const sl_allocator *allocator = &index->graph.allocator;
    if (index->graph.place != SL_PLACE_DRAM) {
        /* The arrays lie in the mapping. */
        sl_writable_close(index->writer);
        index->writer = NULL;
    } else {
        sl_partitions_free(allocator, &index->graph.partitions);
        sl_partitions_free(allocator, &index->graph.groups);
        sl_arrays_free(index);
        sl_upper_free(&index->graph);
    }
    sl_readers_close(index->readers);
    sl_store_close(index->store, allocator);
    index->store = NULL;
}

void sl_index_free(sl_index *index) {
    if (!index) return;
    if (index->writer && sl_writable_checkpoint(index->writer) != SL_OK && index->log)
        index->log(index->log_ctx, SL_LOG_WARN, sl_last_error());
    sl_dram_copy_free(index);
    sl_searcher_pool_free(index);
    sl_reclaim_stop(index);
    sl_node_set_free(index, &index->free);
    sl_ids_forget(index);
    sl_versions_free(index);
    sl_lives_free(&index->graph.lives);
    release_arrays(index);
    sl_settings_free(&index->graph);
    sl_numa_place_free(index);
    sl_allocator allocator = index->graph.allocator;
    sl_spill *spill = index->spill;
    sl_origin_free(index->origin, &allocator);
    sl_work_close(index->work);
    SL_FREE(&allocator, index);
    sl_spill_close(spill);
}
