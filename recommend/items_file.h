/* The DIRECTORY section of an item table's file, byte by byte. docs/FORMAT.md describes it. */
#ifndef SL_RECOMMEND_ITEMS_FILE_H
#define SL_RECOMMEND_ITEMS_FILE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define SL_NOWHERE UINT64_MAX /* the offset of an array that a column lacks */

typedef struct sl_directory_head {
    uint64_t rows;
    uint32_t columns;
    uint32_t id_column;
} sl_directory_head;

/* A column. Offsets of arrays count from the start of COLUMNS and are multiples of 8. Offsets of texts count from the
 * start of TEXT. Offsets of names count from the names, which follow the last column.
 *
 * In a table with deleted ids, zero bytes after the names lead to a multiple of 8. The deleted ids and their number
 * follow, each a uint64_t, and end the directory. The ids are in the order of deletion. */
typedef struct sl_directory_column {
    uint32_t type;
    uint32_t dim;
    uint64_t values;
    uint64_t offsets;
    uint64_t lists;
    uint64_t valid;
    uint64_t text;
    uint64_t texts;      /* number of texts that the offsets delimit */
    uint64_t text_bytes; /* bytes of all texts */
    uint64_t name;
} sl_directory_column;

#define SL_DIRECTORY_AT(type, field, offset) static_assert(offsetof(type, field) == (offset), #type "." #field)
SL_DIRECTORY_AT(sl_directory_head, columns, 8);
SL_DIRECTORY_AT(sl_directory_head, id_column, 12);
static_assert(sizeof(sl_directory_head) == 16, "sl_directory_head");
SL_DIRECTORY_AT(sl_directory_column, dim, 4);
SL_DIRECTORY_AT(sl_directory_column, values, 8);
SL_DIRECTORY_AT(sl_directory_column, offsets, 16);
SL_DIRECTORY_AT(sl_directory_column, lists, 24);
SL_DIRECTORY_AT(sl_directory_column, valid, 32);
SL_DIRECTORY_AT(sl_directory_column, text, 40);
SL_DIRECTORY_AT(sl_directory_column, texts, 48);
SL_DIRECTORY_AT(sl_directory_column, text_bytes, 56);
SL_DIRECTORY_AT(sl_directory_column, name, 64);
static_assert(sizeof(sl_directory_column) == 72, "sl_directory_column");

#endif
