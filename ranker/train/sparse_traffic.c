#include "ranker/train/sparse_traffic.h"

void sl_sparse_traffic_add_table(sl_sparse_traffic *traffic, size_t size, size_t width, uint64_t rows) {
    const uint64_t unique = rows * sl_sent_row_bytes(width), dense = sl_summed_table_bytes(size, width);
    traffic->unique += unique;
    traffic->dense += dense;
    traffic->least += unique < dense ? unique : dense;
}

/* Rows of a feature's table that these rows look up, each as often as it occurs. */
static uint64_t occurrences(const sl_features *features, const sl_feature *feature, const sl_encoded *rows) {
    uint64_t count = 0;
    if (feature->form == SL_FORM_DENSE) return (uint64_t)rows->rows * feature->width;
    if (feature->form == SL_FORM_ID) return rows->rows;
    for (size_t r = 0; r < rows->rows; r++) {
        const uint32_t *start = rows->bag_start + r * features->bag_count + feature->at;
        count += start[1] - start[0];
    }
    return count;
}

void sl_sparse_traffic_add_raw(sl_sparse_traffic *traffic, const sl_sparse_trainer *trainer, const sl_encoded *rows,
                               int is_deep) {
    const sl_features *features = trainer->features;
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        const int in_table = is_deep && feature->deep_at != SIZE_MAX && feature->form != SL_FORM_DENSE;
        const uint64_t count = occurrences(features, feature, rows);
        if (feature->wide_at != SIZE_MAX) traffic->raw += count * sl_sent_row_bytes(features->outputs);
        if (in_table && !sl_is_sharded(trainer, feature->tensor))
            traffic->raw += count * sl_sent_row_bytes(features->tables[feature->tensor].dim);
    }
}
