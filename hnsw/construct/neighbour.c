#include "hnsw/construct/neighbour.h"

/* Runs of this length are sorted by insertion. */
enum { RUN = 8 };

void sl_neighbours_keep(sl_neighbour *entries, size_t n, size_t keep) {
    size_t first = 0, end = n; /* the boundary lies between them */
    while (end - first > 1) {
        /* The pivot is never the smallest: of two numbers it's the larger. */
        sl_neighbour a = entries[first], b = entries[first + (end - first) / 2],
                     c = end - first == 2 ? UINT64_MAX : entries[end - 1];
        sl_neighbour pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
        size_t i = first, j = end - 1;
        for (;; i++, j--) {
            while (entries[i] > pivot)
                i++;
            while (entries[j] < pivot)
                j--;
            if (i >= j) break;
            sl_neighbour swapped = entries[i];
            entries[i] = entries[j];
            entries[j] = swapped;
        }
        /* [first, j] is at least the pivot; the rest is at most the pivot. */
        if (j + 1 == keep) return;
        if (j + 1 > keep)
            end = j + 1;
        else
            first = j + 1;
    }
}

size_t sl_neighbours_merge(const sl_neighbour *a, size_t na, const sl_neighbour *b, size_t nb, sl_neighbour *out,
                           size_t limit) {
    size_t i = 0, j = 0, count = 0;
    while (i < na && j < nb && count < limit) {
        const sl_neighbour x = a[i], y = b[j];
        out[count++] = x > y ? x : y;
        i += x >= y;
        j += y >= x;
    }
    for (; i < na && count < limit; i++)
        out[count++] = a[i];
    for (; j < nb && count < limit; j++)
        out[count++] = b[j];
    return count;
}

static void sort_run(sl_neighbour *entries, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const sl_neighbour moved = entries[i];
        size_t j = i;
        for (; j > 0 && entries[j - 1] < moved; j--)
            entries[j] = entries[j - 1];
        entries[j] = moved;
    }
}

void sl_neighbours_sort(sl_neighbour *entries, size_t n, sl_neighbour *scratch) {
    for (size_t first = 0; first < n; first += RUN)
        sort_run(entries + first, n - first < RUN ? n - first : RUN);
    for (size_t run = RUN; run < n; run *= 2)
        for (size_t first = 0; first + run < n; first += 2 * run) {
            const size_t next = n - first - run < run ? n - first - run : run;
            memcpy(scratch, entries + first, run * sizeof *entries);
            (void)sl_neighbours_merge(scratch, run, entries + first + run, next, entries + first, run + next);
        }
}

void sl_neighbour_lists_free(sl_neighbour_lists *lists) {
    SL_FREE_ARRAY(&lists->allocator, lists->entries, lists->n * lists->width);
    SL_FREE_ARRAY(&lists->allocator, lists->count, lists->n);
    *lists = (sl_neighbour_lists){0};
}
