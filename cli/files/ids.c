#include "cli/files/ids.h"

#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int compare_ids(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int ids_check_distinct(const char *path, const uint64_t *ids, size_t n) {
    uint64_t *sorted = allocate(n, sizeof *sorted);
    if (!sorted) return EXIT_FAILED;
    memcpy(sorted, ids, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_ids);
    int status = EXIT_DONE;
    for (size_t i = 1; status == EXIT_DONE && i < n; i++)
        if (sorted[i] == sorted[i - 1])
            status = report_failure("%s: id %" PRIu64 " comes twice; ids must differ", path, sorted[i]);
    if (status == EXIT_DONE && n && sorted[n - 1] == SL_NO_ID)
        status = report_failure("%s: id 2^64 - 1 is reserved; choose another", path);
    free(sorted);
    return status;
}

int filter_asks_tags(const filter_choice *choice) {
    return choice->any_tags || choice->all_tags || choice->none_tags;
}

int filter_asks_keys(const filter_choice *choice) {
    return choice->key_min || choice->key_max != UINT64_MAX;
}

int filter_is_asked(const filter_choice *choice) {
    return choice->path || filter_asks_tags(choice) || filter_asks_keys(choice);
}

int filter_check(const filter_choice *choice) {
    if (choice->key_min <= choice->key_max) return EXIT_DONE;
    return report_usage("--key-min is above --key-max; give the lower key as --key-min");
}

int filter_passes(const filter_choice *choice, uint64_t tags, uint64_t key) {
    return (!choice->any_tags || (tags & choice->any_tags)) && (tags & choice->all_tags) == choice->all_tags &&
           !(tags & choice->none_tags) && key >= choice->key_min && key <= choice->key_max;
}

/* Reports a filter by tags or keys on an index without them. */
static int check_words(const filter_choice *choice, const char *index_path, const sl_index *index) {
    sl_index_stats stats = {.struct_size = sizeof stats};
    sl_status status = sl_index_get_stats(index, &stats);
    if (status != SL_OK) return report_status(index_path, status);
    if (filter_asks_tags(choice) && !stats.tags)
        return report_failure("%s: has no tags to go by; build it again with --tags", index_path);
    if (filter_asks_keys(choice) && !stats.keys)
        return report_failure("%s: has no keys to go by; build it again with --keys", index_path);
    return EXIT_DONE;
}

int filter_make(const filter_choice *choice, const char *index_path, sl_index *index, sl_filter **out) {
    sl_filter_params params;
    uint64_t *ids = NULL;
    sl_filter_params_init(&params);
    int status = check_words(choice, index_path, index);
    if (status == EXIT_DONE && choice->path) status = vectors_read_list(choice->path, &params.allow_count, &ids);
    params.allow = ids;
    params.any_tags = choice->any_tags;
    params.all_tags = choice->all_tags;
    params.none_tags = choice->none_tags;
    params.key_min = choice->key_min;
    params.key_max = choice->key_max;
    if (status == EXIT_DONE) {
        sl_status made = sl_filter_create(index, &params, out);
        if (made != SL_OK) status = report_status(index_path, made);
    }
    free(ids);
    return status;
}
