/* The model that tests of quantising share: four layers over planted rows, untrained. Each test program has its own. */
#ifndef SL_TESTS_PLANTED_MODEL_H
#define SL_TESTS_PLANTED_MODEL_H

#include "tests/support/planted.h"

#define CLICK "\"column\": \"click\""
enum { ROWS = 3000, LAYERS = 4 };

static planted rows;
static sl_ranker *model;

static void set_up(void) {
    planted_make(&rows, ROWS, 1);
    model = planted_ranker(&rows, CLICK, "", "\"hidden\": [24, 16, 8]");
}

static void tear_down(void) {
    sl_ranker_free(model);
    planted_free(&rows);
}

#endif
