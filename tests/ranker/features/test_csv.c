/* CSV files and tables in memory as sources of rows. */
#include "base/random.h"
#include "ranker/features/csv.h"
#include "ranker/features/table.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static scratch folder;

static void set_up(void) {
    scratch_open(&folder);
}

static void tear_down(void) {
    scratch_close(&folder);
}

/* Writes a file of these bytes and opens it. */
static sl_status open_bytes(const char *bytes, size_t size, const sl_csv_params *params, sl_csv **out) {
    file_write(folder.path, bytes, size);
    return sl_csv_open(folder.path, params, out);
}

/* Returns all rows of a source, read in blocks of `block` rows, as "line:field|field|...
 * " for each row. free() it. */
static sl_status read_source(const sl_rows *rows, size_t block, char **out) {
    sl_status status;
    size_t size = 0, room = 1 << 16;
    char *text = malloc(room);
    *text = 0;
    sl_table table = {.struct_size = sizeof table};
    while ((status = rows->next(rows->ctx, block, &table)) == SL_OK && table.rows) {
        ck_assert_uint_le(table.rows, block);
        for (size_t r = 0; r < table.rows; r++) {
            size += (size_t)snprintf(text + size, room - size, "%llu:", (unsigned long long)table.lines[r]);
            for (size_t c = 0; c < table.column_count; c++) {
                const sl_column *column = &table.columns[c];
                size_t length = (size_t)(column->offsets[r + 1] - column->offsets[r]);
                while (size + length + 64 > room)
                    text = realloc(text, room *= 2);
                memcpy(text + size, (const char *)column->values + column->offsets[r], length);
                size += length;
                text[size++] = c + 1 < table.column_count ? '|' : '\n';
            }
        }
    }
    text[size] = 0;
    *out = text;
    return status;
}

/* Checks the file's rows, for several sizes of blocks, and again after a rewind. */
static void check_rows(const char *bytes, const char *wanted) {
    static const size_t blocks[] = {1, 7, 8, 4096};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        sl_csv *csv;
        sl_rows rows;
        ck_ok(open_bytes(bytes, strlen(bytes), NULL, &csv));
        ck_ok(sl_csv_rows(csv, &rows));
        for (int turn = 0; turn < 2; turn++) {
            char *got;
            ck_ok(read_source(&rows, blocks[i], &got));
            ck_assert_str_eq(got, wanted);
            free(got);
            ck_ok(rows.rewind(rows.ctx));
        }
        sl_csv_free(csv);
    }
}

/* Checks that reading the file fails with this message, also in blocks of one row. */
static void check_refused(const char *bytes, const char *message) {
    for (size_t block = 1; block < 100; block += 98) {
        sl_csv *csv;
        sl_rows rows;
        char *got;
        ck_ok(open_bytes(bytes, strlen(bytes), NULL, &csv));
        ck_ok(sl_csv_rows(csv, &rows));
        ck_fails(read_source(&rows, block, &got), SL_EFORMAT, message);
        free(got);
        sl_csv_free(csv);
    }
}

START_TEST(rows) {
    check_rows("a,b\n1,2\n3,4\n", "2:1|2\n3:3|4\n");
    check_rows("a,b\n1,2\n3,4", "2:1|2\n3:3|4\n");
    check_rows("a,b\r\n1,2\r\n3,4\r\n", "2:1|2\n3:3|4\n");
    check_rows("a,b\r\n1,2\r\n3,4\r", "2:1|2\n3:3|4\n");
    check_rows("\xef\xbb\xbf"
               "a,b\n1,2\n",
               "2:1|2\n");
    check_rows("a,b\n,\n 1 ,\n,x\n", "2:|\n3: 1 |\n4:|x\n");
    check_rows("a,b\n", "");
    check_rows("a,b", "");
    check_rows("a,b\n1,", "2:1|\n");
    check_rows("a\n1\n\n2\n", "2:1\n3:\n4:2\n");
    check_rows("a,b\n\n1,2\n\r\n\n3,4\n\n", "3:1|2\n6:3|4\n");
    check_rows("a,b\n1\r,2\r3\n", "2:1\r|2\r3\n");
    check_rows("a,b\n0123456789abcdefghij,x\n", "2:0123456789abcdefghij|x\n");
}
END_TEST

