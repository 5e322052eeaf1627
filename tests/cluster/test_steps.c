/* Steps on several ranks: a mini-batch of all rows gives the weights of one process, but for rounding. */
#include "cluster/train/train.h"
#include "tests/cluster/ranks_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 1200 };
static char path_text[64]; /* of its own for each number of ranks: these tests run at the same time */
static const char *path = path_text;

/* Writes rows with a wide feature, two embeddings and a bag; rank 0 writes, all wait. */
static void set_up(void) {
    snprintf(path_text, sizeof path_text, "steps_of_%zu_ranks.csv", all_ranks.ranks);
    if (all_ranks.rank == 0) {
        FILE *file = fopen(path, "w");
        rank_assert(file && fprintf(file, "y,x,c,d,b,w\n") > 0);
        for (unsigned i = 0; i < ROWS; i++) {
            const unsigned c = i * 7 % 50, d = i * i % 900, y = (c < 20) ^ (i % 5 == 0);
            fprintf(file, "%u,%u,c%u,d%u,\"b%u|b%u\",%u\n", y, i % 97, c, d, i % 3, i % 11, 1 + i % 3);
        }
        rank_assert(fclose(file) == 0);
    }
    rank_assert_ok(sl_comm_barrier(&all_ranks));
}

static void tear_down(void) {
    rank_assert_ok(sl_comm_barrier(&all_ranks));
    if (all_ranks.rank == 0) unlink(path);
}

/* A spec of one step an epoch over all rows. */
static const char *spec_of(const char *optimizer) {
    static char text[2048];
    snprintf(text, sizeof text,
             "{\"label\": {\"column\": \"y\"}, \"weight\": \"w\", \"features\": ["
             "{\"name\": \"x\", \"type\": \"numeric\"},"
             "{\"name\": \"c\", \"type\": \"categorical\", \"dim\": 4},"
             "{\"name\": \"d\", \"type\": \"categorical\", \"hash\": 5000, \"dim\": 3},"
             "{\"name\": \"b\", \"type\": \"multi\", \"dim\": 2}],"
             "\"deep\": {\"hidden\": [16, 8], \"optimizer\": \"%s\"},"
             "\"train\": {\"epochs\": 5, \"batch\": %d, \"validation\": 0, \"forget\": 0, \"seed\": 3}}",
             optimizer, ROWS);
    return text;
}

/* Trains on the ranks of `comm`. */
static sl_ranker *train(const sl_comm *comm, const char *spec, const sl_train_ranks *on) {
    sl_train_params params;
    sl_train_params_init(&params);
    params.threads = 1;
    sl_cluster_training training = {.spec = spec, .paths = &path, .path_count = 1, .params = &params, .on = *on};
    training.reduce.algorithm = SL_ALLREDUCE_RING;
    sl_cluster_report exchanged;
    sl_ranker *ranker;
    rank_assert_ok(sl_cluster_train(comm, &training, &ranker, NULL, &exchanged));
    return ranker;
}

/* Largest difference of two models' weights. */
static double difference(const sl_ranker *a, const sl_ranker *b) {
    double most = 0;
    rank_assert(a->weights.block_size == b->weights.block_size);
    for (size_t i = 0; i < a->weights.block_size; i++)
        most = fmax(most, fabs((double)a->weights.block[i] - (double)b->weights.block[i]));
    return most;
}

static void check_training(const char *optimizer, const sl_train_ranks *on) {
    const char *spec = spec_of(optimizer);
    sl_comm self;
    rank_assert_ok(sl_comm_split(&all_ranks, (int)all_ranks.rank, 0, &self));
    sl_ranker *alone = train(&self, spec, &(sl_train_ranks){.batch_rows = 0});
    sl_ranker *together = train(&all_ranks, spec, on);
    rank_assert(difference(alone, together) < 2e-4);
    sl_ranker_free(alone);
    sl_ranker_free(together);
    sl_comm_free(&self);
}

START_TEST(sums_are_those_of_one_process) {
    check_training("adagrad", &(sl_train_ranks){.bucket = 0});
    check_training("adagrad", &(sl_train_ranks){.bucket = 50});
    check_training("adam", &(sl_train_ranks){.no_overlap = 1});
}
END_TEST

START_TEST(shards_are_those_of_one_process) {
    check_training("adagrad", &(sl_train_ranks){.shard = 1});
    check_training("adam", &(sl_train_ranks){.shard = 4000 * sizeof(float)});
}
END_TEST

/* With several steps in an epoch, ranks read rows that others have stepped since. */
START_TEST(shards_change_nothing_between_steps) {
    const char *spec = spec_of("adagrad");
    sl_ranker *whole = train(&all_ranks, spec, &(sl_train_ranks){.batch_rows = 100});
    sl_ranker *shards = train(&all_ranks, spec, &(sl_train_ranks){.batch_rows = 100, .shard = 1});
    rank_assert(difference(whole, shards) < 2e-3);
    sl_ranker_free(whole);
    sl_ranker_free(shards);
}
END_TEST

int main(int argc, char **argv) {
    TCase *test = tcase_create("steps");
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_add_test(test, sums_are_those_of_one_process);
    tcase_add_test(test, shards_are_those_of_one_process);
    tcase_add_test(test, shards_change_nothing_between_steps);
    return ranks_main(argc, argv, "steps", &test, 1);
}
