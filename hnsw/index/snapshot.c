#include "base/params.h"
#include "storage/store.h"

void sl_snapshot_params_init_sized(sl_snapshot_params *params, size_t struct_size) {
    const sl_snapshot_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

sl_status sl_index_snapshot(const char *path, const char *copy, const sl_snapshot_params *params) {
    if (!path || !copy) return sl_fail(SL_EINVAL, "path or copy is NULL");
    sl_snapshot_params mine;
    sl_snapshot_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_snapshot_params_init"));
    sl_progress progress;
    sl_progress_start(&progress, mine.progress, mine.progress_ctx, 0);
    return sl_store_snapshot(path, &sl_index_file, copy, mine.file_ops, &progress);
}
