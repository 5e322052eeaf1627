#include "ranker/quantise/quantise_tables.h"

static const sl_table_shape *shape_of(const sl_ranker *ranker, size_t table) {
    return &ranker->features->tables[table];
}

static sl_status check_types(const sl_ranker *from, const sl_table_type *types) {
    size_t count = from->features->table_count;
    if (count && !types)
        return sl_fail(SL_EINVAL, "types is NULL; give one for each of the %zu embedding tables", count);
    if (from->weights.coded.codes)
        return sl_fail(SL_EINVAL, "the model's embeddings are in codes already; give the model that was coded");
    for (size_t t = 0; t < count; t++)
        if (types[t] != SL_TABLE_F32 && types[t] != SL_TABLE_I8 && types[t] != SL_TABLE_I4)
            return sl_fail(SL_EINVAL, "type %d of tensor '%s'; there are f32 (%d), i8 (%d) and i4 (%d)", (int)types[t],
                           sl_ranker_table_name(from, t), SL_TABLE_F32, SL_TABLE_I8, SL_TABLE_I4);
    return SL_OK;
}

/* Fills `codes`, one zeroed record per table. */
static sl_status fit_tables(const sl_ranker *from, const sl_table_type *types, sl_table_codes *codes) {
    for (size_t t = 0; t < from->features->table_count; t++) {
        const sl_table_shape *shape = shape_of(from, t);
        if (types[t] == SL_TABLE_F32) continue;
        sl_status status =
            sl_table_codes_fit(from->weights.embeddings[t], shape->size, shape->dim, types[t], &codes[t]);
        if (status != SL_OK) return sl_fail_in(status, "tensor '%s'", sl_ranker_table_name(from, t));
    }
    return SL_OK;
}

static sl_status make_weights(const sl_ranker *from, const sl_table_codes *codes, sl_row_range range, sl_weights *out) {
    SL_TRY(sl_weights_create_coded(from->features, &from->shape, codes, &from->allocator, out));
    sl_weights_copy(out, &from->weights, from->features, &from->shape);
    for (size_t t = 0; t < from->features->table_count; t++) {
        const sl_table_shape *shape = shape_of(from, t);
        if (codes[t].type != SL_TABLE_F32)
            sl_table_codes_encode(&codes[t], from->weights.embeddings[t], shape->size, shape->dim, range,
                                  out->coded.rows[t]);
    }
    return SL_OK;
}

sl_status sl_ranker_with_table_ranges(const sl_ranker *from, const sl_table_type *types, sl_row_range range,
                                      sl_ranker **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!from) return sl_fail(SL_EINVAL, "from is NULL");
    SL_TRY(check_types(from, types));
    const size_t size = from->features->table_count * sizeof(sl_table_codes);
    sl_features *features;
    sl_weights weights;
    sl_coded_layers layers;
    void *codes;
    SL_TRY(sl_mem_alloc(&from->allocator, size, &codes));
    sl_status status = fit_tables(from, types, codes);
    if (status == SL_OK) status = make_weights(from, codes, range, &weights);
    sl_mem_free(&from->allocator, codes, size);
    if (status != SL_OK) return status;
    status = sl_coded_layers_copy(&from->coded, &from->shape, &from->allocator, &layers);
    if (status == SL_OK) {
        status = sl_ranker_copy_features(from, &features);
        if (status == SL_OK) return sl_ranker_make(features, &weights, &layers, &from->allocator, out);
        sl_coded_layers_free(&layers, &from->allocator);
    }
    sl_weights_free(&weights, from->features, &from->shape, &from->allocator);
    return status;
}

sl_status sl_ranker_with_tables(const sl_ranker *from, const sl_table_type *types, sl_ranker **out) {
    return sl_ranker_with_table_ranges(from, types, SL_ROW_MSE, out);
}
