/* Checks that a table's file holds all that was written to it. */
#include "base/params.h"
#include "ranker/features/table.h"
#include "recommend/items.h"

/* Sections that are read where they lie in the mapped file. */
static const uint32_t read_in_place[] = {SL_SECTION_COLUMNS, SL_SECTION_TEXT};
enum { READ_IN_PLACE = sizeof read_in_place / sizeof *read_in_place };

uint64_t sl_item_body_unverified(const sl_item_body *body) {
    uint64_t size = 0;
    for (size_t i = 0; body->store && i < READ_IN_PLACE; i++)
        size += sl_store_section(body->store, read_in_place[i])->size;
    return size;
}

static sl_status verify_sections(const sl_store *store, sl_progress *progress) {
    for (size_t i = 0; i < READ_IN_PLACE; i++)
        SL_TRY(sl_store_verify(store, sl_store_section(store, read_in_place[i]), progress));
    return sl_store_verify_gaps(store, progress);
}

sl_status sl_item_body_verify(sl_item_body *body, sl_progress *progress) {
    if (!body->store) return SL_OK;
    sl_status status = verify_sections(body->store, progress);
    if (status == SL_OK || status == SL_ECORRUPT)
        __atomic_store_n(&body->soundness, status == SL_OK ? SL_SOUND : SL_DAMAGED, __ATOMIC_RELAXED);
    return status;
}

/* Counts the rows whose id isn't the one in their id column. *first gets the first of them. */
static size_t count_bad_ids(const sl_items *items, const sl_items_part *part, size_t *first) {
    size_t bad = 0;
    for (size_t row = 0; row < part->table.rows; row++) {
        uint64_t id;
        if (sl_item_id(&part->table, &part->columns[items->schema.id], row, &id) == SL_OK && id == part->ids[row])
            continue;
        if (!bad++) *first = row;
    }
    return bad;
}

static sl_status check_file(const sl_items *items, const sl_item_body *body, sl_items_check_report *report,
                            sl_progress *progress) {
    const sl_items_part *part = sl_items_part_of(body, 0);
    sl_verified found;
    size_t first = 0;
    report->rows = part->table.rows;
    report->columns = items->schema.count;
    sl_status status = sl_store_verify_all(body->store, &found, progress);
    report->sections_checked = found.sections;
    report->bytes_checked = found.bytes;
    if (status != SL_OK) return status;
    report->bad_ids = count_bad_ids(items, part, &first);
    if (!report->bad_ids) return sl_progress_end(progress);
    return sl_fail(SL_ECORRUPT,
                   "%s: %zu rows have another id than their column '%s' says, the first row %zu; make it again",
                   body->store->path, report->bad_ids, items->schema.columns[items->schema.id].name, first);
}

sl_status sl_items_check(const sl_items *items, const sl_file_check_params *params, sl_items_check_report *report) {
    sl_file_check_params mine;
    sl_items_check_report found = {.struct_size = sizeof found};
    sl_progress progress;
    sl_status status = SL_OK;
    if (!items) return sl_fail(SL_EINVAL, "items is NULL");
    sl_file_check_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_file_check_params_init"));
    SL_TRY(sl_params_check_out(report, "sl_items_check_report"));
    sl_hazard *hazard;
    sl_item_body *body;
    SL_TRY(sl_items_begin(items, &hazard, &body));
    sl_progress_start(&progress, mine.progress, mine.progress_ctx, body->store ? body->store->size : 0);
    if (body->store) status = check_file(items, body, &found, &progress);
    sl_items_end(hazard);
    sl_params_out(report, &found, sizeof found);
    return status;
}
