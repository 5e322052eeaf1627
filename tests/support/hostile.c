#include "tests/support/hostile.h"

#include "base/crc32c.h"
#include "base/random.h"
#include "hnsw/graph/publish.h"
#include "tests/support/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 300u /* results asked for: more than a test index has vectors */

static void demand(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "broken promise: %s; the last message is '%s'\n", what, sl_last_error());
    abort();
}

enum { DIM = 11, MOST = 4300 };

static const struct kind {
    sl_metric metric;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    size_t m;
    size_t id_width; /* in the file */
    size_t deleted;
    sl_layout layout;
    size_t n, room; /* 0: HOSTILE_VECTORS, and none */
} kinds[HOSTILE_KINDS] = {
    {.metric = SL_METRIC_COSINE,
     .dtype = SL_F32,
     .codes = SL_CODES_I8,
     .refine = SL_REFINE_BF16,
     .m = 4,
     .id_width = 4,
     .deleted = 40},
    {.metric = SL_METRIC_L2, .dtype = SL_U8, .codes = SL_CODES_I8, .m = 3},
    {.metric = SL_METRIC_IP, .dtype = SL_F32, .codes = SL_CODES_F32, .m = 4, .id_width = 8},
    {.metric = SL_METRIC_L2, .dtype = SL_F32, .codes = SL_CODES_I16, .refine = SL_REFINE_I16, .m = 2, .deleted = 116},
    {.metric = SL_METRIC_COSINE, .dtype = SL_F32, .codes = SL_CODES_I8, .refine = SL_REFINE_F32, .m = 16},
    {.metric = SL_METRIC_COSINE, .dtype = SL_F32, .codes = SL_CODES_I4, .m = 4, .id_width = 4, .deleted = 4},
    {.metric = SL_METRIC_L2, .dtype = SL_F32, .codes = SL_CODES_I4, .refine = SL_REFINE_I16, .m = 12},
    {.metric = SL_METRIC_L2, .dtype = SL_U8, .codes = SL_CODES_I4, .m = 3, .id_width = 4, .deleted = 60},
    {.metric = SL_METRIC_COSINE,
     .dtype = SL_F32,
     .codes = SL_CODES_I8,
     .refine = SL_REFINE_BF16,
     .m = 4,
     .id_width = 8,
     .deleted = 40,
     .layout = SL_LAYOUT_RECORDS},
    {.metric = SL_METRIC_L2,
     .dtype = SL_F32,
     .codes = SL_CODES_I4,
     .m = 12,
     .id_width = 8,
     .layout = SL_LAYOUT_RECORDS},
    {.metric = SL_METRIC_L2,
     .dtype = SL_U8,
     .codes = SL_CODES_I4,
     .m = 3,
     .id_width = 8,
     .deleted = 60,
     .layout = SL_LAYOUT_RECORDS},
    {.metric = SL_METRIC_IP, .dtype = SL_F32, .codes = SL_CODES_I4, .m = 2, .deleted = 100, .n = MOST},
    {.metric = SL_METRIC_COSINE,
     .dtype = SL_F32,
     .codes = SL_CODES_I8,
     .refine = SL_REFINE_BF16,
     .m = 4,
     .id_width = 8,
     .deleted = 40,
     .room = 200},
};

void hostile_build(int number, const char *path) {
    static float floats[MOST * DIM];
    static unsigned char bytes[MOST * DIM];
    static uint64_t ids[MOST];
    const struct kind *kind = &kinds[number];
    const size_t n = kind->n ? kind->n : HOSTILE_VECTORS;
    for (size_t i = 0; i < n * DIM; i++) {
        floats[i] = (float)sl_random_unit(1, i) - 0.3f;
        bytes[i] = (unsigned char)sl_random_at(1, i);
    }
    for (size_t i = 0; i < n; i++)
        ids[i] = kind->id_width == 8 ? UINT64_MAX - 2 - i : 3 * i + 5;
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = DIM;
    params.metric = kind->metric;
    params.dtype = kind->dtype;
    params.codes = kind->codes;
    params.refine = kind->refine;
    params.m = kind->m;
    params.ef_construction = 40;
    params.tags = number % 2;
    params.keys = number % 4 == 0;
    sl_index *index;
    demand(sl_index_create(&params, &index) == SL_OK, "an index is made");
    const void *vectors = kind->dtype == SL_U8 ? (const void *)bytes : floats;
    sl_status status = sl_index_add(index, vectors, kind->dtype, n, 0, kind->id_width ? ids : NULL, NULL);
    demand(status == SL_OK, "vectors are added");
    for (size_t i = 0; i < kind->deleted; i++) {
        uint64_t id = kind->id_width ? ids[i] : i;
        demand(sl_index_delete(index, &id, 1) == SL_OK, "a vector is deleted");
    }
    sl_save_params save;
    sl_save_params_init(&save);
    save.layout = kind->layout;
    save.room = kind->room;
    demand(sl_index_save(index, path, &save) == SL_OK, "it is saved");
    sl_index_free(index);
}

