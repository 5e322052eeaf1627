/* The item table from inside: parts of rows, laid out as in the file, and when threads may read them. */
#ifndef SL_RECOMMEND_ITEMS_H
#define SL_RECOMMEND_ITEMS_H

#include "base/gate.h"
#include "base/hazard.h"
#include "base/thread.h"
#include "recommend/catalog.h"
#include "storage/origin.h"

#include <shortlist_rank.h>

/* Rows read from a source at a time. Each block of rows becomes a part. */
#define SL_ITEMS_BLOCK 65536u
/* The most columns, as in a CSV file. Names are searched one by one, so there can't be many. */
#define SL_MAX_COLUMNS 16384u

typedef struct sl_item_column {
    const char *name; /* points into the schema's names */
    sl_column_type type;
    size_t dim; /* elements of a VECTOR; 0 for other types */
} sl_item_column;

/* The columns of the table: those of the first block of rows. */
typedef struct sl_item_schema {
    sl_item_column *columns;
    size_t count;
    size_t id; /* number of the id column */
    char *names;
    size_t names_size;
} sl_item_schema;

/* Rows that never change. `data` holds the columns' arrays, each at a multiple of SL_CACHE_LINE. `text` holds the bytes
 * of text columns. Both have the layout of the file's sections, and may lie in a mapped file. */
typedef struct sl_items_part {
    sl_table table; /* the rows as a table, with columns in the schema's order */
    sl_column *columns;
    uint64_t *ids;
    const uint8_t *data, *text;
    uint8_t *own_data, *own_text; /* data and text of a part in memory; NULL: they lie in a mapped file */
    size_t data_size, text_size;
} sl_items_part;

typedef enum sl_soundness { SL_UNVERIFIED, SL_SOUND, SL_DAMAGED } sl_soundness;

/* All parts, and the row of each id. If too many rows are outdated, the body is replaced. */
typedef struct sl_item_body {
    sl_guarded guarded; /* readers announce the body they use */
    sl_catalog catalog;
    size_t outdated; /* rows that were replaced or deleted; only the changing thread uses it */
    sl_store *store; /* the mapped file of part 0; NULL: all parts are in memory */
    int soundness;   /* atomic: whether values and texts are known to be sound, an sl_soundness */
} sl_item_body;

/* The body in use, its readers, and who may change it. Readers and saves write here, although the table itself is const
 * to them. */
typedef struct sl_item_access {
    sl_hazards bodies;
    sl_gate changes; /* passed by the thread that changes the table, compacts it for a save, or prepares it */
} sl_item_access;

struct sl_items {
    sl_allocator allocator;
    size_t references;     /* atomic */
    size_t size;           /* atomic: number of items */
    sl_item_schema schema; /* fixed once the table is made */
    sl_origin *origin;     /* the file that the table was opened from; NULL: none */
    sl_item_access *access;
};

/* items_access.c: makes a table without columns and rows, with one reference. Errors: SL_ENOMEM. */
sl_status sl_items_new(const sl_items_params *params, sl_items **out);
/* Adds a reference, which sl_items_free drops. Takes NULL. */
sl_items *sl_items_retain(sl_items *items);
/* Gets the body in use. It stays, with all its parts, until sl_items_end.
 * Errors: SL_ENOMEM, if more threads read at once than ever before.
 * Threads: any; never waits. */
sl_status sl_items_begin(const sl_items *items, sl_hazard **hazard, sl_item_body **body);
void sl_items_end(sl_hazard *hazard);
/* The body in use, for the thread that holds the table's lock. */
static inline sl_item_body *sl_items_body(const sl_items *items) {
    return (sl_item_body *)sl_hazards_current(&items->access->bodies);
}
/* Makes a body without parts. Errors: SL_ENOMEM. */
sl_status sl_item_body_make(const sl_allocator *allocator, sl_item_body **out);
void sl_item_body_free(const sl_items *items, sl_item_body *body);
/* Locks the table against changes. Waits for another thread that holds the lock. The thread must not hold it. Errors:
 * SL_EBUSY, in a child that was forked while another thread held it. */
sl_status sl_items_lock(const sl_items *items);
void sl_items_unlock(const sl_items *items);

static inline sl_items_part *sl_items_part_of(const sl_item_body *body, size_t part) {
    return sl_catalog_part(&body->catalog, part);
}

/* items_schema.c: makes the schema of a block's columns; `id` names the id column.
 * Errors: SL_ENOTFOUND, SL_EEXIST (two columns with one name), SL_ETYPE (of the id column), SL_ELIMIT. */
sl_status sl_item_schema_make(const sl_allocator *allocator, const sl_table *block, const char *id,
                              sl_item_schema *out);
/* The number of the column with this name, or SIZE_MAX. */
size_t sl_items_column(const sl_items *items, const char *name);
/* Returns SL_ENOTFOUND with a message that names the missing column, `remedy`, and the existing columns. */
sl_status sl_fail_no_item_column(const sl_item_schema *schema, const char *name, const char *remedy);
void sl_item_schema_free(const sl_allocator *allocator, sl_item_schema *schema);
/* Finds the block's column for each column of the schema; out[c] is NULL if the block lacks column c. The id column may
 * have any type that ids have.
 * Errors: SL_ENOTFOUND (a column that the schema lacks, or no ids), SL_ETYPE, SL_EEXIST (a column twice). */
