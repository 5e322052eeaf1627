#define _POSIX_C_SOURCE 200809L
/*
 * words INDEX WORDS.txt word...: the time to open an index, and the nearest words of each word.
 *
 * A whole client of the library: it opens an index by mapping it, reads a vector, and searches with it. Line i of
 * WORDS.txt is the word whose vector has the id i. An index built from one file without --ids has such ids.
 */
#include <shortlist.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NEIGHBOURS = 8, LINE = 1024 };

struct words {
    char **of_id;
    size_t count;
};

static int words_add(struct words *words, const char *word) {
    if ((words->count & (words->count - 1)) == 0) { /* full at each power of two */
        char **grown = realloc(words->of_id, (words->count ? 2 * words->count : 1) * sizeof *grown);
        if (!grown) return 0;
        words->of_id = grown;
    }
    char *copy = strdup(word);
    if (copy) words->of_id[words->count++] = copy;
    return copy != NULL;
}

static int words_read(struct words *words, const char *path) {
    char line[LINE];
    FILE *file = fopen(path, "r");
    int ok = file != NULL;
    while (ok && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        ok = words_add(words, line);
    }
    if (file && ferror(file)) ok = 0;
    if (file) fclose(file);
    return ok;
}

static void words_free(struct words *words) {
    for (size_t i = 0; i < words->count; i++)
        free(words->of_id[i]);
    free(words->of_id);
}

static uint64_t words_find(const struct words *words, const char *word) {
    for (size_t i = 0; i < words->count; i++) {
        if (strcmp(words->of_id[i], word) == 0) return i;
    }
    return SL_NO_ID;
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Asks for one more word than it shows, since each word is its own nearest. */
static sl_status print_neighbours(sl_index *index, sl_searcher *searcher, const struct words *words, uint64_t id,
                                  float *vector) {
    uint64_t ids[NEIGHBOURS + 1];
    float scores[NEIGHBOURS + 1];
    sl_status status = sl_index_get(index, &id, 1, SL_F32, vector);
    if (status != SL_OK) return status;
    status = sl_searcher_search(searcher, vector, SL_F32, NEIGHBOURS + 1, NULL, ids, scores, NULL);
    if (status != SL_OK) return status;
    printf("%-12s", words->of_id[id]);
    for (size_t i = 0, shown = 0; i <= NEIGHBOURS && shown < NEIGHBOURS; i++) {
        if (ids[i] == id || ids[i] >= words->count) continue; /* SL_NO_ID too is past the last word */
        printf(" %s %.2f", words->of_id[ids[i]], (double)scores[i]);
        shown++;
    }
    printf("\n");
    return SL_OK;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: words INDEX WORDS.txt word...\n");
        return 2;
    }
    int failed = 1;
    struct words words = {0};
    sl_index *index = NULL;
    sl_searcher *searcher = NULL;
    float *vector = NULL;
    sl_index_stats stats = {.struct_size = sizeof stats};

    if (!words_read(&words, argv[2])) {
        fprintf(stderr, "words: cannot read %s\n", argv[2]);
        goto done;
    }
    double start = now_ms();
    if (sl_index_open(argv[1], NULL, &index) != SL_OK || sl_index_get_stats(index, &stats) != SL_OK ||
        sl_searcher_create(index, 256, &searcher) != SL_OK) {
        fprintf(stderr, "words: %s\n", sl_last_error());
        goto done;
    }
    printf("opened %zu vectors in %.2f ms\n", stats.n, now_ms() - start);
    vector = malloc(stats.dim * sizeof *vector);
    if (!vector) goto done;
    for (int i = 3; i < argc; i++) {
        uint64_t id = words_find(&words, argv[i]);
        if (id == SL_NO_ID) {
            printf("%-12s is not in %s\n", argv[i], argv[2]);
        } else if (print_neighbours(index, searcher, &words, id, vector) != SL_OK) {
            fprintf(stderr, "words: %s\n", sl_last_error());
            goto done;
        }
    }
    failed = 0;
done:
    free(vector);
    sl_searcher_free(searcher);
    sl_index_free(index);
    words_free(&words);
    return failed;
}
