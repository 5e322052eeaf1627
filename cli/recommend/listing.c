#include "cli/recommend/listing.h"

#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/system.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct listing {
    listing_kind kind;
    FILE *file;     /* memory: written out block by block; for JSON on stdout, at the end */
    output *output; /* NULL: stdout */
    char *memory;
    size_t memory_size;
    json json;
    const sl_items *items;
    char *names; /* the columns' names, split from one text */
    const char *columns[LISTING_COLUMNS_MAX];
    size_t column_count;
    char *text; /* text of one value */
    size_t text_size;
};

static int has_column(const sl_items *items, const char *column) {
    const char *name;
    for (size_t i = 0; (name = sl_items_column_name(items, i)) != NULL; i++)
        if (strcmp(name, column) == 0) return 1;
    return 0;
}

static int read_columns(listing *listing, const char *columns) {
    if (!columns) return EXIT_DONE;
    if (!listing->items) return report_failure("--show needs an item table, but ITEMS is none; leave it out");
    listing->names = strdup(columns);
    if (!listing->names) return report_failure("out of memory");
    for (char *name = listing->names, *next; name; name = next) {
        next = strchr(name, ',');
        if (next) *next++ = '\0';
        if (listing->column_count == LISTING_COLUMNS_MAX)
            return report_failure("--show names more than %d columns; show fewer", LISTING_COLUMNS_MAX);
        if (!*name || !has_column(listing->items, name))
            return report_failure(
                "--show names '%s', which is no column of the item table; name those of the .csv file "
                "it was built from",
                name);
        listing->columns[listing->column_count++] = name;
    }
    return EXIT_DONE;
}

/* The value of an item's column, ended by NUL, until the next call. "": the table lacks the item. */
static const char *value_of(listing *listing, uint64_t id, size_t column) {
    size_t length = 0;
    for (;;) {
        sl_status status =
            sl_items_text(listing->items, id, listing->columns[column], listing->text, listing->text_size, &length);
        if (status != SL_OK) return "";
        if (length < listing->text_size) return listing->text;
        char *larger = realloc(listing->text, length + 1);
        if (!larger) return listing->text; /* cut short */
        listing->text = larger;
        listing->text_size = length + 1;
    }
}

static void csv_field(FILE *file, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void begin_listing(listing *listing) {
    if (listing->kind == LISTING_JSON) {
        json_begin(&listing->json, listing->file);
        json_open_array(&listing->json, "answers");
    } else if (listing->kind == LISTING_CSV) {
        fputs("request,rank,id,score,recall_score", listing->file);
        for (size_t i = 0; i < listing->column_count; i++) {
            fputc(',', listing->file);
            csv_field(listing->file, listing->columns[i]);
        }
        fputc('\n', listing->file);
    }
}

int listing_create(listing_kind kind, const char *path, const sl_items *items, const char *columns, listing **out) {
    *out = NULL;
    listing *listing = allocate(1, sizeof *listing);
    if (!listing) return EXIT_FAILED;
    *listing = (struct listing){.kind = kind, .items = items, .text_size = 256};
    listing->text = allocate(listing->text_size, 1);
    int status = listing->text ? read_columns(listing, columns) : EXIT_FAILED;
    if (status == EXIT_DONE && path) status = output_create(path, &listing->output);
    if (status == EXIT_DONE) {
        listing->file = open_memstream(&listing->memory, &listing->memory_size);
        if (!listing->file) status = report_failure("out of memory");
    }
    if (status == EXIT_DONE) {
        begin_listing(listing);
        *out = listing;
    } else
        listing_discard(listing);
    return status;
}

typedef struct row {
    size_t request, rank; /* rank from 1 */
    uint64_t id;
    double score, recall_score;
} row;

static void text_row(listing *listing, const row *row) {
    if (row->rank == 1) fprintf(listing->file, "request %zu\n", row->request);
    fprintf(listing->file, "%6zu %12" PRIu64 " %10.5f %10.5f", row->rank, row->id, row->score, row->recall_score);
    for (size_t i = 0; i < listing->column_count; i++)
        fprintf(listing->file, "  %s", value_of(listing, row->id, i));
    fputc('\n', listing->file);
}

static void csv_row(listing *listing, const row *row) {
    fprintf(listing->file, "%zu,%zu,%" PRIu64 ",%.9g,%.9g", row->request, row->rank, row->id, row->score,
            row->recall_score);
    for (size_t i = 0; i < listing->column_count; i++) {
        fputc(',', listing->file);
        csv_field(listing->file, value_of(listing, row->id, i));
    }
    fputc('\n', listing->file);
}

static void json_row(listing *listing, const row *row) {
    json *json = &listing->json;
    json_open_object(json, NULL);
    json_count(json, "id", row->id);
    json_real(json, "score", row->score);
    json_real(json, "recall_score", row->recall_score);
    for (size_t i = 0; i < listing->column_count; i++)
        json_text(json, listing->columns[i], value_of(listing, row->id, i));
    json_close_object(json);
}

/* Writes the text in memory to its output. */
static int write_text_so_far(listing *listing) {
    int status = EXIT_DONE;
    if (fflush(listing->file) != 0 || ferror(listing->file))
        return report_failure("out of memory: cannot hold a block of results; free some memory");
    if (listing->output)
        status = output_write(listing->output, listing->memory, listing->memory_size);
    else
        fwrite(listing->memory, 1, listing->memory_size, stdout);
    rewind(listing->file);
    return status;
}

int listing_take(void *ctx, const answers *answers) {
    static void (*const writers[])(listing *, const row *) = {text_row, csv_row, json_row};
    listing *listing = ctx;
    for (size_t i = 0; i < answers->count; i++) {
        if (listing->kind == LISTING_JSON) {
            json_open_object(&listing->json, NULL);
            json_count(&listing->json, "request", answers->first + i);
            json_open_array(&listing->json, "items");
        }
        for (size_t j = 0; j < answers->n; j++) {
            size_t at = i * answers->n + j;
            if (answers->ids[at] == SL_NO_ID) break;
            const row row = {.request = answers->first + i,
                             .rank = j + 1,
                             .id = answers->ids[at],
                             .score = (double)answers->scores[at],
                             .recall_score = (double)answers->recall_scores[at]};
            writers[listing->kind](listing, &row);
        }
        if (listing->kind != LISTING_JSON) continue;
        json_close_array(&listing->json);
        json_close_object(&listing->json);
    }
    /* JSON on stdout is printed whole or not at all. */
    return listing->kind == LISTING_JSON && !listing->output ? EXIT_DONE : write_text_so_far(listing);
}

json *listing_json(listing *listing) {
    json_close_array(&listing->json);
    return &listing->json;
}

int listing_commit(listing *listing) {
    if (listing->kind == LISTING_JSON && listing->output) json_end(listing_json(listing));
    int status = write_text_so_far(listing);
    if (status == EXIT_DONE && listing->output) {
        status = output_commit(listing->output);
        listing->output = NULL;
    }
    listing_discard(listing);
    return status;
}

void listing_discard(listing *listing) {
    if (!listing) return;
    if (listing->file) fclose(listing->file);
    output_discard(listing->output);
    free(listing->memory);
    free(listing->names);
    free(listing->text);
    free(listing);
}
