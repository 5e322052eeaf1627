/* The rows of CSV files, divided among ranks by bytes. Each rank reads whole rows alone: those that begin in its part
 * of the bytes. Line breaks within quotes begin no row.
 *
 *     bytes    |------ rank 0 ------|------ rank 1 ------|
 *     rows     ......\n.....\n......\n.."...\n..."\n.....\n
 *     rank 0   [                    ^      ]
 *     rank 1                                [           ]
 *
 * A rank cannot tell from its own bytes whether they begin within quotes. A part may begin in one of three states. The
 * rank finds the end state for each of them. The ranks exchange these, and each follows them from the start. */
#ifndef SL_RANKER_FEATURES_CSV_PARTS_H
#define SL_RANKER_FEATURES_CSV_PARTS_H

#include "base/ranks.h"

#include <shortlist_rank.h>

typedef struct sl_csv_parts sl_csv_parts;

/* Opens this rank's part of the files, which follow one another: the bytes of all of them are divided among the ranks.
 * ranks NULL: all rows.
 * Parameters: params as of sl_csv_open. Every file has the same columns.
 * Errors: SL_EVALUE (a file is not the same on all ranks), SL_EFORMAT, those of sl_csv_open. */
sl_status sl_csv_parts_open(const char *const *paths, size_t count, const sl_csv_params *params, const sl_ranks *ranks,
                            sl_csv_parts **out);
void sl_csv_parts_free(sl_csv_parts *parts);
/* The rows of the part. Their tables name the file that they come from, and its lines. */
sl_status sl_csv_parts_rows(sl_csv_parts *parts, sl_rows *out);
/* A number that differs from file to file. Added to a line's number, it identifies the row. */
const uint64_t *sl_csv_parts_position(const sl_csv_parts *parts);

#endif
