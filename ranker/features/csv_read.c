/* The parser of rows. It reads a buffer over the file. If the buffer ends within a row, it reads more and parses the
 * row again. */
#define _GNU_SOURCE
#include "ranker/features/csv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BUFFER ((size_t)1 << 20)
/* The parser reads words, and copies short texts in steps of 16 bytes. Both may pass a text's end. */
#define SLACK 16u

/* How a row ended. */
typedef enum row_end { ROW_WHOLE, ROW_CUT, ROW_BAD } row_end;

/* The row being read. */
typedef struct row_state {
    const char *at, *end;
    const char *error; /* of ROW_BAD: what SL_EFORMAT says; NULL if the message is already set */
    sl_status status;
    uint64_t breaks; /* line breaks within quotes */
    int last;        /* whether the last field read ends the row */
} row_state;

/* ---- The buffer ---- */

/* The line break does not count as bytes of the row. */
#define LINE_BREAK 2u

static sl_status fail_row_too_long(const sl_csv *csv) {
    return sl_fail(SL_EFORMAT, "%s: line %llu begins a row of more than %zu MB; is a quote never closed?", csv->path,
                   (unsigned long long)csv->line, SL_CSV_ROW_LIMIT >> 20);
}

/* Reads more of the file. Moves unparsed bytes to the front, and grows the buffer if they fill it. */
static sl_status fill_buffer(sl_csv *csv) {
    size_t rest = csv->end - csv->at;
    if (rest > SL_CSV_ROW_LIMIT + LINE_BREAK) return fail_row_too_long(csv);
    if (csv->at && rest) memmove(csv->buffer, csv->buffer + csv->at, rest);
    csv->at = 0;
    csv->end = rest;
    size_t need = 2 * rest + SLACK > FIRST_BUFFER ? 2 * rest + SLACK : FIRST_BUFFER;
    sl_status status = SL_OK;
    csv->buffer = sl_mem_grow(&csv->allocator, csv->buffer, &csv->buffer_room, need, 1, &status);
    SL_TRY(status);
    size_t room = csv->buffer_room - SLACK - rest;
    ssize_t got;
    do
        got = read(csv->fd, csv->buffer + rest, room);
    while (got < 0 && errno == EINTR);
    if (got < 0) return sl_fail_errno("cannot read", csv->path);
    csv->at_end = got == 0;
    csv->end += (size_t)got;
    csv->read += (uint64_t)got;
    /* This line break stops every search at the buffer's end. */
    csv->buffer[csv->end] = '\n';
    return SL_OK;
}