/* Puts the sums of pages right, if the sections they need lie inside the file. */
static void seal_pages(unsigned char *bytes, size_t size, const sl_file_header *header) {
    const sl_file_section *sums = NULL, *live = NULL;
    for (uint32_t i = 0; i < header->section_count && i < SL_MAX_SECTIONS; i++) {
        const sl_file_section *section = &header->sections[i];
        if (section->offset > size || section->size > size - section->offset) continue;
        if (section->kind == SL_SECTION_PAGE_SUMS) sums = section;
        if (section->kind == SL_SECTION_LIVE && section->size >= SL_LIVE_SIZE) live = section;
    }
    if (!sums || !live || sums->offset % SL_SUMMED_PAGE) return;
    uint64_t pages = sums->offset / SL_SUMMED_PAGE;
    for (uint64_t i = 0; i <= pages && (i + 1) * sizeof(uint32_t) <= sums->size; i++) {
        uint64_t at = i < pages ? i * SL_SUMMED_PAGE : live->offset + SL_LIVE_HEAD;
        uint32_t sum = sl_page_sum(0, bytes + at, SL_SUMMED_PAGE);
        memcpy(bytes + sums->offset + i * sizeof sum, &sum, sizeof sum);
    }
}

/* Makes the words of the head page fit together again. */
static void seal_facts(unsigned char *bytes, size_t size, const sl_file_header *header) {
    sl_published facts;
    for (uint32_t i = 0; i < header->section_count && i < SL_MAX_SECTIONS; i++) {
        const sl_file_section *section = &header->sections[i];
        if (section->kind != SL_SECTION_LIVE || section->size < SL_LIVE_SIZE || section->offset > size ||
            section->size > size - section->offset)
            continue;
        memcpy(&facts, bytes + section->offset + SL_LIVE_HEAD, sizeof facts);
        if (facts.seal) sl_published_seal(&facts, facts.commit);
        memcpy(bytes + section->offset + SL_LIVE_HEAD, &facts, sizeof facts);
    }
}

void hostile_seal_as(unsigned char *bytes, size_t size, const sl_file_type *type) {
    if (size < SL_HEADER_SIZE) return;
    sl_file_header header;
    memcpy(&header, bytes, sizeof header);
    memcpy(header.magic, type->magic, sizeof header.magic);
    header.version = type->version;
    header.endian = SL_FILE_ENDIAN;
    header.header_size = SL_HEADER_SIZE;
    header.file_size = size;
    seal_facts(bytes, size, &header);
    for (uint32_t i = 0; i < header.section_count && i < SL_MAX_SECTIONS; i++) {
        sl_file_section *section = &header.sections[i];
        if (section->offset <= size && section->size <= size - section->offset)
            section->crc32c = sl_crc32c(0, bytes + section->offset, (size_t)section->size);
    }
    header.crc32c = sl_crc32c(0, &header, offsetof(sl_file_header, crc32c));
    memcpy(bytes, &header, sizeof header);
    seal_pages(bytes, size, &header);
}

void hostile_seal(unsigned char *bytes, size_t size) {
    hostile_seal_as(bytes, size, &sl_index_file);
}

/* A vector valid as any type: as halves and floats these are small positive numbers. */
static const void *some_vector(void) {
    static uint16_t words[2 * SL_MAX_DIM];
    for (size_t i = 0; i < 2 * SL_MAX_DIM && !words[0]; i++)
        words[2 * SL_MAX_DIM - 1 - i] = (uint16_t)(0x3c01 + i % 64);
    return words;
}

/* Searches many at once, which scan an index with partitions: some partitions, those of some groups, and all. */
static void search_many(sl_index *index, const sl_index_stats *stats) {
    enum { QUERIES = 20, K = 7, MOST_DIM = SL_MAX_DIM / QUERIES };
    static uint64_t ids[QUERIES * K];
    sl_search_params params;
    sl_search_params_init(&params);
    size_t queries = stats->dim <= MOST_DIM ? QUERIES : 1;
    for (size_t i = 0; i < 3; i++) {
        sl_search_stats found;
        params.probes = i < 2 ? 3 : SL_MAX_VECTORS;
        params.groups = i == 1;
        sl_status status =
            sl_index_search(index, some_vector(), stats->dtype, queries, 0, K, &params, ids, NULL, &found);
        demand(status == SL_OK, "a batch succeeds over whatever opened");
        demand(found.results <= queries * K, "a batch finds no more than was asked for");
    }
}

