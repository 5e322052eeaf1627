#include "ranker/model/model_file.h"

#include "base/params.h"

#include <string.h>

void sl_ranker_open_params_init_sized(sl_ranker_open_params *params, size_t struct_size) {
    const sl_ranker_open_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

void sl_file_check_params_init_sized(sl_file_check_params *params, size_t struct_size) {
    const sl_file_check_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* ---- Writing ---- */

static void add_section(sl_section_source *sections, size_t *count, uint32_t kind, const void *data, size_t size) {
    if (size)
        sections[(*count)++] =
            (sl_section_source){.kind = kind, .flags = SL_SECTION_REQUIRED, .data = data, .size = size};
}

size_t sl_model_describe(const sl_features *features, const void *features_data, size_t features_size,
                         const sl_weights *weights, const sl_weights_layout *layout, const sl_coded_layers *coded,
                         sl_section_source *sections) {
    const float *block = weights->block;
    size_t count = 0;
    add_section(sections, &count, SL_SECTION_SPEC, features->spec->text, features->spec->text_size);
    add_section(sections, &count, SL_SECTION_FEATURES, features_data, features_size);
    add_section(sections, &count, SL_SECTION_WIDE, block, layout->wide_size * sizeof *block);
    add_section(sections, &count, SL_SECTION_EMBEDDINGS, block + layout->embeddings_at,
                layout->embeddings_size * sizeof *block);
    if (coded && coded->block)
        add_section(sections, &count, SL_SECTION_LAYERS, coded->block, coded->size);
    else
        add_section(sections, &count, SL_SECTION_DENSE, block + layout->dense_at, layout->dense_size * sizeof *block);
    add_section(sections, &count, SL_SECTION_TABLE_CODES, weights->coded.codes, layout->codes_size);
    add_section(sections, &count, SL_SECTION_TABLE_ROWS, weights->coded.block, layout->rows_size);
    return count;
}

sl_status sl_ranker_save(const sl_ranker *ranker, const char *path, const sl_save_params *params) {
    if (!ranker || !path) return sl_fail(SL_EINVAL, "ranker or path is NULL");
    sl_save_params mine = {.struct_size = sizeof mine};
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_save_params_init"));
    sl_weights_layout layout;
    sl_section_source sections[SL_MODEL_SECTIONS];
    sl_progress progress;
    void *data = NULL;
    size_t size = 0;
    SL_TRY(sl_weights_layout_coded(ranker->features, &ranker->shape, ranker->weights.coded.codes, &layout));
    SL_TRY(sl_features_write(ranker->features, &ranker->allocator, &data, &size));
    size_t count = sl_model_describe(ranker->features, data, size, &ranker->weights, &layout, &ranker->coded, sections);
    sl_progress_start(&progress, mine.progress, mine.progress_ctx, sl_store_file_size(sections, count));
    sl_status status =
        sl_store_save(path, &(sl_file_content){&sl_ranker_file, NULL, sections, count}, mine.file_ops, NULL, &progress);
    sl_mem_free(&ranker->allocator, data, size);
    return status;
}

/* ---- Reading ---- */

/* Copies a section's bytes into memory, verifies them, and adds a NUL. A missing section is damage. */
static sl_status load_section(const sl_store *store, uint32_t kind, const sl_allocator *allocator, void **out,
                              size_t *size) {
    const sl_file_section *section = sl_store_section(store, kind);
    *out = NULL;
    if (!section)
        return sl_fail(SL_ECORRUPT, "%s: section %u (%s) is missing; make the model again", store->path, kind,
                       sl_section_name(kind));
    if (section->size > SIZE_MAX - 1)
        return sl_fail(SL_ENOMEM, "%s: section %u (%s) does not fit", store->path, kind, sl_section_name(kind));
    *size = (size_t)section->size;
    SL_TRY(sl_mem_alloc(allocator, *size + 1, out));
    sl_status status = sl_store_copy(store, section, *out, NULL);
    if (status != SL_OK) {
        sl_mem_free(allocator, *out, *size + 1);
        *out = NULL;
    }
    return status;
}

/* Turns a failure to parse a verified file into SL_ECORRUPT. Lack of memory and an unknown version stay as they are. */
static sl_status as_damage(sl_status status, const sl_store *store, const char *what) {
    if (status == SL_OK || status == SL_ENOMEM || status == SL_EVERSION) return status;
    return sl_fail_in(SL_ECORRUPT, "%s: %s", store->path, what);
}

static sl_status load_spec(const sl_store *store, const sl_allocator *allocator, sl_spec **out) {
    void *text;
    size_t size;
    *out = NULL;
    SL_TRY(load_section(store, SL_SECTION_SPEC, allocator, &text, &size));
    sl_status status;
    if (strlen(text) != size)
        status = sl_fail(SL_ECORRUPT, "%s: its spec holds a zero byte; make the model again", store->path);
    else
        status = as_damage(sl_spec_read(text, allocator, out), store, "its spec");
    sl_mem_free(allocator, text, size + 1);
    return status;
}

static sl_status load_features(const sl_store *store, const sl_allocator *allocator, sl_features **out) {
    sl_spec *spec;
    void *data;
    size_t size;
    *out = NULL;
    SL_TRY(load_spec(store, allocator, &spec));
    sl_status status = load_section(store, SL_SECTION_FEATURES, allocator, &data, &size);
    if (status != SL_OK) {
        sl_spec_free(spec);
        return status;
    }
    status = as_damage(sl_features_read(spec, data, size, out), store, "its features");
    sl_mem_free(allocator, data, size + 1);
    return status;
}

static sl_status check_size(const sl_store *store, uint32_t kind, uint64_t wanted) {
    const sl_file_section *section = sl_store_section(store, kind);
    uint64_t size = section ? section->size : 0;
    if (size == wanted) return SL_OK;
    return sl_fail(SL_ECORRUPT, "%s: section %u (%s) is %llu bytes, where the features make %llu; make the model again",
                   store->path, kind, sl_section_name(kind), (unsigned long long)size, (unsigned long long)wanted);
}

sl_status sl_model_check_sizes(const sl_store *store, const sl_weights_layout *layout) {
    SL_TRY(check_size(store, SL_SECTION_WIDE, (uint64_t)layout->wide_size * sizeof(float)));
    SL_TRY(check_size(store, SL_SECTION_EMBEDDINGS, (uint64_t)layout->embeddings_size * sizeof(float)));
    SL_TRY(check_size(store, SL_SECTION_TABLE_CODES, layout->codes_size));
    SL_TRY(check_size(store, SL_SECTION_TABLE_ROWS, layout->rows_size));
    if (!sl_store_section(store, SL_SECTION_LAYERS))
        return check_size(store, SL_SECTION_DENSE, (uint64_t)layout->dense_size * sizeof(float));
    if (layout->dense_size && !sl_store_section(store, SL_SECTION_DENSE) &&
        !sl_store_section(store, SL_SECTION_TRAINER))
        return SL_OK;
    return sl_fail(SL_ECORRUPT,
                   "%s: section %u (%s) is beside the layers' floats, in a checkpoint, or has no layers; "
                   "make the model again",
                   store->path, SL_SECTION_LAYERS, sl_section_name(SL_SECTION_LAYERS));
}

static sl_status copy_weights(const sl_store *store, uint32_t kind, float *to, size_t floats) {
    const sl_file_section *section = sl_store_section(store, kind);
    if (!section) return SL_OK;
    SL_TRY(sl_store_copy(store, section, to, NULL));
    if (sl_all_finite(to, floats)) return SL_OK;
    return sl_fail(SL_ECORRUPT, "%s: section %u (%s) has a weight that is not finite; make the model again",
                   store->path, kind, sl_section_name(kind));
}

sl_status sl_model_read_weights(const sl_store *store, const sl_weights_layout *layout, sl_weights *weights) {
    SL_TRY(sl_model_check_sizes(store, layout));
    SL_TRY(copy_weights(store, SL_SECTION_WIDE, weights->block, layout->wide_size));
    SL_TRY(copy_weights(store, SL_SECTION_EMBEDDINGS, weights->block + layout->embeddings_at, layout->embeddings_size));
    SL_TRY(copy_weights(store, SL_SECTION_DENSE, weights->block + layout->dense_at, layout->dense_size));
    const sl_file_section *rows = sl_store_section(store, SL_SECTION_TABLE_ROWS);
    return rows ? sl_store_copy(store, rows, weights->coded.block, NULL) : SL_OK;
}

static sl_status check_codes(const sl_store *store, const sl_features *features, const sl_table_codes *codes) {
    for (size_t t = 0; t < features->table_count; t++) {
        const char *fault = sl_table_codes_fault(&codes[t]);
        if (!fault) continue;
        return sl_fail(SL_ECORRUPT, "%s: section %u (%s): embedding of feature '%s': %s; make the model again",
                       store->path, SL_SECTION_TABLE_CODES, sl_section_name(SL_SECTION_TABLE_CODES),
                       features->features[features->tables[t].feature].spec->name, fault);
    }
    return SL_OK;
}

/* Reads how tables are coded. *out gets a record for each table, or NULL if the file has no coded table. */
static sl_status load_codes(const sl_store *store, const sl_features *features, const sl_allocator *allocator,
                            sl_table_codes **out) {
    const size_t size = features->table_count * sizeof **out;
    void *block;
    *out = NULL;
    if (!sl_store_section(store, SL_SECTION_TABLE_CODES)) return SL_OK;
    SL_TRY(check_size(store, SL_SECTION_TABLE_CODES, size));
    SL_TRY(sl_mem_alloc(allocator, size, &block));
    sl_status status = sl_store_copy(store, sl_store_section(store, SL_SECTION_TABLE_CODES), block, NULL);
    if (status == SL_OK) status = check_codes(store, features, block);
    if (status == SL_OK)
        *out = block;
    else
        sl_mem_free(allocator, block, size);
    return status;
}

static sl_status load_weights(const sl_store *store, const sl_features *features, const sl_allocator *allocator,
                              const sl_table_codes *codes, sl_weights *out) {
    sl_net_shape shape;
    sl_weights_layout layout;
    sl_shape_of(features, &shape);
    SL_TRY(sl_weights_layout_coded(features, &shape, codes, &layout));
    /* This check comes before the spec's sizes are allocated. */
    SL_TRY(sl_model_check_sizes(store, &layout));
    SL_TRY(sl_weights_create_coded(features, &shape, codes, allocator, out));
    sl_status status = sl_model_read_weights(store, &layout, out);
    if (status != SL_OK) sl_weights_free(out, features, &shape, allocator);
    return status;
}

/* Reads coded layers, and writes their floats into the weights. */
static sl_status load_layers(const sl_store *store, const sl_net_shape *shape, const sl_allocator *allocator,
                             sl_weights *weights, sl_coded_layers *out) {
    const sl_file_section *section = sl_store_section(store, SL_SECTION_LAYERS);
    void *block;
    *out = (sl_coded_layers){.block = NULL};
    if (!section) return SL_OK;
    if (section->size > SIZE_MAX) return sl_fail(SL_ENOMEM, "%s: its layers do not fit", store->path);
    size_t size = (size_t)section->size;
    SL_TRY(sl_mem_alloc(allocator, size, &block));
    sl_status status = sl_store_copy(store, section, block, NULL);
    if (status != SL_OK) {
        sl_mem_free(allocator, block, size);
        return status;
    }
    SL_TRY(as_damage(sl_coded_layers_read(shape, block, size, allocator, out), store, "its layers"));
    sl_coded_layers_decode(out, shape, weights->dense);
    return SL_OK;
}

sl_status sl_model_open(const sl_store *store, const sl_allocator *allocator, sl_ranker **out) {
    sl_coded_layers coded;
    sl_net_shape shape;
    sl_features *features;
    sl_table_codes *codes;
    sl_weights weights;
    const sl_file_section *trainer = sl_store_section(store, SL_SECTION_TRAINER);
    const sl_file_section *ranges = sl_store_section(store, SL_SECTION_RANGES);
    if (trainer) SL_TRY(sl_store_verify(store, trainer, NULL));
    if (ranges) SL_TRY(sl_store_verify(store, ranges, NULL));
    SL_TRY(load_features(store, allocator, &features));
    sl_shape_of(features, &shape);
    sl_status status = load_codes(store, features, allocator, &codes);
    if (status == SL_OK) {
        status = load_weights(store, features, allocator, codes, &weights);
        if (codes) SL_FREE_ARRAY(allocator, codes, features->table_count);
    }
    if (status == SL_OK) {
        status = load_layers(store, &shape, allocator, &weights, &coded);
        if (status == SL_OK) return sl_ranker_make(features, &weights, &coded, allocator, out);
        sl_weights_free(&weights, features, &shape, allocator);
    }
    sl_features_free(features);
    return status;
}

sl_status sl_ranker_open(const char *path, const sl_ranker_open_params *params, sl_ranker **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!path) return sl_fail(SL_EINVAL, "path is NULL");
    sl_ranker_open_params mine;
    sl_ranker_open_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_ranker_open_params_init"));
    sl_allocator allocator = sl_allocator_of(mine.allocator);
    sl_store *store;
    SL_TRY(sl_store_open(path, &sl_ranker_file, SL_PLACE_DRAM, &allocator, &store));
    sl_status status = sl_model_open(store, &allocator, out);
    sl_store_close(store, &allocator);
    return status;
}
