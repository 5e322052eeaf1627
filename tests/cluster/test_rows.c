/* Rows of CSV files divided among ranks: together they are the rows of one process, and the features fitted to them are
 * the same bytes. */
#include "base/crc32c.h"
#include "cluster/train/reducer.h"
#include "ranker/features/csv_parts.h"
#include "ranker/features/dataset.h"
#include "ranker/features/features.h"
#include "tests/cluster/ranks_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path_text[64]; /* of its own for each number of ranks: these tests run at the same time */
static const char *path = path_text;

static sl_reducer *reducer;
static const sl_ranks *ranks;

static void set_up(void) {
    snprintf(path_text, sizeof path_text, "rows_of_%zu_ranks.csv", all_ranks.ranks);
    rank_assert_ok(
        sl_reducer_create(&all_ranks, &(sl_allreduce_params){.algorithm = SL_ALLREDUCE_MPI}, 1024, &reducer, &ranks));
}

static void tear_down(void) {
    sl_reducer_free(reducer);
    if (all_ranks.rank == 0) unlink(path);
}

/* Rank 0 writes the file, and all wait for it. */
static void write_file(const char *text, size_t size) {
    if (all_ranks.rank == 0) {
        FILE *file = fopen(path, "wb");
        rank_assert(file && fwrite(text, 1, size, file) == size && fclose(file) == 0);
    }
    rank_assert_ok(sl_comm_barrier(&all_ranks));
}

/* Adds the texts of a block's rows, with their lines, to a buffer. */
static void append_rows(const sl_table *block, char *out, size_t *used) {
    for (size_t r = 0; r < block->rows; r++) {
        *used += (size_t)sprintf(out + *used, "%llu:", (unsigned long long)block->lines[r]);
        for (size_t c = 0; c < block->column_count; c++) {
            const sl_column *column = &block->columns[c];
            const int64_t from = column->offsets[r], size = column->offsets[r + 1] - from;
            memcpy(out + *used, (const char *)column->values + from, (size_t)size);
            *used += (size_t)size;
            out[(*used)++] = '|';
        }
    }
}

/* Reads all rows of a part twice, and checks that both readings are the same. Returns their text. */
static char *read_rows(const sl_ranks *of, size_t *used) {
    char *text = malloc(1 << 22), *again = malloc(1 << 22);
    sl_csv_parts *parts;
    sl_rows rows;
    size_t second = 0;
    sl_table block;
    rank_assert_ok(sl_csv_parts_open(&path, 1, NULL, of, &parts));
    rank_assert_ok(sl_csv_parts_rows(parts, &rows));
    *used = 0;
    do {
        rank_assert_ok(rows.next(rows.ctx, 7, &block));
        append_rows(&block, text, used);
    } while (block.rows);
    rank_assert_ok(rows.rewind(rows.ctx));
    do {
        rank_assert_ok(rows.next(rows.ctx, 100, &block));
        append_rows(&block, again, &second);
    } while (block.rows);
    rank_assert(second == *used && memcmp(text, again, second) == 0);
    sl_csv_parts_free(parts);
    free(again);
    return text;
}

/* The rows of all ranks, one after the other, are those of one process. */
static void check_file(const char *text, size_t size) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    size_t own, whole;
    sl_parts all;
    write_file(text, size);
    char *mine = read_rows(ranks, &own), *expected = read_rows(NULL, &whole);
    rank_assert_ok(sl_comm_gather_parts(&all_ranks, mine, own, &allocator, &all));
    rank_assert(all.at[all.ranks] == whole && memcmp(all.data, expected, whole) == 0);
    sl_parts_free(&all);
    free(mine);
    free(expected);
}

static void check_text(const char *text) {
    check_file(text, strlen(text));
}

START_TEST(rows_are_divided_whole) {
    check_text("a,b\n1,2\n3,4\n5,6\n7,8\n9,10\n11,12\n13,14\n");
    check_text("a,b\r\n1,2\r\n3,4\r\n5,6\r\n7,8\r\n");
    check_text("a,b\n1,2\n3,4\n5,6\n7,8");
    check_text("\n\n\n\na,b\n1,2\n\n3,4\n\n\n5,6\n");
    check_text("a,b\n\"x\ny\",2\n\"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\",4\n5,\"6\n\"\n");
    check_text("a,b\n\"x\"\"\n\"\"y\",\"\"\"\"\n\"\"\"\n\",\"\n\"\"\"\n1,2\n");
    check_text("a,b\nx\"y,z\"\nu\"\"v,\"w\"\n1\",2\n3,4\n5,6\"7\n8,9\n");
    check_text("\xef\xbb\xbf\"a\",b\n1,2\n3,4\n5,6\n");
    check_text("a\n1\n\n3\n\n5\n6\n");
    check_text("a,b\n1,2\n");
    check_text("a,b\n");
}
END_TEST

/* Random rows, with quotes and line breaks wherever they may stand. */
START_TEST(random_rows_are_divided_whole) {
    static const char *const cells[] = {
        "1",          "",         "\"\"",          "\"a\nb\"",     "\"\n\"",
        "x\"y",       "\"\"\"\"", "\"a\"\"\n,b\"", "\"\n\"\"\n\"", "long text of a cell",
        "\"\"\"\n\"", "\",\n,\""};
    char *text = malloc(1 << 20);
    for (unsigned seed = 1; seed <= 40; seed++) {
        size_t used = (size_t)sprintf(text, "a,b,c\n");
        uint64_t state = seed * 0x9e3779b97f4a7c15u;
        for (unsigned row = 0; row < seed * 5; row++)
            for (unsigned c = 0; c < 3; c++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                const char *cell = cells[(state >> 33) % (sizeof cells / sizeof *cells)];
                used += (size_t)sprintf(text + used, "%s%s", cell, c < 2 ? "," : state >> 60 ? "\n" : "\r\n");
            }
        check_file(text, used);
    }
    free(text);
}
END_TEST

