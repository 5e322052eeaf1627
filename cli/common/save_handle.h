/* Saving a handle of the library. */
#ifndef CLI_COMMON_SAVE_HANDLE_H
#define CLI_COMMON_SAVE_HANDLE_H

#include <shortlist.h>

/* Saves a handle with its function, such as sl_index_save, and shows the progress. *seconds gets the duration. Returns
 * an exit status. */
typedef sl_status (*save_fn)(void *handle, const char *path, const sl_save_params *params);
int save_handle(save_fn save, void *handle, const char *path, int progress, double *seconds);

#endif