/* Refuses files of other formats by their first bytes, which no CSV header has. */
static sl_status refuse_other_formats(const sl_csv *csv) {
    static const struct {
        const char *bytes, *name;
    } others[] = {{"\x1f\x8b", "gzip"},
                  {"\x28\xb5\x2f\xfd", "Zstandard"},
                  {"PK\x03\x04", "ZIP (also .xlsx)"},
                  {"PAR1\x15", "Parquet"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const size_t size = strlen(others[i].bytes);
        if (csv->end >= size && memcmp(csv->buffer, others[i].bytes, size) == 0)
            return sl_fail(SL_EFORMAT, "%s: the file is of the format %s; unpack it or write it as CSV text", csv->path,
                           others[i].name);
    }
    return SL_OK;
}

sl_status csv_start(sl_csv *csv) {
    static const char mark[] = "\xef\xbb\xbf";
    csv->at = csv->end = 0;
    csv->at_end = 0;
    csv->read = 0;
    csv->line = 1;
    while (csv->end < sizeof mark - 1 && !csv->at_end)
        SL_TRY(fill_buffer(csv));
    if (csv->end >= sizeof mark - 1 && memcmp(csv->buffer, mark, sizeof mark - 1) == 0) csv->at = sizeof mark - 1;
    return refuse_other_formats(csv);
}

/* ---- Fields ---- */

#define BROKEN_LINES                                                                                                   \
    "a line ends with \\r\\r\\n: line ends were written twice; write them as \\n or \\r\\n (in Python: open with "     \
    "newline='')"
#define LONE_RETURN "\\r stands in the header without \\n behind it: lines end with \\n or \\r\\n"

#define EACH(byte) (0x0101010101010101u * (uint8_t)(byte))

/* Returns 0x80 in each byte of x that is 0, and 0 in the others. It is exact: no borrow runs from byte to byte. */
static uint64_t zero_bytes(uint64_t x) {
    return ~(((x & EACH(0x7f)) + EACH(0x7f)) | x | EACH(0x7f));
}

/* Returns the first delimiter or line break from `at` on. The line break at the buffer's end stops the search. */
static const char *find_end(const char *at, char delimiter) {
    for (;; at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        uint64_t found = zero_bytes(word ^ EACH(delimiter)) | zero_bytes(word ^ EACH('\n'));
        if (!found) continue;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        return at + __builtin_ctzll(found) / 8;
#else
        return at + __builtin_clzll(found) / 8;
#endif
    }
}

/* Appends a text to a column. SLACK more bytes must be readable after the text. */
static sl_status append_text(sl_csv *csv, csv_field *field, const char *text, size_t size) {
    size_t need = field->used + size + SLACK;
    if (need > field->room) {
        sl_status status = SL_OK;
        field->bytes = sl_mem_grow(&csv->allocator, field->bytes, &field->room, need, 1, &status);
        SL_TRY(status);
    }
    char *to = field->bytes + field->used;
    if (size <= SLACK)
        memcpy(to, text, SLACK);
    else
        memcpy(to, text, size);
    field->used += size;
    return SL_OK;
}

static row_end row_error(row_state *state, const char *error) {
    state->error = error;
    return ROW_BAD;
}

/* Reads what follows a closing quote: a delimiter, a line break, or the end of the file. */
static row_end close_quote(const sl_csv *csv, row_state *state) {
    if (state->at == state->end && !csv->at_end) return ROW_CUT;
    if (state->at < state->end && *state->at == '\r') {
        if (state->at + 1 == state->end && !csv->at_end) return ROW_CUT;
        if (state->at + 1 < state->end && state->at[1] == '\r') return row_error(state, BROKEN_LINES);
        if (state->at + 1 == state->end || state->at[1] == '\n') state->at++;
    }
    if (*state->at != csv->delimiter && *state->at != '\n') return row_error(state, "text follows a closing quote");
    state->last = *state->at == '\n';
    state->at++;
    return ROW_WHOLE;
}

static row_end read_quoted(sl_csv *csv, csv_field *field, row_state *state) {
    state->at++;
    for (;;) {
        const char *from = state->at;
        const char *quote = memchr(from, '"', (size_t)(state->end - from));
        if (!quote) return csv->at_end ? row_error(state, "a quote is never closed") : ROW_CUT;
        for (const char *at = from; (at = memchr(at, '\n', (size_t)(quote - at))); at++)
            state->breaks++;
        /* A doubled quote stands for one quote. It is copied together with the text before it. */
        int doubled = quote + 1 < state->end && quote[1] == '"';
        state->status = append_text(csv, field, from, (size_t)(quote - from) + (size_t)doubled);
        if (state->status != SL_OK) return row_error(state, NULL);
        state->at = quote + 1 + doubled;
        if (!doubled && state->at == state->end && !csv->at_end) return ROW_CUT;
        if (!doubled) return close_quote(csv, state);
    }
}

/* Reads one field. state->at then is after its delimiter or line break. */
static inline row_end read_field(sl_csv *csv, csv_field *field, row_state *state) {
    const char *from = state->at;
    if (*from == '"' && from < state->end) return read_quoted(csv, field, state);
    const char *to = find_end(from, csv->delimiter);
    if (to >= state->end && !csv->at_end) return ROW_CUT;
    if (to > state->end) to = state->end;
    size_t size = (size_t)(to - from);
    state->last = *to == '\n';
    if (state->last && size && to[-1] == '\r') size--;
    if (state->last && size && from[size - 1] == '\r') return row_error(state, BROKEN_LINES);
    state->status = append_text(csv, field, from, size);
    state->at = to + 1;
    return state->status == SL_OK ? ROW_WHOLE : row_error(state, NULL);
}

/* ---- Rows ---- */

static row_end read_fields(sl_csv *csv, size_t row, row_state *state) {
    size_t i = 0;
    do {
        if (i == csv->column_count) return row_error(state, "too many fields");
        csv_field *field = &csv->fields[i++];
        if (row == 0) field->used = 0;
        field->offsets[row] = (int64_t)field->used;
        row_end ended = read_field(csv, field, state);
        if (ended != ROW_WHOLE) return ended;
        field->offsets[row + 1] = (int64_t)field->used;
    } while (!state->last);
    return i == csv->column_count ? ROW_WHOLE : row_error(state, "too few fields");
}

/* Reads the header into one column. A header may have any number of fields. */
static row_end read_header_fields(sl_csv *csv, size_t *count, row_state *state) {
    csv_field *field = &csv->header;
    field->used = *count = 0;
    do {
        state->status = SL_OK;
        field->offsets = sl_mem_grow(&csv->allocator, field->offsets, &field->offset_room, *count + 2,
                                     sizeof *field->offsets, &state->status);
        if (state->status != SL_OK) return row_error(state, NULL);
        const int quoted = *state->at == '"';
        const size_t from = field->used;
        row_end ended = read_field(csv, field, state);
        if (ended != ROW_WHOLE) return ended;
        if (!quoted && memchr(field->bytes + from, '\r', field->used - from)) return row_error(state, LONE_RETURN);
        field->offsets[++*count] = (int64_t)field->used;
    } while (!state->last);
    return ROW_WHOLE;
}

/* Skips empty lines. Returns whether a row follows in the buffer. In a file of one column, an empty line is a row with
 * a missing value. */
static int skip_to_row(sl_csv *csv, int skip_empty) {
    while (csv->at < csv->end) {
        const char *at = csv->buffer + csv->at;
        size_t size = *at == '\n' ? 1 : at[0] == '\r' && at[1] == '\n' && csv->at + 1 < csv->end ? 2 : 0;
        if (!skip_empty || !size) return 1;
        csv->at += size;
        csv->line++;
    }
    return 0;
}

/* Drops the texts read of a row, so that the row can be read again. */
static void drop_row_texts(sl_csv *csv, size_t row) {
    for (size_t i = 0; i < csv->column_count && row; i++)
        csv->fields[i].used = (size_t)csv->fields[i].offsets[row];
}

static sl_status fail_row(const sl_csv *csv, const row_state *state) {
    if (!state->error) return state->status;
    return sl_fail(SL_EFORMAT, "%s: line %llu: %s", csv->path, (unsigned long long)csv->line, state->error);
}

/* Reads a row into the columns. If `names` is not NULL, reads the header and counts its fields there. */
static sl_status read_row(sl_csv *csv, size_t row, size_t *names, size_t *size) {
    *size = 0;
    for (;;) {
        int skip_empty = names || csv->column_count > 1;
        if (!skip_to_row(csv, skip_empty)) {
            if (csv->at_end) return SL_OK;
            SL_TRY(fill_buffer(csv));
            continue;
        }
        if (csv_place(csv) >= csv->end_byte) return SL_OK;
        row_state state = {.at = csv->buffer + csv->at, .end = csv->buffer + csv->end};
        row_end ended = names ? read_header_fields(csv, names, &state) : read_fields(csv, row, &state);
        if (ended == ROW_BAD) return fail_row(csv, &state);
        if (ended == ROW_CUT) {
            if (!names) drop_row_texts(csv, row);
            SL_TRY(fill_buffer(csv));
            continue;
        }
        size_t next = (size_t)(state.at - csv->buffer);
        if (next > csv->end) next = csv->end;
        /* The buffer can hold a row that exceeds the limit. */
        if (next - csv->at > SL_CSV_ROW_LIMIT + LINE_BREAK) return fail_row_too_long(csv);
        *size = next - csv->at;
        if (!names) csv->lines[row] = csv->line;
        csv->at = next;
        csv->line += state.breaks + 1;
        return SL_OK;
    }
}

sl_status csv_read_row(sl_csv *csv, size_t row, size_t *size) {
    return read_row(csv, row, NULL, size);
}

sl_status csv_read_header(sl_csv *csv, const char **bytes, const int64_t **starts, size_t *count) {
    size_t size;
    *count = 0;
    SL_TRY(read_row(csv, 0, count, &size));
    *bytes = csv->header.bytes;
    *starts = csv->header.offsets;
    return SL_OK;
}

sl_status csv_skip_header(sl_csv *csv) {
    size_t count, size;
    return read_row(csv, 0, &count, &size);
}