static const char *const spec = "{\"label\": {\"column\": \"y\"}, \"features\": ["
                                "{\"name\": \"x\", \"type\": \"numeric\"},"
                                "{\"name\": \"m\", \"type\": \"numeric\", \"scale\": \"minmax\"},"
                                "{\"name\": \"q\", \"column\": \"x\", \"type\": \"bucket\", \"quantiles\": 7},"
                                "{\"name\": \"c\", \"type\": \"categorical\", \"min_count\": 2}],"
                                "\"wide\": {\"features\": [\"q\", \"c\"]}, \"deep\": null}";

/* Fits the spec. Returns the features' bytes. */
static void *fit(const sl_ranks *of, size_t *size, sl_features **features) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_csv_parts *parts;
    sl_rows rows;
    sl_spec *parsed;
    void *data;
    rank_assert_ok(sl_csv_parts_open(&path, 1, NULL, of, &parts));
    rank_assert_ok(sl_csv_parts_rows(parts, &rows));
    rank_assert_ok(sl_spec_read(spec, &allocator, &parsed));
    const sl_fit_source source = {.ranks = of, .position = sl_csv_parts_position(parts)};
    rank_assert_ok(sl_features_fit(parsed, &rows, &source, features));
    rank_assert_ok(sl_features_write(*features, &allocator, &data, size));
    sl_csv_parts_free(parts);
    return data;
}

/* Writes rows whose numbers have no exact sum in doubles, and whose counts of texts are often equal. */
static void write_numbers(size_t rows) {
    char *text = malloc(64 + rows * 96);
    size_t used = (size_t)sprintf(text, "y,x,m,c\n");
    for (size_t i = 0; i < rows; i++) {
        const double x = (double)((i * 2654435761u) % 1000003) / 7 * (i % 13 ? 1e-3 : 1e9) * (i % 3 ? 1 : -1);
        used += (size_t)sprintf(text + used, "%zu,", i % 2);
        if (i % 17 != 3) used += (size_t)sprintf(text + used, "%.17g", x);
        used += (size_t)sprintf(text + used, ",%.17g,k%zu\n", 1.0 / (double)(i + 1), (i * i) % 97);
    }
    write_file(text, used);
    free(text);
}

START_TEST(features_are_those_of_one_process) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    for (size_t rows = 2; rows < 20000; rows = rows * 5 + 1) {
        size_t size, whole_size;
        sl_features *features, *whole_features;
        write_numbers(rows);
        void *data = fit(ranks, &size, &features), *whole = fit(NULL, &whole_size, &whole_features);
        rank_assert(size == whole_size && memcmp(data, whole, size) == 0);
        sl_mem_free(&allocator, data, size);
        sl_mem_free(&allocator, whole, whole_size);
        sl_features_free(features);
        sl_features_free(whole_features);
        rank_assert_ok(sl_comm_barrier(&all_ranks));
    }
}
END_TEST

/* Every row of an epoch is in one mini-batch of one rank, and mini-batches have the rows that they say. */
START_TEST(minibatches_take_every_row_once) {
    for (uint64_t batch = 1; batch < 3000; batch = batch * 3 + 1) {
        uint64_t rank_rows[16] = {0}, all = 0;
        sl_dataset data = {.ranks = ranks, .rank_train = rank_rows};
        for (size_t r = 0; r < all_ranks.ranks; r++)
            all += rank_rows[r] = r % 3 == 1 ? 0 : 700 + 31 * r;
        data.total_train = all;
        data.train_count = rank_rows[all_ranks.rank];
        uint64_t next = 0, seen = 0;
        for (uint64_t step = 0; step * batch < all; step++) {
            const sl_minibatch_part part = sl_dataset_minibatch(&data, step, batch);
            uint64_t count = part.count, before = part.before;
            rank_assert(part.first == next && part.count <= sl_dataset_minibatch_most(&data, batch));
            next += part.count;
            seen += part.total;
            rank_assert_ok(sl_comm_sum_counts(&all_ranks, &count, 1));
            rank_assert(count == part.total && before + part.count <= part.total);
            rank_assert(part.total < batch + all_ranks.ranks);
        }
        rank_assert(next == data.train_count && seen == all);
    }
}
END_TEST

START_TEST(other_files_are_refused) {
    sl_csv_parts *parts;
    char own[64];
    const char *name = own;
    snprintf(own, sizeof own, "other_rows_%zu_%zu.csv", all_ranks.ranks, all_ranks.rank);
    FILE *file = fopen(own, "wb");
    rank_assert(file && fprintf(file, "a\n%s\n", all_ranks.rank == 1 ? "12" : "11") > 0 && fclose(file) == 0);
    sl_status status = sl_csv_parts_open(&name, 1, NULL, ranks, &parts);
    rank_assert(all_ranks.ranks == 1 ? status == SL_OK : status == SL_EVALUE && strstr(sl_last_error(), "rank 1"));
    sl_csv_parts_free(parts);
    unlink(own);
    name = "no such file";
    rank_assert(sl_csv_parts_open(&name, 1, NULL, ranks, &parts) == SL_ENOTFOUND || !parts);
}
END_TEST

int main(int argc, char **argv) {
    TCase *test = tcase_create("rows");
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_add_test(test, rows_are_divided_whole);
    tcase_add_test(test, random_rows_are_divided_whole);
    tcase_add_test(test, features_are_those_of_one_process);
    tcase_add_test(test, minibatches_take_every_row_once);
    tcase_add_test(test, other_files_are_refused);
    return ranks_main(argc, argv, "rows", &test, 1);
}