START_TEST(quotes) {
    check_rows("a,b\n\"1\",\"2\"\n", "2:1|2\n");
    check_rows("\"a\",\"b\"\n\"x,y\",\"p\"\"q\"\n", "2:x,y|p\"q\n");
    check_rows("a,b\n\"\",\"\"\"\"\n", "2:|\"\n");
    check_rows("a,b\n\"1\n2\",3\n4,5\n", "2:1\n2|3\n4:4|5\n");
    check_rows("a,b\r\n\"1\r\n2\r\n\",\"3\"\r\n4,\"5\"\r", "2:1\r\n2\r\n|3\n5:4|5\n");
    check_rows("a,b\n1\"2,\"3\"", "2:1\"2|3\n");
    check_rows("a,b\n\"\"\"\"\"\",x\n", "2:\"\"|x\n");
}
END_TEST

START_TEST(wrong_rows_name_their_line) {
    check_refused("a,b\n1,2\n3\n", "line 3: too few fields");
    check_refused("a,b\n1,2,3\n", "line 2: too many fields");
    check_refused("a,b\n1,2\n3,4,\n", "line 3: too many fields");
    check_refused("a,b\n\"1\n\n\n\",2\n3\n", "line 6: too few fields");
    check_refused("a,b\n\n\n3\n", "line 4: too few fields");
    check_refused("a,b\n1,2\n\"3,4\n5,6\n", "line 3: a quote is never closed");
    check_refused("a,b\n1,\"2\"x\n", "line 2: text follows a closing quote");
    check_refused("a,b\n1,\"2\"\r3\n", "line 2: text follows a closing quote");
    check_refused("a,b\n1,\"", "line 2: a quote is never closed");
    check_refused("a,b\n1,\"\"\"", "line 2: a quote is never closed");
}
END_TEST

START_TEST(wrong_headers) {
    sl_csv *csv;
    ck_fails(open_bytes("", 0, NULL, &csv), SL_EFORMAT, "no header");
    ck_assert_ptr_null(csv);
    ck_fails(open_bytes("\n\n", 2, NULL, &csv), SL_EFORMAT, "no header");
    ck_fails(open_bytes("\x1f\x8b\x08\r\n", 5, NULL, &csv), SL_EFORMAT, "of the format gzip");
    ck_fails(open_bytes("PAR1\x15\n", 6, NULL, &csv), SL_EFORMAT, "of the format Parquet");
    ck_fails(open_bytes("a,b,a\n", 6, NULL, &csv), SL_EFORMAT, "columns 1 and 3 are both named 'a'");
    ck_fails(open_bytes("a,,b\n", 5, NULL, &csv), SL_EFORMAT, "column 2 has no name");
    ck_fails(open_bytes("a,b\0c\n", 6, NULL, &csv), SL_EFORMAT, "column 2 has a NUL");
    ck_fails(open_bytes("a,\"b\n", 5, NULL, &csv), SL_EFORMAT, "line 1: a quote is never closed");
    char *wide = malloc(2 * SL_CSV_COLUMN_LIMIT + 4);
    for (size_t i = 0; i <= SL_CSV_COLUMN_LIMIT; i++)
        memcpy(wide + 2 * i, "a,", 2);
    ck_fails(open_bytes(wide, 2 * SL_CSV_COLUMN_LIMIT + 1, NULL, &csv), SL_ELIMIT, "16385 columns");
    free(wide);
    ck_fails(sl_csv_open("/nonexistent/file.csv", NULL, &csv), SL_EIO, "/nonexistent/file.csv");
    ck_fails(sl_csv_open(folder.folder, NULL, &csv), SL_EIO, folder.folder);
    ck_fails(sl_csv_open(NULL, NULL, &csv), SL_EINVAL, "path");
}
END_TEST

/* A caller asks for many rows of a short file with many columns. Memory stays within what the file's size explains. */
START_TEST(wide_files_have_short_blocks) {
    enum { WIDE = 4096 };
    char *text = malloc(6 * WIDE);
    size_t used = 0;
    for (int i = 0; i < WIDE; i++)
        used += (size_t)sprintf(text + used, "%d,", i);
    text[used - 1] = '\n';
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_csv_params params;
    sl_csv_params_init(&params);
    params.allocator = &memory.allocator;
    sl_csv *csv;
    sl_rows rows;
    sl_table block;
    ck_ok(open_bytes(text, used, &params, &csv));
    ck_ok(sl_csv_rows(csv, &rows));
    ck_ok(rows.next(rows.ctx, SIZE_MAX, &block));
    ck_assert_uint_eq(block.rows, 0);
    ck_assert_uint_lt(memory.live_bytes, (size_t)64 << 20);
    sl_csv_free(csv);
    free(text);
}
END_TEST

