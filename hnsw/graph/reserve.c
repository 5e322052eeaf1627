#include "hnsw/graph/reserve.h"

#include "hnsw/graph/arrays.h"

sl_status sl_index_writable(const sl_index *index) {
    if (index->writer) return sl_writable_check_owner(index->writer);
    if (index->graph.place == SL_PLACE_DRAM) return SL_OK;
    return sl_fail(SL_EREADONLY,
                   "the index is mapped from its file and read-only; open it with place dram to change it, "
                   "or with writable set where the file has room");
}

sl_status sl_index_reserve(sl_index *index, size_t n) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_index_writable(index));
    if (n > SL_MAX_VECTORS) return sl_fail(SL_ELIMIT, "%zu vectors; an index holds up to %u", n, SL_MAX_VECTORS);
    if (n > index->graph.capacity && index->writer)
        return sl_fail(
            SL_ELIMIT,
            "%s has room for %zu vectors, not for %zu; make more with 'shortlist rebuild --room' or sl_index_rebuild",
            index->store->path, index->graph.capacity, n);
    return n > index->graph.capacity ? sl_spill_explain(index->spill, sl_arrays_reserve(index, n)) : SL_OK;
}
