/* The JSON texts of specs, read and written by cJSON, the same under every locale. */
#ifndef SL_RANKER_FEATURES_JSON_H
#define SL_RANKER_FEATURES_JSON_H

#include "base/status.h"

#include <cjson/cJSON.h>

/* Reads the whole text. The caller deletes *out by cJSON_Delete. cJSON's memory is the C library's, since cJSON's hooks
 * belong to the process.
 * Errors: SL_EINVAL: the text is not JSON, or nested too deep. The message names the line. */
sl_status sl_json_parse(const char *text, cJSON **out);

/* Writes a tree as text, which the caller gives to free(). NULL: there is no memory for it. */
char *sl_json_print(const cJSON *root);

#endif
