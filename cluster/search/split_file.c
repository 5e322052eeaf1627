#include "cluster/search/split_file.h"

#include "base/crc32c.h"
#include "storage/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static sl_status join_path(const char *folder, const char *name, char path[SL_SPLIT_PATH]) {
    int length = snprintf(path, SL_SPLIT_PATH, "%s/%s", folder, name);
    if (length > 0 && length < SL_SPLIT_PATH) return SL_OK;
    return sl_fail(SL_EINVAL, "%.100s...: the name of the folder is too long", folder);
}

sl_status sl_split_part_path(const char *folder, size_t part, char path[SL_SPLIT_PATH]) {
    char name[32];
    snprintf(name, sizeof name, "part-%zu.sl", part);
    return join_path(folder, name, path);
}

sl_status sl_split_routing_path(const char *folder, char path[SL_SPLIT_PATH]) {
    return join_path(folder, "routing.sls", path);
}

sl_status sl_split_identify(const char *path, sl_split_part *out) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_store *store;
    SL_TRY(sl_store_open(path, &sl_index_file, SL_PLACE_MAP, &allocator, &store));
    *out =
        (sl_split_part){.n = store->header.n, .file_size = store->header.file_size, .header_crc = store->header.crc32c};
    sl_store_close(store, &allocator);
    return SL_OK;
}

float sl_split_reach_of(const sl_split *split, double share) {
    const size_t count = split->facts.reaches;
    for (size_t i = 0; i < count; i++)
        if (split->reaches[i].share >= share) return split->reaches[i].reach;
    return INFINITY;
}

/* Counts of copies against distances: chosen on word vectors and on sentence embeddings. */
#define COPIES_WEIGHT 0.2f

float sl_reach_found(sl_metric metric, float border, float score, float copies) {
    float radius = 1;
    if (metric == SL_METRIC_COSINE) radius = sqrtf(fmaxf(2 - 2 * score, 0));
    if (metric == SL_METRIC_L2) radius = sqrtf(fmaxf(score, 0));
    /* A query that found itself alone has no distance to measure by. */
    return (radius > 1e-3f * border ? border / radius : 1e3f) - COPIES_WEIGHT * copies;
}

void sl_reaches_adjust(sl_metric metric, const uint16_t *others, size_t found, float score, sl_route *routes,
                       size_t count) {
    for (size_t i = 1; i < count; i++) {
        size_t copies = 0;
        for (size_t r = 0; r < found; r++)
            copies += others[r] == routes[i].part;
        routes[i].reach = sl_reach_found(metric, routes[i].reach, score, found ? (float)copies / (float)found : 0);
    }
}

/* ---- Writing ---- */

sl_status sl_split_save(const sl_split *split, const char *folder) {
    const sl_split_facts *facts = &split->facts;
    const sl_cells *cells = &split->cells;
    const uint64_t row = facts->dim * sizeof(float);
    const sl_section_source sections[] = {
        {.kind = SL_SECTION_SPLIT_FACTS, .flags = SL_SECTION_REQUIRED, .data = facts, .size = sizeof *facts},
        {.kind = SL_SECTION_SPLIT_PARTS,
         .flags = SL_SECTION_REQUIRED,
         .data = split->parts,
         .size = facts->parts * sizeof *split->parts},
        {.kind = SL_SECTION_SPLIT_STARTS,
         .flags = SL_SECTION_REQUIRED,
         .data = cells->starts,
         .size = sl_cells_starts(facts->parts, facts->groups) * sizeof *cells->starts},
        {.kind = SL_SECTION_SPLIT_CELLS,
         .flags = SL_SECTION_REQUIRED,
         .data = cells->centres,
         .size = facts->cells * row},
        {.kind = SL_SECTION_SPLIT_GROUPS,
         .flags = SL_SECTION_REQUIRED,
         .data = cells->group_centres,
         .size = facts->groups * row},
        {.kind = SL_SECTION_SPLIT_REACHES,
         .flags = SL_SECTION_REQUIRED,
         .data = split->reaches,
         .size = facts->reaches * sizeof *split->reaches},
    };
    /* Slices have no cells: their file ends after the parts. */
    const size_t count = facts->kind == SL_SPLIT_SLICES ? 2 : sizeof sections / sizeof *sections;
    char path[SL_SPLIT_PATH];
    sl_progress progress;
    SL_TRY(sl_split_routing_path(folder, path));
    if (facts->kind == SL_SPLIT_NEIGHBOURHOODS && !sl_cells_are_sound(cells))
        return sl_fail(SL_EVALUE,
                       "%s: would have centres of cells that are not finite, or without a direction; split into slices",
                       path);
    sl_progress_start(&progress, NULL, NULL, 0);
    return sl_store_save(path, &(sl_file_content){&sl_split_file, NULL, sections, count}, NULL, NULL, &progress);
}

/* ---- Reading ---- */

