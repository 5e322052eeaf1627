/* Reads and writes the JSON of specs by cJSON, the same under every locale. */
#ifndef SL_RANKER_FEATURES_JSON_H
#define SL_RANKER_FEATURES_JSON_H

#include "base/status.h"

#include <cjson/cJSON.h>

/* Reads the whole text. The caller frees *out by cJSON_Delete. cJSON allocates by the C library, because its hooks
 * belong to the process.
 * Errors: SL_EINVAL: the text is not JSON, or is nested too deep. The message names the line. */
sl_status sl_json_parse(const char *text, cJSON **out);

/* Writes a tree as text. The caller frees the text by free(). NULL: out of memory. */
char *sl_json_print(const cJSON *root);

#endif
