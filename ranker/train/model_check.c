/* Checks that a file still holds the model that was written to it. */
#include "base/params.h"
#include "ranker/model/model_file.h"
#include "ranker/train/checkpoint.h"

/* Checks the model by opening it, because opening checks every property of a model. */
static sl_status check_model(const sl_store *store, const sl_allocator *allocator, sl_ranker_check_report *report) {
    sl_ranker *ranker;
    sl_ranker_info info = {.struct_size = sizeof info};
    SL_TRY(sl_model_open(store, allocator, &ranker));
    sl_status status = sl_ranker_get_info(ranker, &info);
    report->features = info.features;
    report->parameters = info.parameters;
    sl_ranker_free(ranker);
    return status;
}

static sl_status check_store(const sl_store *store, const sl_allocator *allocator, sl_ranker_check_report *report,
                             sl_progress *progress) {
    const sl_file_section *trainer = sl_store_section(store, SL_SECTION_TRAINER);
    sl_verified found;
    report->checkpoint = trainer != NULL;
    sl_status status = sl_store_verify_all(store, &found, progress);
    report->sections_checked = found.sections;
    report->bytes_checked = found.bytes;
    if (status == SL_OK) status = check_model(store, allocator, report);
    if (status == SL_OK && trainer) status = sl_checkpoint_check(store, trainer, allocator);
    return status == SL_OK ? sl_progress_end(progress) : status;
}

sl_status sl_ranker_check(const char *path, const sl_file_check_params *params, sl_ranker_check_report *report) {
    sl_file_check_params mine;
    sl_ranker_check_report found = {.struct_size = sizeof found};
    sl_progress progress;
    sl_store *store;
    if (!path) return sl_fail(SL_EINVAL, "path is NULL");
    sl_file_check_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_file_check_params_init"));
    SL_TRY(sl_params_check_out(report, "sl_ranker_check_report"));
    sl_allocator allocator = sl_allocator_of(mine.allocator);
    sl_status status = sl_store_open(path, &sl_ranker_file, SL_PLACE_DRAM, &allocator, &store);
    if (status == SL_OK) {
        sl_progress_start(&progress, mine.progress, mine.progress_ctx, store->size);
        status = check_store(store, &allocator, &found, &progress);
        sl_store_close(store, &allocator);
    }
    sl_params_out(report, &found, sizeof found);
    return status;
}
