/* Tables of rows: access to single cells, and errors that name the row. */
#ifndef SL_RANKER_FEATURES_TABLE_H
#define SL_RANKER_FEATURES_TABLE_H

#include "base/status.h"
#include "ranker/features/number.h"

#include <shortlist_rank.h>

/* Rows that callers ask a source for at a time. */
#define SL_BLOCK_ROWS 4096u

/* Checks that the caller filled in the table: struct_size, columns with names and values. Errors: SL_EINVAL. */
sl_status sl_table_check(const sl_table *table);
/* Checks that the source has its functions. Errors: SL_EINVAL. */
sl_status sl_rows_check(const sl_rows *rows);
/* Gets the next block of up to max_rows rows and checks it. 0 rows: the end. */
sl_status sl_rows_next(const sl_rows *rows, size_t max_rows, sl_table *block);
/* Returns the number of the column with that name; SIZE_MAX if there is none. */
size_t sl_table_find(const sl_table *table, const char *name);
/* Gives each row the number of its group: rows with the same value form a group. The number is a hash of the value's
 * text, so an integer and its text give the same group. Rows without a value are group 0. Two of a million groups share
 * a number with a chance of 1 in 36 million.
 * Parameters: `out` has an entry for each row. */
sl_status sl_table_groups(const sl_table *table, size_t column, uint64_t *out);
/* A list of names for a message: the names that fit, and the number of the others. */
typedef struct sl_names {
    char text[160];
    size_t used, more;
} sl_names;
void sl_names_add(sl_names *names, const char *name);
const char *sl_names_text(sl_names *names);

/* Fails with SL_ENOTFOUND. The message names the missing column and the table's columns.
 * Parameters: `what` says what the column is for: " of ids" or "". */
sl_status sl_fail_no_column(const sl_table *table, const char *name, const char *what);
/* Returns a column type's name, for messages. */
const char *sl_column_type_name(sl_column_type type);

/* Puts "ORIGIN: line N: column 'NAME': " (or "row N") in front of the message. */
sl_status sl_fail_at(sl_status status, const sl_table *table, size_t row, const char *column);

static inline int sl_column_has(const sl_column *column, size_t row) {
    return !column->valid || (column->valid[row / 8] >> (row % 8) & 1);
}

/* Reads a cell of an F32, F64, I32, I64 or TEXT column as a number. A missing cell is NaN.
 * Errors: SL_EVALUE (not a number, or infinite), SL_EINVAL (offsets that fall). */
sl_status sl_cell_number(const sl_column *column, size_t row, double *out);

/* A cell as a category. An integer stays an integer, so that a lookup need not write it as text. */
typedef enum sl_key_kind { SL_KEY_MISSING, SL_KEY_INTEGER, SL_KEY_TEXT } sl_key_kind;
typedef struct sl_key {
    sl_key_kind kind;
    int64_t integer;
    const char *text; /* valid for TEXT; for INTEGER after sl_key_text */
    size_t size;
    char room[SL_NUMBER_TEXT];
} sl_key;

/* Reads a cell of the same types as a category. Errors: SL_EVALUE (infinite), SL_EINVAL. */
sl_status sl_cell_key(const sl_column *column, size_t row, sl_key *key);
/* Makes a category of a text of a TEXT or TEXTS column. An empty text is missing. */
static inline void sl_key_of_text(sl_key *key, const char *text, size_t size) {
    key->kind = size ? SL_KEY_TEXT : SL_KEY_MISSING;
    key->text = text;
    key->size = size;
}
/* Sets the text of an INTEGER key. The text has no ending NUL. */
static inline void sl_key_text(sl_key *key) {
    if (key->kind != SL_KEY_INTEGER) return;
    key->text = key->room;
    key->size = sl_integer_write(key->integer, key->room);
}
/* The beginning of a text as messages show it. Control characters show as \n, \0 or \x1f, and bytes that are not UTF-8
 * as \xff. It is cut between two characters. */
typedef struct sl_shown {
    char text[48];
} sl_shown;
sl_shown sl_show(const char *text, size_t size);
/* Gets text number t of a TEXT or TEXTS column. Errors: SL_EINVAL (offsets that fall). */
sl_status sl_cell_text(const sl_column *column, int64_t t, const char **text, size_t *size);

#endif
