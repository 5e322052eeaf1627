/* Rankers with embedding tables in codes. */
#ifndef SL_RANKER_QUANTISE_QUANTISE_TABLES_H
#define SL_RANKER_QUANTISE_QUANTISE_TABLES_H

#include "ranker/model/model.h"

/* Makes a ranker with another ranker's weights and one type for each embedding table, sl_ranker_info.embeddings types
 * in all. Each row gets the range of least squared error. The new ranker keeps no floats of a coded table.
 * Errors: SL_EINVAL (an unknown type, a model that has coded tables already), SL_EVALUE (weights too large); both name
 * the table. SL_ENOMEM. */
sl_status sl_ranker_with_tables(const sl_ranker *from, const sl_table_type *types, sl_ranker **out);
/* The same, with a rule for the rows' ranges. */
sl_status sl_ranker_with_table_ranges(const sl_ranker *from, const sl_table_type *types, sl_row_range range,
                                      sl_ranker **out);

#endif