static void search(sl_index *index, const sl_index_stats *stats) {
    static uint64_t ids[MANY];
    static float scores[MANY];
    static unsigned char vector[SL_MAX_DIM * sizeof(float)];
    sl_searcher *searcher;
    sl_search_params params;
    sl_search_params_init(&params);
    sl_status status = sl_searcher_create(index, MANY, &searcher);
    demand(status == SL_OK, "a searcher is made for what opened");
    size_t wanted[] = {1, 10, MANY};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        sl_search_stats found;
        params.ef = wanted[i];
        params.rerank = i == 1 ? 3 : 0;
        params.probes = i == 1 ? 2 : 0;
        status = sl_searcher_search(searcher, some_vector(), stats->dtype, wanted[i], &params, ids, scores, &found);
        demand(status == SL_OK, "a search succeeds over whatever opened");
        demand(found.results <= wanted[i] && found.results <= stats->n + stats->deleted,
               "results are vectors of the index");
    }
    for (size_t i = 0; i < 20 && ids[i] != SL_NO_ID; i++) {
        status = sl_index_get(index, &ids[i], 1, stats->dtype == SL_U8 ? SL_U8 : SL_F32, vector);
        demand(status == SL_OK || status == SL_ENOTFOUND, "an id that was returned is found or said not to be there");
    }
    sl_searcher_free(searcher);
    search_many(index, stats);
}

static void check_index(sl_index *index) {
    sl_check_params params;
    sl_check_params_init(&params);
    params.sample = 5;
    params.k = 3;
    params.ef = 10;
    params.threads = 1;
    sl_check_report report = {.struct_size = sizeof report};
    sl_status status = sl_index_check(index, &params, &report);
    demand(status == SL_OK || status == SL_ECORRUPT, "a check finds an index sound or damaged");
    demand(status == SL_OK || *sl_last_error(), "a check says what is damaged");
}

/* Files saved here need not survive the machine. */
static int no_sync(void *ctx, int fd) {
    (void)ctx, (void)fd;
    return 0;
}

static int at_once(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return 1;
}

/* Adds some vectors and deletes some of these. */
static void add_vectors(sl_index *index, const sl_index_stats *stats) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    for (int i = 0; i < 6; i++) {
        size_t before = sl_index_size(index);
        params.progress = i % 2 ? at_once : NULL;
        sl_status status =
            sl_index_add(index, some_vector(), stats->dtype, 1, 0, &(uint64_t){1000000 + (uint64_t)i}, &params);
        demand(status == SL_OK || *sl_last_error(), "a refused vector is refused with a reason");
        demand(status == SL_OK || sl_index_size(index) == before, "a refused vector is not counted");
    }
}

static void delete_some(sl_index *index) {
    for (uint64_t id = 0; id < 40; id++) {
        size_t before = sl_index_size(index);
        sl_status status = sl_index_delete(index, &id, 1);
        demand(status == SL_OK || (status == SL_ENOTFOUND && *sl_last_error()), "an id is deleted or not there");
        /* A lying mapped file may say that any number are deleted. */
        demand(!before || sl_index_size(index) == before - (status == SL_OK), "what is deleted is not counted");
    }
}

static void add_and_save(sl_index *index, const sl_index_stats *stats, const char *save_path) {
    add_vectors(index, stats);
    delete_some(index);
    sl_file_ops ops = {.fsync = no_sync};
    sl_save_params save;
    sl_save_params_init(&save);
    save.file_ops = &ops;
    sl_status status = save_path ? sl_index_save(index, save_path, &save) : SL_OK;
    demand(status == SL_OK || *sl_last_error(), "a save that fails says why");
}

static void search_allowed(sl_index *index, const sl_index_stats *stats, sl_filter *filter) {
    enum { K = 9 };
    uint64_t ids[K];
    sl_search_params params;
    sl_search_params_init(&params);
    params.filter = filter;
    for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_HOPS; strategy++) {
        sl_search_stats found;
        params.strategy = (sl_filter_strategy)strategy;
        sl_status status = sl_index_search(index, some_vector(), stats->dtype, 1, 0, K, &params, ids, NULL, &found);
        demand(status == SL_OK, "each strategy succeeds over whatever opened");
        demand(found.results <= sl_filter_count(filter), "what is found is allowed");
    }
}

/* A filter of what there is to go by, a search under it, and a word set. */
static void filter_and_set(sl_index *index, const sl_index_stats *stats) {
    const uint64_t ids[] = {8, 0, UINT64_MAX - 2, 3}, word = 5;
    sl_filter_params params;
    sl_filter *filter;
    sl_filter_params_init(&params);
    params.exclude = ids;
    params.exclude_count = 4;
    if (stats->tags) params.none_tags = 1;
    if (stats->keys) params.key_max = 9;
    demand(sl_filter_create(index, &params, &filter) == SL_OK, "a filter is made");
    demand(sl_filter_count(filter) <= stats->n + stats->deleted, "a filter allows what is there");
    search_allowed(index, stats, filter);
    sl_filter_free(filter);
    sl_status status = sl_index_set_tags(index, ids, 1, &word);
    demand(status == SL_OK || *sl_last_error(), "tags that are not set are refused with a reason");
}

