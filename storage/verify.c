/* A whole file against the checksums that it has. */
#include "storage/live.h"

sl_status sl_store_verify_all(const sl_store *store, sl_verified *found, sl_progress *progress) {
    *found = (sl_verified){0};
    for (uint32_t i = 0; i < store->header.section_count; i++) {
        const sl_file_section *section = &store->header.sections[i];
        if (section->flags & SL_SECTION_CHANGING) continue;
        SL_TRY(sl_store_verify(store, section, progress));
        found->sections++;
    }
    if (!sl_live_head(store)) return SL_OK;
    sl_status status = sl_page_sums_verify(store, &found->pages, progress);
    found->unverified = status == SL_OK && !found->pages.checked;
    return status;
}
