#include "cli/files/cell_lists.h"

#include "cli/common/report.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64 /* characters of a number, with room to spare */

cell column_cell(const sl_column *column, size_t row) {
    const char *bytes = column->values;
    int64_t first = column->offsets[row], end = column->offsets[row + 1];
    return (cell){bytes + first, (size_t)(end - first)};
}

void id_lists_free(id_lists *lists) {
    free(lists->ids);
    free(lists->start);
    *lists = (id_lists){0};
}

void id_lists_clear(id_lists *lists) {
    lists->lists = 0;
}

/* Grows the block for more than `used` entries. Returns NULL and reports if memory is short. */
static void *grow_list(void *block, size_t *room, size_t used, size_t element) {
    if (used < *room) return block;
    size_t wanted = *room < 512 ? 1024 : *room * 2;
    void *larger = realloc(block, wanted * element);
    if (larger)
        *room = wanted;
    else
        (void)report_failure("out of memory: cannot hold %zu ids of the requests; free some memory", wanted);
    return larger;
}

/* Writes one byte of a number, or two bytes that make it not a number. */
static size_t put_byte(char byte, char *out, size_t room) {
    if (byte || room < 2) {
        *out = byte ? byte : '?';
        return 1;
    }
    memcpy(out, "\\0", 2);
    return 2;
}

/* Copies the next part of the cell, up to `separator`, into `out`: without blanks around it, ended by NUL. Moves the
 * cell past it. A part with a NUL byte does not read as a number, and neither does a part that is too long: it ends in
 * dots. */
static void copy_part(cell *cell, char separator, char *out) {
    const char *end = memchr(cell->text, separator, cell->length), *from = cell->text;
    const size_t length = end ? (size_t)(end - from) : cell->length, taken = length + (end != NULL);
    const char *to = from + length;
    size_t used = 0;
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    for (; from < to && used < NUMBER_MAX - 1; from++)
        used += put_byte(*from, out + used, NUMBER_MAX - 1 - used);
    if (from < to) memset(out + used - 3, '.', 3);
    out[used] = '\0';
    *cell = (struct cell){cell->text + taken, cell->length - taken};
}

static int append_id(id_lists *lists, size_t used, const char *text, const char *where) {
    char *stop;
    errno = 0;
    unsigned long long id = strtoull(text, &stop, 10);
    if (!isdigit((unsigned char)*text) || *stop || errno || id == SL_NO_ID)
        return report_failure("%s: '%s' is no id; write whole numbers with | between them", where, text);
    uint64_t *ids = grow_list(lists->ids, &lists->room, used, sizeof *ids);
    if (!ids) return EXIT_FAILED;
    lists->ids = ids;
    ids[used] = id;
    return EXIT_DONE;
}

int id_lists_append(id_lists *lists, cell cell, const char *where) {
    size_t *start = grow_list(lists->start, &lists->start_room, lists->lists + 1, sizeof *start);
    if (!start) return EXIT_FAILED;
    lists->start = start;
    if (!lists->lists) start[0] = 0;
    size_t used = start[lists->lists];
    for (; cell.length; used++) {
        char part[NUMBER_MAX];
        copy_part(&cell, '|', part);
        int status = append_id(lists, used, part, where);
        if (status != EXIT_DONE) return status;
    }
    start[++lists->lists] = used;
    return EXIT_DONE;
}

static void skip_blanks(cell *cell) {
    while (cell->length && isspace((unsigned char)*cell->text))
        *cell = (struct cell){cell->text + 1, cell->length - 1};
}

int cell_numbers(cell cell, float *out, size_t dim, const char *where) {
    size_t count = 0;
    for (skip_blanks(&cell); cell.length; skip_blanks(&cell)) {
        char part[NUMBER_MAX], *stop = part;
        copy_part(&cell, ' ', part);
        float value = strtof(part, &stop);
        if (stop == part || *stop || !isfinite(value))
            return report_failure(
                "%s: '%s' is no finite number; write numbers of up to 63 characters with blanks between them", where,
                part);
        if (count < dim) out[count] = value;
        count++;
    }
    if (count == dim) return EXIT_DONE;
    return report_failure("%s: %zu numbers, but the index's vectors have %zu elements; use vectors of the same model",
                          where, count, dim);
}