START_TEST(parameters) {
    const char *names[] = {"x", "y"};
    sl_csv_params params;
    sl_csv_params_init(&params);
    sl_csv *csv;
    sl_rows rows;
    char *got;
    params.header = 0;
    ck_fails(open_bytes("1;2\n", 4, &params, &csv), SL_EINVAL, "names is empty");
    params.names = names;
    params.name_count = 2;
    params.delimiter = ';';
    ck_ok(open_bytes("1;2,5\n", 6, &params, &csv));
    ck_ok(sl_csv_rows(csv, &rows));
    ck_ok(read_source(&rows, 5, &got));
    ck_assert_str_eq(got, "1:1|2,5\n");
    ck_assert_str_eq(csv->columns[1].name, "y");
    free(got);
    ck_ok(rows.rewind(rows.ctx));
    sl_table table;
    ck_fails(rows.next(rows.ctx, 0, &table), SL_EINVAL, "max_rows");
    sl_csv_free(csv);
    /* The caller's names replace the header's. */
    params.header = 1;
    ck_ok(open_bytes("a;b\n1;2\n", 8, &params, &csv));
    ck_ok(sl_csv_rows(csv, &rows));
    ck_ok(read_source(&rows, 5, &got));
    ck_assert_str_eq(got, "2:1|2\n");
    free(got);
    sl_csv_free(csv);
    params.delimiter = '"';
    ck_fails(open_bytes("a\n", 2, &params, &csv), SL_EINVAL, "delimiter");
    /* The spec gives delimiter, header and names. */
    sl_csv_params_init(&params);
    params.spec = "{\"csv\": {\"delimiter\": \"\\t\", \"columns\": [\"p\", \"q\"]}, \"label\": {\"column\": \"p\"},"
                  "\"features\": [{\"name\": \"q\", \"type\": \"numeric\"}]}";
    ck_ok(open_bytes("1\t2\n", 4, &params, &csv));
    ck_ok(sl_csv_rows(csv, &rows));
    ck_ok(read_source(&rows, 5, &got));
    ck_assert_str_eq(got, "1:1|2\n");
    free(got);
    sl_csv_free(csv);
    params.spec = "{";
    ck_fails(open_bytes("1\t2\n", 4, &params, &csv), SL_EINVAL, "not JSON");
}
END_TEST

/* NUL bytes are ordinary bytes. */
START_TEST(nul_bytes) {
    static const char bytes[] = "a,b\nx\0y,\"\0\"\n";
    sl_csv *csv;
    sl_rows rows;
    sl_table table = {.struct_size = sizeof table};
    ck_ok(open_bytes(bytes, sizeof bytes - 1, NULL, &csv));
    ck_ok(sl_csv_rows(csv, &rows));
    ck_ok(rows.next(rows.ctx, 10, &table));
    ck_assert_uint_eq(table.rows, 1);
    ck_assert_int_eq(table.columns[0].offsets[1], 3);
    ck_assert_mem_eq(table.columns[0].values, "x\0y", 3);
    ck_assert_int_eq(table.columns[1].offsets[1], 1);
    sl_csv_free(csv);
}
END_TEST

/* Rows cross the buffer's end at every place. Some are larger than the buffer. */
START_TEST(rows_across_buffers) {
    size_t room = (size_t)6 << 20, size = 0, lines = 0;
    char *bytes = malloc(room), *got, *wanted = malloc(room);
    size_t wanted_size = 0, line = 2;
    size += (size_t)sprintf(bytes, "a,b\n");
    for (size_t i = 0; size < room - (size_t)(3 << 20); i++, lines++) {
        size_t length = i == 3 ? (size_t)2 << 20 : sl_random_at(3, i) % 5000;
        wanted_size += (size_t)sprintf(wanted + wanted_size, "%zu:", line);
        int quoted = i % 3 == 0;
        if (quoted) bytes[size++] = '"';
        for (size_t j = 0; j < length; j++) {
            char c = quoted && j % 1000 == 999 ? '\n' : (char)('a' + (i + j) % 26);
            line += c == '\n';
            bytes[size++] = wanted[wanted_size++] = c;
        }
        if (quoted) bytes[size++] = '"';
        size += (size_t)sprintf(bytes + size, ",%zu%s", i, i % 2 ? "\r\n" : "\n");
        wanted_size += (size_t)sprintf(wanted + wanted_size, "|%zu\n", i);
        line++;
    }
    sl_csv *csv;
    sl_rows rows;
    ck_ok(open_bytes(bytes, size, NULL, &csv));
    ck_ok(sl_csv_rows(csv, &rows));
    ck_ok(read_source(&rows, 64, &got));
    ck_assert_uint_eq(strlen(got), wanted_size);
    ck_assert_mem_eq(got, wanted, wanted_size);
    sl_csv_free(csv);
    free(bytes);
    free(got);
    free(wanted);
}
END_TEST

