/* Embedding tables in codes of 8 or 4 bits. Each row has its own scale and offset. Element i of a row is offset + scale
 * * code i. Scale and offset are codes too, of 16 bits in I8 rows and of 8 bits in I4 rows: multiples of the table's
 * steps.
 *
 *   row      | scale | offset | codes: dim bytes of I8, (dim + 1) / 2 bytes of I4 |
 *   scale    = table.scale_step * code
 *   offset   = table.offset + table.offset_step * code
 *  */
#ifndef SL_RANKER_MODEL_TABLE_CODES_H
#define SL_RANKER_MODEL_TABLE_CODES_H

#include "base/memory.h"
#include "ranker/net/loops.h"

#include <shortlist_rank.h>

#include <assert.h>
#include <string.h>

/* How a table's rows are coded, as a record of a file. In a table of floats, all fields except the type are 0. */
typedef struct sl_table_codes {
    uint32_t type; /* sl_table_type */
    float scale_step, offset, offset_step;
} sl_table_codes;
static_assert(sizeof(sl_table_codes) == 16, "sl_table_codes");

/* The coded tables of a model. `codes` and `rows` have an element for each table. All is 0 if no table is coded. */
typedef struct sl_coded_tables {
    sl_table_codes *codes;
    uint8_t **rows; /* NULL for a table of floats */
    uint8_t *block; /* the rows of all coded tables, table after table, then SL_CODES_SLACK bytes */
    size_t size;    /* bytes of the block without the slack */
} sl_coded_tables;

/* How to choose a row's range: from the smallest to the largest element, or by the least sum of squared errors. */
typedef enum sl_row_range { SL_ROW_MINMAX, SL_ROW_MSE } sl_row_range;

/* Bytes of a row's scale; its offset has as many. */
static inline size_t sl_row_head(sl_table_type type) {
    return type == SL_TABLE_I8 ? 2 : 1;
}

static inline size_t sl_row_bytes(sl_table_type type, size_t dim) {
    if (type == SL_TABLE_F32) return dim * sizeof(float);
    return 2 * sl_row_head(type) + (type == SL_TABLE_I8 ? dim : (dim + 1) / 2);
}

/* A row's scale and offset from their codes. */
static inline float sl_row_scale(const sl_table_codes *table, uint32_t code) {
    return table->scale_step * (float)code;
}

static inline float sl_row_offset(const sl_table_codes *table, uint32_t code) {
    return table->offset + table->offset_step * (float)code;
}

/* Decodes a row of `dim` elements into `out`, as `how` says. Reads up to SL_CODES_SLACK bytes after the row. */
static inline void sl_row_decode(const sl_loops *loops, const sl_table_codes *table, const uint8_t *row, size_t dim,
                                 sl_decode how, float *out) {
    if (table->type == SL_TABLE_I8) {
        uint16_t head[2];
        memcpy(head, row, sizeof head);
        loops->decode8(row + sizeof head, sl_row_scale(table, head[0]), sl_row_offset(table, head[1]), dim, how, out);
    } else {
        loops->decode4(row + 2, sl_row_scale(table, row[0]), sl_row_offset(table, row[1]), dim, how, out);
    }
}

/* Chooses a table's steps from its weights (size, dim), for rows of this type.
 * Errors: SL_EVALUE (weights so large that decoding would overflow). The message names neither table nor model. */
sl_status sl_table_codes_fit(const float *weights, size_t size, size_t dim, sl_table_type type, sl_table_codes *out);

/* Encodes a table. `rows` has size * sl_row_bytes bytes. */
void sl_table_codes_encode(const sl_table_codes *table, const float *weights, size_t size, size_t dim,
                           sl_row_range range, uint8_t *rows);

/* Returns the fault of a record from a file, or NULL. Rows of a record without fault decode to finite numbers. */
const char *sl_table_codes_fault(const sl_table_codes *table);

#endif
