#define _POSIX_C_SOURCE 200809L
#include "cli/index/storage.h"

#include "cli/common/interrupt.h"
#include "cli/common/json_out.h"
#include "cli/common/report.h"
#include "cli/common/size_text.h"

#include <time.h>

void json_storage(json *json, const sl_index_storage *storage) {
    json_open_object(json, "storage");
    json_text(json, "place", sl_place_name(storage->place));
    json_text(json, "mapping", sl_mapping_name(storage->mapping));
    json_flag(json, "dax", storage->dax);
    json_flag(json, "writable", storage->writable);
    json_count(json, "bytes_layer0", storage->bytes_layer0);
    json_flag(json, "pages_known", storage->pages_known);
    json_count(json, "page_size", storage->page_size);
    json_count(json, "bytes_resident", storage->bytes_resident);
    json_count(json, "bytes_huge", storage->bytes_huge);
    json_text(json, "layout", sl_layout_name(storage->record_bytes ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS));
    json_count(json, "record_bytes", storage->record_bytes);
    json_count(json, "room", storage->room);
    json_count(json, "bytes_log", storage->bytes_log);
    json_flag(json, "log_lost", storage->log_lost);
    json_count(json, "recoveries", storage->recoveries);
    json_count(json, "recovered_groups", storage->recovered_groups);
    json_count(json, "recovered_bytes", storage->recovered_bytes);
    json_text(json, "tier", sl_tier_state_name(storage->tier));
    json_count(json, "bytes_tier", storage->bytes_tier);
    json_close_object(json);
}

static const char *medium_of(const sl_index_storage *storage) {
    if (storage->mapping == SL_MAPPING_MEMORY) return "copied into memory";
    if (storage->dax) return "mapped from persistent memory, DAX: loads go to the memory itself";
    if (storage->place == SL_PLACE_PMEM) return "mapped from its file, by way of the page cache: not DAX";
    return "mapped from its file, by way of the page cache";
}

void print_storage(const sl_index_storage *storage) {
    printf("layer 0 %s\n", medium_of(storage));
    if (storage->pages_known && storage->page_size)
        printf("  %s of %s in memory, %s of these on huge pages; pages of %s\n",
               text_of_size(storage->bytes_resident).text, text_of_size(storage->bytes_layer0).text,
               text_of_size(storage->bytes_huge).text, text_of_size(storage->page_size).text);
    if (storage->record_bytes) printf("  in records of %llu bytes\n", (unsigned long long)storage->record_bytes);
    if (storage->tier != SL_TIER_STATE_NONE)
        printf("what every step of a search reads is also copied into memory: %s, %s so far\n",
               sl_tier_state_name(storage->tier), text_of_size(storage->bytes_tier).text);
    if (!storage->room) return;
    printf("room for %llu vectors; log of %s", (unsigned long long)storage->room,
           text_of_size(storage->bytes_log).text);
    if (storage->log_lost) printf(", and a log that is missing or damaged, as 'shortlist check' reports");
    if (storage->recoveries)
        printf("; recovered %llu times, by the last %llu syncs, %s", (unsigned long long)storage->recoveries,
               (unsigned long long)storage->recovered_groups, text_of_size(storage->recovered_bytes).text);
    putchar('\n');
}

int await_tier(const sl_index *index, const char *path) {
    const struct timespec moment = {0, 20000000};
    for (;;) {
        sl_index_storage storage = {.struct_size = sizeof storage};
        sl_status status = sl_index_get_storage(index, &storage);
        if (status != SL_OK) return report_status(path, status);
        if (storage.tier != SL_TIER_STATE_FILLING) return EXIT_DONE;
        if (interrupted()) return report_interrupted();
        nanosleep(&moment, NULL);
    }
}
