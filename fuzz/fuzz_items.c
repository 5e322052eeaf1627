/* Opens any bytes as an item table's file, first as they are, then with the checksums put right, and uses the table. */
#include "fuzz/fuzz.h"
#include "recommend/items.h"
#include "tests/support/faults.h"
#include "tests/support/hostile.h"

#define ROWS_READ 32u

static void read_texts(const sl_items *items) {
    const sl_item_body *body = sl_items_body(items);
    const sl_items_part *part = sl_items_part_of(body, 0);
    char text[40];
    for (size_t c = 0; sl_items_column_name(items, c); c++)
        for (size_t row = 0; row < part->table.rows && row < ROWS_READ; row++) {
            size_t length;
            sl_status status =
                sl_items_text(items, part->ids[row], sl_items_column_name(items, c), text, sizeof text, &length);
            demand(status == SL_OK, "a value of a row that opened is told");
            demand(memchr(text, 0, sizeof text) != NULL, "its text is ended");
        }
}

/* Items are grouped by the first column, if it has single values. */
static void serve_items(sl_items *items) {
    sl_index *index;
    sl_index_params index_params;
    sl_recommender *recommender;
    sl_recommender_params params;
    sl_index_params_init(&index_params);
    index_params.dim = 4;
    demand(sl_index_create(&index_params, &index) == SL_OK, "an index is made");
    sl_recommender_params_init(&params);
    params.group = sl_items_column_name(items, 0);
    params.threads = 1;
    sl_status status = sl_recommender_create(index, NULL, items, &params, &recommender);
    demand(status == SL_OK || status == SL_ETYPE, "what opened can be served from");
    sl_recommender_free(recommender);
    sl_index_free(index);
}

static void compact_rows(const sl_items *items) {
    sl_items_part *compacted;
    demand(sl_item_body_compact(items, sl_items_body(items), &compacted) == SL_OK, "all rows are compacted");
    demand(compacted->table.rows == sl_items_size(items), "no row is lost");
    sl_items_part_free(&items->allocator, &items->schema, compacted);
}

/* Adds a row of an id alone, sets it and deletes it. Each time compacts all rows, which writes a part. */
static void change_rows(sl_items *items) {
    const sl_item_column *id = &items->schema.columns[items->schema.id];
    static const int64_t offsets[] = {0, 1};
    const int64_t number = 7;
    const int32_t narrow = 7;
    const uint64_t added = 7;
    sl_column column = {.name = id->name, .type = id->type, .values = &number};
    if (id->type == SL_COLUMN_I32) column.values = &narrow;
    if (id->type == SL_COLUMN_TEXT) {
        column.values = "7";
        column.offsets = offsets;
    }
    const sl_table table = {.struct_size = sizeof table, .rows = 1, .column_count = 1, .columns = &column};
    demand(sl_items_update(items, &table) == SL_OK, "a row is added");
    compact_rows(items);
    demand(sl_items_set(items, &table) == SL_OK, "a row is set");
    compact_rows(items);
    demand(sl_items_delete(items, &added, 1) == SL_OK, "a row is deleted");
    compact_rows(items);
}

static void use_file(const char *path, size_t size) {
    fault_allocator memory;
    sl_items_params params;
    sl_items *items;
    fault_allocator_init(&memory, 0);
    sl_items_params_init(&params);
    params.allocator = &memory.allocator;
    sl_status status = sl_items_open(path, &params, &items);
    demand(memory.largest <= ((size_t)1 << 20) + 64 * size, "memory is in proportion to the file");
    demand(status == SL_OK || status == SL_ECORRUPT || status == SL_EFORMAT || status == SL_EVERSION,
           "a bad file is called one");
    demand(status == SL_OK ? items != NULL : !items && *sl_last_error(), "a failure has a message and no handle");
    if (items) {
        read_texts(items);
        serve_items(items);
        change_rows(items);
    }
    sl_items_free(items);
    demand(memory.live_blocks == 0, "a freed table gives back its memory");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    with_file(data, size, use_file);
    unsigned char *sealed = malloc(size + 1);
    if (!sealed) abort();
    memcpy(sealed, data, size);
    hostile_seal_as(sealed, size, &sl_items_file);
    with_file(sealed, size, use_file);
    free(sealed);
    return 0;
}