static sl_status damaged(const sl_store *store, const char *what) {
    return sl_fail(SL_ECORRUPT, "%s: %s; make the split again", store->path, what);
}

/* Copies a section of exactly `size` bytes, and verifies it. */
static sl_status copy_section(const sl_store *store, uint32_t kind, void *to, uint64_t size) {
    const sl_file_section *section = sl_store_section(store, kind);
    if (!section || section->size != size) {
        char what[128];
        snprintf(what, sizeof what, "section %u (%s) is missing or has another size than the facts make it", kind,
                 sl_section_name(kind));
        return damaged(store, what);
    }
    return size ? sl_store_copy(store, section, to, NULL) : SL_OK;
}

static sl_status check_facts(const sl_store *store, const sl_split_facts *facts) {
    const int slices = facts->kind == SL_SPLIT_SLICES;
    if (facts->kind > SL_SPLIT_NEIGHBOURHOODS || facts->metric > SL_METRIC_L2 || facts->dtype > SL_I16)
        return damaged(store, "its kind, metric or type is unknown");
    if (!facts->parts || facts->parts > SL_SPLIT_MAX_PARTS || !facts->dim || facts->dim > SL_MAX_DIM || !facts->n ||
        facts->stored < facts->n)
        return damaged(store, "its counts do not fit each other");
    if (slices ? facts->cells || facts->groups || facts->reaches
               : !facts->cells || facts->cells > SL_CELLS_MAX || !facts->groups || facts->groups > facts->cells ||
                     !facts->opened || !(facts->gap >= 0) || facts->reaches > SL_SPLIT_MAX_REACHES)
        return damaged(store, "its cells do not fit the kind of split");
    return SL_OK;
}

static sl_status check_reaches(const sl_store *store, const sl_split *split) {
    const sl_split_reach *reaches = split->reaches;
    for (size_t i = 0; i < split->facts.reaches; i++)
        if (!(reaches[i].share > 0 && reaches[i].share <= 1) || !isfinite(reaches[i].reach) ||
            (i && reaches[i].share < reaches[i - 1].share))
            return damaged(store, "its reaches are no rising shares");
    return SL_OK;
}

static sl_status read_cells(const sl_store *store, sl_split *split) {
    const sl_split_facts *facts = &split->facts;
    sl_cells *cells = &split->cells;
    const uint64_t row = facts->dim * sizeof(float);
    SL_TRY(sl_cells_create(&split->allocator, facts->dim, (sl_metric)facts->metric, facts->parts, facts->groups,
                           facts->cells, cells));
    SL_TRY(copy_section(store, SL_SECTION_SPLIT_STARTS, cells->starts,
                        sl_cells_starts(facts->parts, facts->groups) * sizeof *cells->starts));
    SL_TRY(copy_section(store, SL_SECTION_SPLIT_CELLS, cells->centres, facts->cells * row));
    SL_TRY(copy_section(store, SL_SECTION_SPLIT_GROUPS, cells->group_centres, facts->groups * row));
    SL_TRY(copy_section(store, SL_SECTION_SPLIT_REACHES, split->reaches, facts->reaches * sizeof *split->reaches));
    if (!sl_cells_are_sound(cells)) return damaged(store, "its cells are not sound");
    SL_TRY(check_reaches(store, split));
    sl_cells_encode(cells);
    return SL_OK;
}

static sl_status read_split(const sl_store *store, sl_split *split) {
    sl_status status = SL_OK;
    sl_verified found;
    SL_TRY(sl_store_verify_all(store, &found, NULL));
    split->header_crc = store->header.crc32c;
    SL_TRY(copy_section(store, SL_SECTION_SPLIT_FACTS, &split->facts, sizeof split->facts));
    sl_split_facts facts = split->facts;
    split->facts.parts = 0; /* for sl_split_free */
    SL_TRY(check_facts(store, &facts));
    split->parts = sl_mem_array(&split->allocator, facts.parts, sizeof *split->parts, &status);
    SL_TRY(status);
    split->facts = facts;
    SL_TRY(copy_section(store, SL_SECTION_SPLIT_PARTS, split->parts, facts.parts * sizeof *split->parts));
    return facts.kind == SL_SPLIT_SLICES ? SL_OK : read_cells(store, split);
}

sl_status sl_split_read(const char *folder, const sl_allocator *allocator, sl_split *out) {
    char path[SL_SPLIT_PATH];
    sl_store *store;
    *out = (sl_split){.allocator = *allocator};
    SL_TRY(sl_split_routing_path(folder, path));
    SL_TRY(sl_store_open(path, &sl_split_file, SL_PLACE_MAP, allocator, &store));
    sl_status status = read_split(store, out);
    sl_store_close(store, allocator);
    return status;
}

void sl_split_free(sl_split *split) {
    SL_FREE_ARRAY(&split->allocator, split->parts, split->facts.parts);
    sl_cells_free(&split->cells);
    *split = (sl_split){.parts = NULL};
}
