/* The golden files and their answers, for the tests of them. Failures end the test. */
#ifndef SL_TESTS_GOLDEN_ANSWERS_H
#define SL_TESTS_GOLDEN_ANSWERS_H

#include "tests/support/scratch.h"

/* Copies a golden file into the test's folder; `path` has SCRATCH_PATH bytes. */
void golden_copy(const scratch *s, const char *name, char *path);

/* The text behind "KEY:" in answers.txt, up to the end of the file. */
const char *golden_answer(const char *key);

#endif