/* Searches again with the walk's data in DRAM: from the first search on or from one of them, and then all of it. */
static void use_tier(const char *path) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.tier = SL_TIER_DRAM;
    sl_index *index;
    sl_status status = sl_index_open(path, &params, &index);
    demand(status == SL_OK || status == SL_EUNSUPPORTED, "what opened opens with a tier, unless it has room");
    if (status != SL_OK) return;
    sl_index_stats stats = {.struct_size = sizeof stats};
    sl_index_storage storage = {.struct_size = sizeof storage};
    demand(sl_index_get_stats(index, &stats) == SL_OK, "what opened can be described");
    search(index, &stats);
    do
        demand(sl_index_get_storage(index, &storage) == SL_OK, "a tier can be asked about");
    while (storage.tier == SL_TIER_STATE_FILLING);
    search(index, &stats);
    sl_index_free(index);
}

/* Opens a file with room to write. Opening copies nothing, so it checked little. */
static void use_to_write(const char *path) {
    sl_file_ops ops = {.fsync = no_sync};
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = 1;
    params.file_ops = &ops;
    sl_index *index;
    size_t dropped;
    sl_status status = sl_index_open(path, &params, &index);
    demand(status == SL_OK || *sl_last_error(), "a file that cannot be written is refused with a reason");
    if (status != SL_OK) return;
    sl_index_stats stats = {.struct_size = sizeof stats};
    demand(sl_index_get_stats(index, &stats) == SL_OK, "what opened can be described");
    search(index, &stats);
    filter_and_set(index, &stats);
    add_vectors(index, &stats);
    delete_some(index);
    demand(sl_index_get_stats(index, &stats) == SL_OK, "what was changed can be described");
    search(index, &stats);
    status = sl_index_drop_damaged(index, 1, &dropped);
    demand(status == SL_OK || *sl_last_error(), "what cannot be dropped is said");
    status = sl_index_sync(index);
    demand(status == SL_OK || *sl_last_error(), "a sync that fails says why");
    check_index(index);
    search(index, &stats);
    sl_index_free(index);
}

/* Vectors merged into a new index are sound, or refused. */
static void merge(sl_index *index, const sl_index_stats *stats) {
    sl_index *merged;
    if (stats->n > MANY) return;
    const sl_status status = sl_index_merge(&index, 1, NULL, &merged);
    demand((status == SL_OK) == (merged != NULL), "a failed merge gives no handle");
    if (status == SL_OK)
        demand(sl_index_check(merged, NULL, &(sl_check_report){.struct_size = sizeof(sl_check_report)}) == SL_OK,
               "a merged index is sound");
    else
        demand((status == SL_ECORRUPT || status == SL_EEXIST || status == SL_EBUSY || status == SL_EINVAL) &&
                   *sl_last_error(),
               "a merge says what is wrong");
    sl_index_free(merged);
}

sl_status hostile_use(const char *path, size_t file_size, sl_place place, const char *save_path) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = place;
    params.allocator = &memory.allocator;
    sl_index *index;
    sl_status status = sl_index_open(path, &params, &index);
    if (status != SL_OK) {
        demand(status == SL_EFORMAT || status == SL_EVERSION || status == SL_ECORRUPT, "a bad file is called one");
        demand(!index && *sl_last_error(), "a failed open gives no handle and a message");
        demand(memory.live_blocks == 0, "a failed open gives back its memory");
        return status;
    }
    sl_index_stats stats = {.struct_size = sizeof stats};
    demand(sl_index_get_stats(index, &stats) == SL_OK, "what opened can be described");
    demand(stats.n == sl_index_size(index), "its size is the number of its vectors");
    search(index, &stats);
    filter_and_set(index, &stats);
    check_index(index);
    merge(index, &stats);
    if (place == SL_PLACE_DRAM) add_and_save(index, &stats, save_path);
    demand(sl_index_get_stats(index, &stats) == SL_OK, "what was changed can be described");
    search(index, &stats);
    sl_index_free(index);
    demand(memory.live_blocks == 0, "a freed index gives back its memory");
    if (place != SL_PLACE_DRAM) use_tier(path);
    if (place != SL_PLACE_DRAM && stats.room) use_to_write(path);
    demand(memory.largest <= ((size_t)16 << 20) + 64 * file_size, "memory is in proportion to the file");
    return SL_OK;
}
