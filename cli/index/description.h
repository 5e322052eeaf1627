/* An index in words and in JSON. */
#ifndef CLI_INDEX_DESCRIPTION_H
#define CLI_INDEX_DESCRIPTION_H

#include "cli/common/json_out.h"

#include <shortlist.h>

/* The chosen codes; for `choice` -1 the default codes of this type. */
sl_codes index_codes(int choice, sl_dtype dtype);

/* Writes the members that every object about an index begins with: n, deleted, dim, metric, … isa. */
void json_index(json *json, const sl_index_stats *stats);

/* " clip mse", " clip quantile:0.01"; "" if the clip is the codes' default. */
typedef struct clip_text {
    char text[48];
} clip_text;
clip_text text_of_clip(const sl_index_stats *stats);

/* Prints one line about an index: "339479 vectors of 100 f32, cosine, codes i8, refine bf16, m 16, ef_build 200". */
void print_index(const sl_index_stats *stats);

/* Reports a -k or --ef of 0, above n or above SL_MAX_EF. `option` names it, and `path` names the file of n vectors. */
int check_depth(const char *option, size_t value, size_t n, const char *path);

#endif