START_TEST(a_row_has_a_limit) {
    size_t size = SL_CSV_ROW_LIMIT + ((size_t)4 << 20);
    char *bytes = malloc(size), *got;
    memset(bytes, 'x', size);
    memcpy(bytes, "a,b\n1,\"", 7);
    sl_csv *csv;
    sl_rows rows;
    ck_ok(open_bytes(bytes, size, NULL, &csv));
    ck_ok(sl_csv_rows(csv, &rows));
    ck_fails(read_source(&rows, 64, &got), SL_EFORMAT, "line 2 begins a row of more than 16 MB");
    sl_csv_free(csv);
    free(got);
    free(bytes);
}
END_TEST

/* A file with `before` rows, then a row of `size` bytes without its line break. */
static sl_status read_long(size_t size, int quoted, int header, const char *ending) {
    const char *start = header ? "" : "a,b\n1,2\n";
    const size_t at = strlen(start);
    char *bytes = malloc(at + size + 8), *got;
    memcpy(bytes, start, at);
    memset(bytes + at, 'x', size);
    memcpy(bytes + at + 1, quoted ? ",\"" : ",", quoted ? 2 : 1);
    if (quoted) bytes[at + size - 1] = '"';
    memcpy(bytes + at + size, ending, strlen(ending) + 1);
    sl_csv *csv;
    sl_rows rows;
    sl_status status = open_bytes(bytes, at + size + strlen(ending), NULL, &csv);
    free(bytes);
    if (status != SL_OK) return status;
    ck_ok(sl_csv_rows(csv, &rows));
    status = read_source(&rows, 64, &got);
    free(got);
    sl_csv_free(csv);
    return status;
}

/* The limit is exact to the byte, whatever part of the file is in the buffer. */
START_TEST(the_limit_of_a_row_is_exact) {
    static const char *const endings[] = {"\n", "\r\n", ""};
    const char *ending = endings[_i % 3];
    const int quoted = _i / 3 % 2, header = _i / 6;
    const size_t limit = SL_CSV_ROW_LIMIT, above[] = {limit + 3, limit + limit / 16, limit + limit / 4, 2 * limit};
    ck_ok(read_long(limit, quoted, header, ending));
    ck_ok(read_long(1 << 20, quoted, header, ending));
    for (size_t i = 0; i < sizeof above / sizeof *above; i++)
        ck_fails(read_long(above[i], quoted, header, ending), SL_EFORMAT, "begins a row of more than 16 MB");
}
END_TEST

static sl_status open_text(const char *text, sl_csv **out) {
    return open_bytes(text, strlen(text), NULL, out);
}

/* Line ends that a text mode wrote twice, and line ends of old systems. */
START_TEST(broken_line_ends) {
    sl_csv *csv;
    ck_fails(open_text("a,m\r\r\n1,2\r\r\n", &csv), SL_EFORMAT, "line 1: a line ends with \\r\\r\\n");
    ck_fails(open_text("a,\"m\"\r\r\n1,2\n", &csv), SL_EFORMAT, "line 1: a line ends with \\r\\r\\n");
    check_refused("a,m\n1,2\n3,4\r\r\n", "line 3: a line ends with \\r\\r\\n");
    check_refused("a,m\n1,2\n3,4\r\r\r\n", "line 3: a line ends with \\r\\r\\n");
    check_refused("a,m\n1,2\n3,\r\r\n", "line 3: a line ends with \\r\\r\\n");
    ck_fails(open_text("a,m\r1,2\r3,4\r", &csv), SL_EFORMAT, "\\r stands in the header");
    ck_fails(open_text("a\r,m\n", &csv), SL_EFORMAT, "\\r stands in the header");
    check_rows("a,\"m\r\"\n1,2\n", "2:1|2\n");
}
END_TEST

