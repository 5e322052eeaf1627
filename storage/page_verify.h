/* Verifies the pages of a file that is written in place by their checksums. */
#ifndef SL_STORAGE_PAGE_VERIFY_H
#define SL_STORAGE_PAGE_VERIFY_H

#include "storage/store.h"

/* Reads every page that is no hole and compares its checksum. Reads the file itself, on the store's number of threads;
 * holes stay holes. A page that another process is writing is read again. Steps progress by the bytes read. Fills in
 * *found even on failure.
 * Errors: SL_ECORRUPT names the first damaged page; SL_EIO, SL_ECANCELED. */
sl_status sl_page_sums_verify(const sl_store *store, sl_pages_found *found, sl_progress *progress);

#endif
