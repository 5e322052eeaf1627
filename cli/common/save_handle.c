#include "cli/common/save_handle.h"

#include "cli/common/clock.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"

int save_handle(save_fn save, void *handle, const char *path, int progress_wanted, double *seconds) {
    progress progress;
    sl_save_params params;
    sl_save_params_init(&params);
    params.progress = progress_step;
    params.progress_ctx = &progress;
    double start = now_seconds();
    progress_begin(&progress, "saving", "bytes", 0, progress_wanted);
    sl_status status = save(handle, path, &params);
    progress_end(&progress, status == SL_OK);
    *seconds = now_seconds() - start;
    return status == SL_OK ? EXIT_DONE : report_status(path, status);
}