/* Messages show a text's contents. */
START_TEST(texts_of_messages) {
    static const struct {
        const char *text;
        size_t size;
        const char *shown;
    } texts[] = {
        {"3\0", 2, "3\\0"},
        {"\0", 1, "\\0"},
        {"3\0004", 3, "3\\04"},
        {"a\r\n\t\x1f\x7f", 6, "a\\r\\n\\t\\x1f\\x7f"},
        {"\xc3\xa9", 2, "\xc3\xa9"},
        {"", 0, ""},
        {"\xc3", 1, "\\xc3"},
        {"\xff\xc3(\x80", 4, "\\xff\\xc3(\\x80"},
        {"\xc2\x9b[2J\xc2\xa0", 7, "\\xc2\\x9b[2J\xc2\xa0"},
        {"\xe0\x80\xaf\xed\xa0\x80", 6, "\\xe0\\x80\\xaf\\xed\\xa0\\x80"},
        {"\xf0\x9f\x98\x80\xf4\x90\x80\x80", 8, "\xf0\x9f\x98\x80\\xf4\\x90\\x80\\x80"},
        /* Messages show whole characters. */
        {"012345678901234567890123456789012345678\xc3\xa9!", 42, "012345678901234567890123456789012345678\xc3\xa9..."},
        {"012345678901234567890123456789012345678\xf0\x9f\x98\x80", 43,
         "012345678901234567890123456789012345678\xf0\x9f\x98\x80"},
        {"0123456789012345678901234567890123456789\xc3\xa9", 42, "0123456789012345678901234567890123456789..."},
        {"0123456789012345678901234567890123456789", 40, "0123456789012345678901234567890123456789"},
        {"01234567890123456789012345678901234567890", 41, "0123456789012345678901234567890123456789..."}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_str_eq(sl_show(texts[i].text, texts[i].size).text, texts[i].shown);
    char zeros[4000] = {0};
    ck_assert_uint_lt(strlen(sl_show(zeros, sizeof zeros).text), sizeof(sl_shown));
    int64_t offsets[] = {0, 2};
    const sl_column column = {.name = "m", .type = SL_COLUMN_TEXT, .values = "3\0", .offsets = offsets};
    double value;
    ck_fails(sl_cell_number(&column, 0, &value), SL_EVALUE, "'3\\0' is no finite number");
    const sl_column named = {.name = "x\ry", .type = SL_COLUMN_TEXT, .values = "3\0", .offsets = offsets};
    const sl_table table = {.struct_size = sizeof table, .rows = 1, .column_count = 1, .columns = &named};
    ck_fails(sl_fail_no_column(&table, "m", ""), SL_ENOTFOUND, "its columns are x\\ry");
    ck_fails(sl_fail_no_column(&table, "m\x1b[2J", ""), SL_ENOTFOUND, "no column 'm\\x1b[2J'");
    ck_fails(sl_fail_at(SL_EVALUE, &table, 0, "m\x1b[2J"), SL_EVALUE, "column 'm\\x1b[2J'");
    sl_names names = {.used = 0};
    sl_names_add(&names, "a\x1b[2J");
    sl_names_add(&names, "\x7f\x01");
    sl_names_add(&names, "\xc3\xa9");
    ck_assert_str_eq(sl_names_text(&names), "a\\x1b[2J, \\x7f\\x01, \xc3\xa9");
}
END_TEST

START_TEST(memory_may_run_out) {
    sl_status status = SL_ENOMEM;
    static char bytes[40000];
    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes, "a,b\n1,2\n", 8);
    memcpy(bytes + sizeof bytes - 4, ",\"\"\n", 4);
    for (size_t at = 1; status == SL_ENOMEM; at++) {
        fault_allocator faults;
        fault_allocator_init(&faults, at);
        sl_csv_params params;
        sl_csv_params_init(&params);
        params.allocator = &faults.allocator;
        sl_csv *csv;
        status = open_bytes(bytes, sizeof bytes, &params, &csv);
        ck_assert_int_eq(status == SL_OK, csv != NULL);
        if (csv) {
            sl_rows rows;
            char *got;
            ck_ok(sl_csv_rows(csv, &rows));
            status = read_source(&rows, 64, &got);
            free(got);
        }
        ck_assert_msg(status == SL_OK || status == SL_ENOMEM, "%s", sl_last_error());
        if (status == SL_OK) ck_assert_uint_gt(at, 10);
        sl_csv_free(csv);
        ck_assert_uint_eq(faults.live_blocks, 0);
    }
}
END_TEST

