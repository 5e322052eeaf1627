#include "tests/golden/answers.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void golden_copy(const scratch *s, const char *name, char *path) {
    char from[SCRATCH_PATH];
    size_t size;
    ck_assert_int_lt(snprintf(from, sizeof from, "%s/%s", GOLDEN_FILES, name), (int)sizeof from);
    unsigned char *bytes = file_read(from, &size);
    scratch_name(s, name, path);
    file_write(path, bytes, size);
    free(bytes);
}

const char *golden_answer(const char *key) {
    static char *answers;
    if (!answers) {
        size_t size;
        answers = (char *)file_read(GOLDEN_ANSWERS, &size);
        answers[size] = 0;
    }
    size_t length = strlen(key);
    for (const char *line = answers; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (!strncmp(line, key, length) && line[length] == ':') return line + length + 1;
    }
    ck_abort_msg("no answer for %s", key);
}
