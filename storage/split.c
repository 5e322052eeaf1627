/* Rows of a section that lie in memory in parts. */
#include "storage/store.h"

#include <string.h>

/* Moves the part's bytes within [from, end) of a row: to `out`, or from `in` if that is NULL. Both hold the row's bytes
 * from `from` on. */
static void move_part(const sl_part *part, uint64_t number, size_t from, size_t end, uint8_t *out, const uint8_t *in) {
    size_t first = part->offset > from ? part->offset : from;
    size_t last = part->offset + part->size < end ? part->offset + part->size : end;
    if (first >= last) return;
    uint8_t *mine = part->at + number * part->step + (first - part->offset);
    if (out)
        memcpy(out + (first - from), mine, last - first);
    else
        memcpy(mine, in + (first - from), last - first);
}

static void move_rows(const sl_split_rows *rows, uint64_t at, size_t size, uint8_t *out, const uint8_t *in) {
    uint64_t number = at / rows->row;
    size_t from = (size_t)(at % rows->row);
    for (size_t done = 0, some; done < size; done += some, number++, from = 0) {
        some = rows->row - from < size - done ? rows->row - from : size - done;
        for (size_t i = 0; i < rows->count; i++)
            move_part(&rows->parts[i], number, from, from + some, out ? out + done : NULL, in ? in + done : NULL);
    }
}

void sl_split_gather(const sl_split_rows *rows, uint64_t at, size_t size, uint8_t *bytes) {
    memset(bytes, 0, size);
    move_rows(rows, at, size, bytes, NULL);
}

void sl_split_scatter(const sl_split_rows *rows, uint64_t at, size_t size, const uint8_t *bytes) {
    move_rows(rows, at, size, NULL, bytes);
}