/* ---- Tables in memory as sources ---- */

START_TEST(tables_in_pieces) {
    enum { ROWS = 45 };
    static float numbers[ROWS], vectors[2 * ROWS];
    static int64_t offsets[ROWS + 1], lists[ROWS + 1];
    static const uint8_t bits[] = {0xa5, 0x3c, 0x81, 0x7e, 0x55, 0x13};
    for (size_t i = 0; i < ROWS; i++) {
        numbers[i] = vectors[2 * i] = (float)i;
        offsets[i + 1] = lists[i + 1] = (int64_t)i + 1;
    }
    sl_column columns[] = {{.name = "n", .type = SL_COLUMN_F32, .values = numbers, .valid = bits},
                           {.name = "v", .type = SL_COLUMN_VECTOR, .dim = 2, .values = vectors},
                           {.name = "t", .type = SL_COLUMN_TEXT, .values = bits, .offsets = offsets},
                           {.name = "l", .type = SL_COLUMN_TEXTS, .offsets = offsets, .lists = lists}};
    sl_table table = {.struct_size = sizeof table, .rows = ROWS, .column_count = 4, .columns = columns};
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(4));
    for (size_t most = 1; most < 60; most++) {
        sl_rows rows;
        ck_ok(sl_table_rows(&table, cursor, &rows));
        sl_table block;
        size_t at = 0;
        for (size_t turn = 0;; turn++) {
            /* The size of blocks changes from block to block. */
            size_t asked = turn % 3 ? most : 1 + most / 2;
            ck_ok(rows.next(rows.ctx, asked, &block));
            if (block.rows == 0) break;
            ck_assert_uint_le(block.rows, asked);
            ck_assert_uint_eq(block.first_row, at);
            for (size_t r = 0; r < block.rows; r++, at++) {
                const sl_column *c = block.columns;
                ck_assert_float_eq(((const float *)c[0].values)[r], (float)at);
                ck_assert_int_eq(c[0].valid[r / 8] >> (r % 8) & 1, bits[at / 8] >> (at % 8) & 1);
                ck_assert_float_eq(((const float *)c[1].values)[2 * r], (float)at);
                ck_assert_int_eq(c[2].offsets[r], (int64_t)at);
                ck_assert_int_eq(c[3].lists[r + 1], (int64_t)at + 1);
            }
        }
        ck_assert_uint_eq(at, ROWS);
    }
    sl_rows rows;
    columns[1].dim = 0;
    ck_fails(sl_table_rows(&table, cursor, &rows), SL_EINVAL, "column 'v' has dim 0");
    columns[0].values = NULL;
    ck_fails(sl_table_rows(&table, cursor, &rows), SL_EINVAL, "column 'n' has no values");
    columns[0].name = NULL;
    ck_fails(sl_table_rows(&table, cursor, &rows), SL_EINVAL, "column 0 has no name");
    table.struct_size = 0;
    ck_fails(sl_table_rows(&table, cursor, &rows), SL_EINVAL, "struct_size");
    free(cursor);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("csv")};
    tcase_add_checked_fixture(cases[0], set_up, tear_down);
    tcase_add_test(cases[0], rows);
    tcase_add_test(cases[0], quotes);
    tcase_add_test(cases[0], wrong_rows_name_their_line);
    tcase_add_test(cases[0], wrong_headers);
    tcase_add_test(cases[0], parameters);
    tcase_add_test(cases[0], wide_files_have_short_blocks);
    tcase_add_test(cases[0], nul_bytes);
    tcase_add_test(cases[0], rows_across_buffers);
    tcase_add_test(cases[0], a_row_has_a_limit);
    tcase_add_loop_test(cases[0], the_limit_of_a_row_is_exact, 0, 12);
    tcase_add_test(cases[0], broken_line_ends);
    tcase_add_test(cases[0], texts_of_messages);
    tcase_add_test(cases[0], memory_may_run_out);
    tcase_add_test(cases[0], tables_in_pieces);
    return check_main("csv", cases, 1);
}
