/* The item table from inside: parts of rows in the layout of the file, and who may look at them when. */
#ifndef SL_RECOMMEND_ITEMS_H
#define SL_RECOMMEND_ITEMS_H

#include "base/hazard.h"
#include "base/thread.h"
#include "recommend/catalog.h"
#include "storage/origin.h"

#include <shortlist_rank.h>

/* Rows that a source is asked for at a time; each block becomes a part. */
#define SL_ITEMS_BLOCK 65536u
/* As many as a CSV file may have: names are looked for one by one. */
#define SL_MAX_COLUMNS 16384u

typedef struct sl_item_column {
    const char *name; /* in the schema's names */
    sl_column_type type;
    size_t dim; /* of a VECTOR, else 0 */
} sl_item_column;

/* What the first block of rows had. */
typedef struct sl_item_schema {
    sl_item_column *columns;
    size_t count;
    size_t id; /* number of the column of the ids */
    char *names;
    size_t names_size;
} sl_item_schema;

/* Rows that never change. Each array of the columns begins at a multiple of SL_CACHE_LINE of `data`; the bytes of text
 * columns lie in `text`. Both are sections of a file as they are, or lie in a mapped one. */
typedef struct sl_items_part {
    sl_table table; /* its rows as a table; columns in the schema's order */
    sl_column *columns;
    const uint64_t *ids;
    const uint8_t *data, *text;
    size_t data_size, text_size;
    int mapped; /* data and text are the file's; the ids never are */
} sl_items_part;

typedef enum sl_soundness { SL_UNVERIFIED, SL_SOUND, SL_DAMAGED } sl_soundness;

/* All parts and which rows of them count. It is replaced as a whole when too much of it is outdated. */
typedef struct sl_item_body {
    sl_guarded guarded; /* readers of the table announce the body that they use */
    sl_catalog catalog;
    size_t outdated; /* rows that newer ones stand for; the changing thread's */
    sl_store *store; /* of the mapped part, which is part 0, or NULL */
    int soundness;   /* atomic: what is known of its values and texts, an sl_soundness */
} sl_item_body;

/* The body in use, and who uses it. Readers and saves write here, to whom the table itself is const. */
typedef struct sl_item_access {
    sl_hazards bodies;
    int changing; /* atomic: somebody changes the table, or gathers it to be saved */
} sl_item_access;

struct sl_items {
    sl_allocator allocator;
    size_t references;     /* atomic */
    size_t size;           /* atomic: how many ids are known */
    sl_item_schema schema; /* fixed once the table is made */
    sl_origin *origin;     /* the file it was opened from; NULL: none */
    sl_item_access *access;
};

/* items.c */
sl_status sl_items_new(const sl_items_params *params, sl_items **out);
sl_items *sl_items_retain(sl_items *items);
/* Gives the body in use, which stays with its parts until sl_items_end of the hazard. Never waits. Errors: SL_ENOMEM.
 */
sl_status sl_items_begin(const sl_items *items, sl_hazard **hazard, sl_item_body **body);
void sl_items_end(sl_hazard *hazard);
/* The body in use, for the thread that has locked the table. */
static inline sl_item_body *sl_items_body(const sl_items *items) {
    return (sl_item_body *)sl_hazards_current(&items->access->bodies);
}
/* Column of that name; SIZE_MAX where there is none. */
size_t sl_items_column(const sl_items *items, const char *name);
sl_status sl_item_body_make(const sl_allocator *allocator, sl_item_body **out);
void sl_item_body_free(const sl_items *items, sl_item_body *body);
/* SL_EBUSY where another thread is changing the table. */
sl_status sl_items_lock(const sl_items *items);
void sl_items_unlock(const sl_items *items);

static inline sl_items_part *sl_items_part_of(const sl_item_body *body, size_t part) {
    return sl_catalog_part(&body->catalog, part);
}

/* items_schema.c: columns and ids of a block. */
sl_status sl_item_schema_make(const sl_allocator *allocator, const sl_table *block, const char *id,
                              sl_item_schema *out);
/* SL_ENOTFOUND: the table lacks this column, and which it has; `remedy` goes behind the name. */
sl_status sl_fail_no_item_column(const sl_item_schema *schema, const char *name, const char *remedy);
void sl_item_schema_free(const sl_allocator *allocator, sl_item_schema *schema);
/* out[c] is the block's column for the schema's column c, or NULL. Errors: SL_ENOTFOUND (a column the schema lacks, no
 * ids), SL_ETYPE, SL_EEXIST (a column twice). */
sl_status sl_item_schema_match(const sl_item_schema *schema, const sl_table *block, const sl_column **out);
/* The id of a row. Errors: SL_EVALUE, naming the row. */
sl_status sl_item_id(const sl_table *block, const sl_column *column, size_t row, uint64_t *out);

/* items_part.c: a part of n rows. Row i is row sl_ref_row(rows[i]) of the columns of source sl_ref_part(rows[i]), which
 * are sources[that]: an entry for each column of the schema, NULL where all are missing. */
sl_status sl_items_part_make(const sl_allocator *allocator, const sl_item_schema *schema,
                             const sl_column *const *const *sources, const sl_row_ref *rows, const uint64_t *ids,
                             size_t n, sl_items_part **out);
/* An empty part whose columns' arrays are to be placed. */
sl_status sl_items_part_new(const sl_allocator *allocator, const sl_item_schema *schema, size_t rows,
                            sl_items_part **out);
void sl_items_part_free(const sl_allocator *allocator, const sl_item_schema *schema, sl_items_part *part);
/* Asks for a column's rows first to first + count, which are about to be read in order, where they lie in a mapped
 * file: it is advised to be read at random, so that nothing else reads ahead. */
void sl_items_part_expect(const sl_item_body *body, const sl_items_part *part, size_t c, size_t first, size_t count);
/* The rows that count, in the order of parts and rows, and their ids: as many as the catalog knows ids. Nobody may be
 * changing the table. Returns their number. */
size_t sl_item_body_list(const sl_item_body *body, sl_row_ref *refs, uint64_t *ids);
/* The same rows as one part. */
sl_status sl_item_body_compact(const sl_items *items, const sl_item_body *body, sl_items_part **out);

/* items_check.c: the values and texts of the mapped part against the CRCs of the file; its ids and directory were
 * verified when it was opened. For who copies from it or reads all of it. SL_OK where nothing is mapped; SL_ECORRUPT.
 * Steps progress by sl_item_body_unverified bytes. */
sl_status sl_item_body_verify(sl_item_body *body, sl_progress *progress);
uint64_t sl_item_body_unverified(const sl_item_body *body);

/* items_update.c: rows made ready, and put in their places by what cannot fail. The table is locked meanwhile. */
typedef struct sl_item_change {
    sl_items_part *part; /* the table's once it is committed, which may move its rows and free it */
} sl_item_change;
sl_status sl_items_stage(sl_items *items, const sl_table *rows, sl_item_change *change);
void sl_items_commit(sl_items *items, sl_item_change *change);
void sl_items_cancel(sl_items *items, sl_item_change *change);

#endif
