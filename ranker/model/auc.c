#include "ranker/model/auc.h"

#include <math.h>
#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

uint64_t sl_score_key(float score) {
    uint32_t bits;
    float plain = score + 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &plain, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* Radix sort from the lowest digit: stable, without comparisons. qsort would allocate. Skips digits that are equal in
 * all keys. */
void sl_sort(sl_sort_entry *entries, sl_sort_entry *scratch, size_t n) {
    sl_sort_entry *from = entries, *to = scratch;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        size_t start[DIGITS] = {0}, at = 0;
        for (size_t i = 0; i < n; i++)
            start[from[i].key >> shift & (DIGITS - 1)]++;
        if (n == 0 || start[from[0].key >> shift & (DIGITS - 1)] == n) continue;
        for (size_t digit = 0; digit < DIGITS; digit++) {
            size_t count = start[digit];
            start[digit] = at;
            at += count;
        }
        for (size_t i = 0; i < n; i++)
            to[start[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
        sl_sort_entry *other = from;
        from = to;
        to = other;
    }
    if (from != entries) memcpy(entries, from, n * sizeof *entries);
}

/* Goes through the rows by rising score. A positive row counts each negative row before it, and half of each that ties
 * with it. */
double sl_auc_sorted(const sl_sort_entry *sorted, const float *labels, const float *weights, const uint32_t *numbers,
                     size_t n) {
    double negatives = 0, positives = 0, beaten = 0;
    for (size_t i = 0; i < n;) {
        double tied_negatives = 0, tied_positives = 0;
        uint64_t key = sorted[i].key;
        for (; i < n && sorted[i].key == key; i++) {
            size_t row = numbers ? numbers[sorted[i].row] : sorted[i].row;
            double weight = weights ? (double)weights[row] : 1;
            *(labels[row] > 0.5f ? &tied_positives : &tied_negatives) += weight;
        }
        beaten += tied_positives * (negatives + tied_negatives / 2);
        negatives += tied_negatives;
        positives += tied_positives;
    }
    return negatives > 0 && positives > 0 ? beaten / (negatives * positives) : (double)NAN;
}

sl_status sl_auc(const float *scores, const float *labels, const float *weights, const uint32_t *numbers, size_t n,
                 const sl_allocator *allocator, double *out) {
    size_t bytes;
    void *block;
    if (!sl_mul(n, 2 * sizeof(sl_sort_entry), &bytes)) return sl_fail(SL_ENOMEM, "%zu scores do not fit", n);
    SL_TRY(sl_mem_alloc(allocator, bytes, &block));
    sl_sort_entry *entries = block;
    for (size_t i = 0; i < n; i++)
        entries[i] = (sl_sort_entry){sl_score_key(scores[i]), i};
    sl_sort(entries, entries + n, n);
    *out = sl_auc_sorted(entries, labels, weights, numbers, n);
    sl_mem_free(allocator, block, bytes);
    return SL_OK;
}
