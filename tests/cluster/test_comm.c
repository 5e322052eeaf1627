/* Transfers, collective calls and agreement of ranks. */
#include "tests/cluster/ranks_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t me, all;

static void set_up(void) {
    me = all_ranks.rank;
    all = all_ranks.ranks;
}

START_TEST(gathers_in_the_order_of_ranks) {
    uint32_t mine[3] = {(uint32_t)me, (uint32_t)me * 7, 99}, *them = calloc(all, sizeof mine);
    rank_assert_ok(sl_comm_gather(&all_ranks, mine, sizeof mine, them));
    for (size_t r = 0; r < all; r++)
        rank_assert(them[3 * r] == r && them[3 * r + 1] == 7 * r && them[3 * r + 2] == 99);
    free(them);
}
END_TEST

/* Byte i of what rank `from` sends to rank `to`. */
static uint8_t byte_of(size_t from, size_t to, size_t i) {
    return (uint8_t)(31 * from + 7 * to + i);
}

static size_t size_of(size_t from, size_t to) {
    return (from * to) % 3 == 0 ? 0 : 100000 * from + 1000 * to + 1;
}

START_TEST(exchanges_parts_of_any_size) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    size_t *sizes = calloc(all, sizeof *sizes);
    sl_parts to, from;
    for (size_t r = 0; r < all; r++)
        sizes[r] = size_of(me, r);
    rank_assert_ok(sl_parts_create(&allocator, all, sizes, &to));
    for (size_t r = 0; r < all; r++)
        for (size_t i = 0; i < sizes[r]; i++)
            to.data[to.at[r] + i] = byte_of(me, r, i);
    rank_assert_ok(sl_comm_exchange(&all_ranks, &to, &allocator, &from));
    for (size_t r = 0; r < all; r++) {
        rank_assert(sl_part_size(&from, r) == size_of(r, me));
        for (size_t i = 0; i < sl_part_size(&from, r); i++)
            rank_assert(from.data[from.at[r] + i] == byte_of(r, me, i));
    }
    sl_parts_free(&to);
    sl_parts_free(&from);
    free(sizes);
}
END_TEST

START_TEST(gathers_parts_of_any_size) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    uint8_t mine[64];
    sl_parts parts;
    for (size_t i = 0; i < sizeof mine; i++)
        mine[i] = byte_of(me, 0, i);
    rank_assert_ok(sl_comm_gather_parts(&all_ranks, mine, 5 * me, &allocator, &parts));
    for (size_t r = 0; r < all; r++) {
        rank_assert(sl_part_size(&parts, r) == 5 * r);
        for (size_t i = 0; i < 5 * r; i++)
            rank_assert(parts.data[parts.at[r] + i] == byte_of(r, 0, i));
    }
    sl_parts_free(&parts);
}
END_TEST

START_TEST(sums_are_the_same_on_every_rank) {
    float floats[2] = {1, (float)me};
    uint64_t counts[2] = {1, me}, least = 5 + me, most = 5 + me;
    rank_assert_ok(sl_comm_sum_floats(&all_ranks, floats, 2));
    rank_assert(floats[0] == (float)all && floats[1] == (float)(all * (all - 1)) / 2);
    rank_assert_ok(sl_comm_sum_counts(&all_ranks, counts, 2));
    rank_assert(counts[0] == all && counts[1] == all * (all - 1) / 2);
    rank_assert_ok(sl_comm_min(&all_ranks, &least));
    rank_assert_ok(sl_comm_max(&all_ranks, &most));
    rank_assert(least == 5 && most == 4 + all);
}
END_TEST

START_TEST(agrees_on_the_first_failure) {
    char expected[64];
    rank_assert_ok(sl_comm_agree(&all_ranks, SL_OK));
    for (size_t bad = 0; bad < all; bad++) {
        sl_status mine = me < bad ? SL_OK : sl_fail(SL_ENOSPC, "disk %zu is full", me);
        sl_status status = sl_comm_agree(&all_ranks, mine);
        rank_assert(status == SL_ENOSPC);
        snprintf(expected, sizeof expected, all == 1 ? "disk %zu is full" : "): disk %zu is full", bad);
        rank_assert(strstr(sl_last_error(), expected) != NULL);
        /* An agreed failure passes through another agreement as it is. */
        char before[SL_ERROR_SIZE];
        snprintf(before, sizeof before, "%s", sl_last_error());
        rank_assert(sl_comm_agree(&all_ranks, status) == SL_ENOSPC);
        rank_assert(strcmp(before, sl_last_error()) == 0);
    }
}
END_TEST

START_TEST(splits_into_rows) {
    sl_comm row, machine;
    rank_assert_ok(sl_comm_split(&all_ranks, (int)(me % 2), me, &row));
    rank_assert(row.rank == me / 2 && row.ranks == (all + 1 - me % 2) / 2);
    float one = 1;
    rank_assert_ok(sl_comm_sum_floats(&row, &one, 1));
    rank_assert(one == (float)row.ranks);
    sl_comm_free(&row);
    rank_assert_ok(sl_comm_split_machine(&all_ranks, &machine));
    rank_assert(machine.ranks == all && machine.rank == me);
    sl_comm_free(&machine);
}
END_TEST

START_TEST(counts_what_it_sends) {
    sl_comm_counts before = sl_comm_counted(&all_ranks), after;
    MPI_Request requests[2];
    char out[100] = {1}, in[100];
    rank_assert_ok(sl_comm_receive(&all_ranks, in, sizeof in, (me + all - 1) % all, 5, &requests[0]));
    rank_assert_ok(sl_comm_send(&all_ranks, out, sizeof out, (me + 1) % all, 5, &requests[1]));
    rank_assert_ok(sl_comm_wait(&all_ranks, requests, 2));
    rank_assert(in[0] == 1);
    after = sl_comm_counted(&all_ranks);
    rank_assert(after.messages == before.messages + 1 && after.bytes == before.bytes + sizeof out);
}
END_TEST

int main(int argc, char **argv) {
    TCase *test = tcase_create("comm");
    tcase_add_checked_fixture(test, set_up, NULL);
    tcase_add_test(test, gathers_in_the_order_of_ranks);
    tcase_add_test(test, exchanges_parts_of_any_size);
    tcase_add_test(test, gathers_parts_of_any_size);
    tcase_add_test(test, sums_are_the_same_on_every_rank);
    tcase_add_test(test, agrees_on_the_first_failure);
    tcase_add_test(test, splits_into_rows);
    tcase_add_test(test, counts_what_it_sends);
    return ranks_main(argc, argv, "comm", &test, 1);
}
