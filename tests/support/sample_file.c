#include "tests/support/sample_file.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

static const struct kinds {
    const sl_file_type *type;
    uint32_t kinds[SAMPLE_SECTIONS];
} kinds_of[] = {
    {&sl_index_file, {SL_SECTION_CODES, SL_SECTION_LINKS, SL_SECTION_UPPER_LINKS, SAMPLE_UNKNOWN}},
    {&sl_ranker_file, {SL_SECTION_SPEC, SL_SECTION_DENSE, SL_SECTION_TRAINER, SAMPLE_UNKNOWN}},
    {&sl_items_file, {SL_SECTION_DIRECTORY, SL_SECTION_COLUMNS, SL_SECTION_TEXT, SAMPLE_UNKNOWN}},
};

static const uint32_t *kinds_for(const sl_file_type *type) {
    for (size_t i = 0; i < sizeof kinds_of / sizeof *kinds_of; i++)
        if (kinds_of[i].type == type) return kinds_of[i].kinds;
    abort();
}

/* Odd sizes, so that padding is never a whole number of anything. */
void sample_init(sample_file *sample, const sl_file_type *type, uint64_t version, size_t size) {
    size_t sizes[SAMPLE_SECTIONS] = {size / 2, size / 3 + 1, 0, size / 7 + 3};
    const uint32_t *kinds = kinds_for(type);
    memset(sample, 0, sizeof *sample);
    sample->type = type;
    if (type == &sl_index_file) {
        sample->header.n = version;
        sample->header.dim = (uint32_t)size;
    }
    sample->data = malloc(sizes[0] + sizes[1] + sizes[3] + 1);
    if (!sample->data) abort();
    size_t at = 0;
    for (int i = 0; i < SAMPLE_SECTIONS; i++) {
        uint32_t flags = kinds[i] == SAMPLE_UNKNOWN ? 0 : SL_SECTION_REQUIRED;
        sample->sections[i] =
            (sl_section_source){.kind = kinds[i], .flags = flags, .data = sample->data + at, .size = sizes[i]};
        at += sizes[i];
    }
    for (size_t i = 0; i < at; i += sizeof(uint64_t)) {
        uint64_t bytes = sl_random_at(version, i);
        memcpy(sample->data + i, &bytes, at - i < sizeof bytes ? at - i : sizeof bytes);
    }
}

void sample_free(sample_file *sample) {
    free(sample->data);
}

sl_status sample_save(sample_file *sample, const char *path, const sl_file_ops *ops) {
    sl_progress progress;
    sl_progress_start(&progress, NULL, NULL, 0);
    const sl_file_header *header = sample->type == &sl_index_file ? &sample->header : NULL;
    return sl_store_save(path, &(sl_file_content){sample->type, header, sample->sections, SAMPLE_SECTIONS}, ops, NULL,
                         &progress);
}

static int holds(const sl_store *store, const sample_file *wanted, const sl_allocator *allocator) {
    sl_progress progress;
    sl_progress_start(&progress, NULL, NULL, 0);
    int same = store->header.section_count == SAMPLE_SECTIONS;
    for (int i = 0; i < SAMPLE_SECTIONS && same; i++) {
        const sl_section_source *source = &wanted->sections[i];
        const sl_file_section *section = sl_store_section(store, source->kind);
        void *copy;
        if (!section || section->size != source->size || section->flags != source->flags) return 0;
        if (sl_mem_alloc(allocator, (size_t)section->size, &copy) != SL_OK) return 0;
        same = sl_store_verify(store, section, &progress) == SL_OK &&
               sl_store_copy(store, section, copy, &progress) == SL_OK &&
               memcmp(copy, source->data, (size_t)source->size) == 0 &&
               memcmp(sl_store_data(store, section), source->data, (size_t)source->size) == 0;
        sl_mem_free(allocator, copy, (size_t)section->size);
    }
    return same;
}

int sample_holds(const sample_file *sample, const char *path) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_store *store;
    if (sl_store_open(path, sample->type, SL_PLACE_MAP, &allocator, &store) != SL_OK) return 0;
    int same = holds(store, sample, &allocator);
    sl_store_close(store, &allocator);
    return same;
}

uint64_t sample_version(const char *path) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_store *store;
    if (sl_store_open(path, &sl_index_file, SL_PLACE_MAP, &allocator, &store) != SL_OK) return 0;
    sample_file wanted;
    sample_init(&wanted, &sl_index_file, store->header.n, store->header.dim);
    uint64_t version = holds(store, &wanted, &allocator) ? store->header.n : 0;
    sample_free(&wanted);
    sl_store_close(store, &allocator);
    return version;
}
