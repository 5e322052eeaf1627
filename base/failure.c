#include "base/failure.h"

#include <stdio.h>

void sl_failure_init(sl_failure *failure) {
    *failure = (sl_failure){.status = SL_OK, .at = SIZE_MAX};
}

void sl_failure_keep(sl_failure *failure, size_t at, sl_status status) {
    if (status == SL_OK) return;
    sl_spin_lock(&failure->lock);
    if (at < failure->at) {
        failure->status = status;
        __atomic_store_n(&failure->at, at, __ATOMIC_RELAXED);
        snprintf(failure->message, sizeof failure->message, "%s", sl_last_error());
    }
    sl_spin_unlock(&failure->lock);
}

sl_status sl_failure_pass(const sl_failure *failure) {
    return failure->status == SL_OK ? SL_OK : sl_fail(failure->status, "%s", failure->message);
}