sl_status sl_item_schema_match(const sl_item_schema *schema, const sl_table *block, const sl_column **out);
/* Reads the id of a row. Errors: SL_EVALUE with a message that names the row. */
sl_status sl_item_id(const sl_table *block, const sl_column *column, size_t row, uint64_t *out);

/* items_ids.c: an id column of the table's type, made of ids from a column of another type. */
typedef struct sl_item_ids {
    sl_column column;
    void *values, *offsets;
    size_t size, count; /* bytes of values; number of offsets */
} sl_item_ids;
/* Makes the column. The caller frees it, even after a failure.
 * Errors: SL_ETYPE (an id that the type can't hold), SL_ENOMEM. */
sl_status sl_item_ids_make(const sl_allocator *allocator, const sl_item_column *as, const uint64_t *ids, size_t n,
                           sl_item_ids *out);
void sl_item_ids_free(const sl_allocator *allocator, sl_item_ids *ids);

/* items_part.c: rows to be copied into a part. Row i has the id ids[i]. Its columns come from row i of `set`, and the
 * others from row rows[i] of the body. */
typedef struct sl_part_rows {
    const sl_column *const *set; /* set[c]: column c, or NULL: it comes from the body. NULL: all columns do */
    const sl_item_body *body;    /* NULL: the values of the other columns are missing */
    const sl_row_ref *rows;      /* rows of the body; NULL without a body */
    const uint64_t *ids;
    size_t n;
} sl_part_rows;
/* Copies the rows into a new part. Errors: SL_ENOMEM, SL_ELIMIT, SL_EINVAL (text lists that fall). */
sl_status sl_items_part_make(const sl_allocator *allocator, const sl_item_schema *schema, const sl_part_rows *from,
                             sl_items_part **out);
/* Makes a part whose columns get their arrays from the caller. Errors: SL_ENOMEM. */
sl_status sl_items_part_new(const sl_allocator *allocator, const sl_item_schema *schema, size_t rows,
                            sl_items_part **out);
void sl_items_part_free(const sl_allocator *allocator, const sl_item_schema *schema, sl_items_part *part);
/* Reads ahead `count` rows of column c from row `first` on, if the part lies in a mapped file. The file is advised for
 * random reads, so the system reads nothing ahead by itself. */
void sl_items_part_read_ahead(const sl_item_body *body, const sl_items_part *part, size_t c, size_t first,
                              size_t count);
/* Lists the current row of each id, in the order of parts and rows. refs and ids have room for all ids of the catalog.
 * Returns the number of rows.
 * Threads: no thread may change the table meanwhile. */
size_t sl_item_body_list(const sl_item_body *body, sl_row_ref *refs, uint64_t *ids);
/* Copies these rows into one new part. */
sl_status sl_item_body_compact(const sl_items *items, const sl_item_body *body, sl_items_part **out);

/* items_check.c: verifies a mapped part's values and texts by the file's CRCs, before they are copied or read in full.
 * Opening has verified ids and directory. SL_OK if no part is mapped.
 * Parameters: `progress` is stepped by sl_item_body_unverified bytes in all; NULL: none. Errors: SL_ECORRUPT, SL_EIO.
 */
sl_status sl_item_body_verify(sl_item_body *body, sl_progress *progress);
uint64_t sl_item_body_unverified(const sl_item_body *body);

/* items_update.c: an update in two steps. Staging may fail, and readers see nothing of it; committing can't fail. The
 * caller holds the table's lock from the first step to the end of the second. */
typedef struct sl_item_change {
    sl_items_part *part; /* the update's rows. Committing gives the part to the table, which may compact it at once */
} sl_item_change;
/* Makes the part, and room for its rows. partial: 1 sets the given columns of rows that are there, 0 replaces and adds
 * whole rows. Errors: as of sl_items_set and sl_items_update. */
sl_status sl_items_stage(sl_items *items, const sl_table *rows, int partial, sl_item_change *change);
/* Puts the rows in use. */
void sl_items_commit(sl_items *items, sl_item_change *change);
/* Frees the rows. */
void sl_items_cancel(sl_items *items, sl_item_change *change);
/* Compacts the table if many rows are outdated, and frees old bodies that no reader uses. Can't fail. The caller holds
 * the table's lock. */
void sl_items_compact_if_outdated(sl_items *items);

/* items_delete.c: a deletion in two steps, as an update. Checks that each id is there, once. `served`: the rows of a
 * recommender, where an id may still be that was deleted from the table alone; NULL: none.
 * Errors: as of sl_items_delete. */
sl_status sl_items_check_deletion(const sl_items *items, const sl_catalog *served, const uint64_t *ids, size_t n);
/* Deletes the ids that the table has. Can't fail. */
void sl_items_commit_deletion(sl_items *items, const uint64_t *ids, size_t n);

#endif
