/* The steps of a walk before and after scoring: which links are unvisited, which scores enter the candidate pool, and
 * which candidate is next. Each is written twice: over the sixteens of x86.h, for tiers that have them, and as plain
 * loops. body.h includes this file. */
#ifndef SL_DISTANCE_CANDIDATES_H
#define SL_DISTANCE_CANDIDATES_H

#include "distance/lanes.h"

#include <math.h>

#ifdef LANE_GATHERS

/* Shows the thread sanitizer that links were loaded after their rows were written. */
static AI void order_links(const uint32_t *links, size_t degree) {
#ifdef SL_LINKS_NEED_ORDER
    for (size_t j = 0; j < degree; j++)
        (void)__atomic_load_n(links + j, SL_LINK_ORDER);
#else
    (void)links;
    (void)degree;
#endif
}

/* Tests all of sixteen links before it marks any. Another thread may change the links meanwhile, each word as a whole.
 */
static size_t unvisited(sl_visited *visited, const uint32_t *links, size_t degree, size_t count, uint32_t *found) {
    const V end = M(set1_epi32)((int)(uint32_t)count), none = M(set1_epi32)((int)SL_NO_LINK);
    size_t kept = 0;
    for (size_t j = 0; j < degree; j += 16) {
        V ids = lane_ids(links + j, degree - j);
        uint32_t there = first_of(degree - j), set = lane_below(ids, none, there);
        /* Keeps links before the end of the list. */
        uint32_t valid = lane_below(ids, end, there) & (set ^ (set + 1));
        uint32_t fresh = lane_unmarked(visited, ids, valid);
        lane_pack(found + kept, ids, fresh);
        kept += (size_t)__builtin_popcount(fresh);
        if (set != 0xffff) break;
    }
    order_links(links, degree);
    /* An id that stands twice among sixteen counts once. A damaged list, or one being written, may hold such an id. */
    size_t once = 0;
    sl_visited table = *visited; /* a copy stays in registers */
    for (size_t i = 0; i < kept; i++) {
        uint32_t id = found[i];
        found[once] = id;
        once += !sl_visited_mark(&table, id);
    }
    return once;
}

#else

static size_t unvisited(sl_visited *visited, const uint32_t *links, size_t degree, size_t count, uint32_t *found) {
    size_t kept = 0;
    sl_visited table = *visited; /* a copy stays in registers */
    for (size_t j = 0; j < degree; j++) {
        uint32_t id = __atomic_load_n(links + j, SL_LINK_ORDER);
        if (id >= count) {
            if (id == SL_NO_LINK) break;
            continue;
        }
        found[kept] = id;
        kept += !sl_visited_mark(&table, id);
    }
    return kept;
}

#endif

#ifdef LANE_CANDIDATES

/* Up to this many candidates, one maximum over all tops is faster than a detour by peaks. The tier keeps no peaks
 * then. */
enum { PEAKS_FROM = 8192 };

static AI uint32_t count_from(const float *scores, uint32_t n, float bound) {
    const S least = sixteen_splat(bound);
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i += 16)
        count += (uint32_t)__builtin_popcount(sixteen_from(sixteen_first(scores + i, n - i), least, first_of(n - i)));
    return count;
}

static AI void range_of(const float *scores, uint32_t n, float *low, float *high) {
    const S none = sixteen_splat(-INFINITY);
    S most = none, least = none; /* maxima of the scores, and of their negatives */
    for (uint32_t i = 0; i < n; i += 16) {
        uint32_t there = first_of(n - i);
        S score = sixteen_first(scores + i, n - i);
        most = sixteen_greater(most, sixteen_choose(score, none, there));
        least = sixteen_greater(least, sixteen_choose(sixteen_negative(score), none, there));
    }
    *low = -sixteen_greatest(least);
    *high = sixteen_greatest(most);
}

static void empty_candidates(sl_candidates *all) {
    const S none = sixteen_splat(-INFINITY);
    all->count = 0;
    all->threshold = -INFINITY;
    sixteen_store(all->open, none);
    sixteen_store(all->tops, none);
    sixteen_store(all->best_scores, none);
}

/* Writes the best of each sixteen of n, from the sixteen that holds `first` on. Nothing is open behind the last. */
static AI size_t refresh_best(const float *of, size_t n, size_t first, float *into) {
    size_t i = first / 16;
    for (; 16 * i < n; i++)
        into[i] = sixteen_greatest(sixteen(of + 16 * i));
    sixteen_store(into + i, sixteen_splat(-INFINITY));
    return i;
}

static AI void refresh_tops(sl_candidates *all, size_t first) {
    sixteen_store(all->open + all->count, sixteen_splat(-INFINITY));
    size_t tops = refresh_best(all->open, all->count, first, all->tops);
    if (all->count > PEAKS_FROM) (void)refresh_best(all->tops, tops, first > PEAKS_FROM ? first / 16 : 0, all->peaks);
}

static AI void lane_tops(sl_candidates *all) {
    refresh_tops(all, 0);
}

/* Inserts the scores, of sixteen, that beat the last of the best scores. Each place gets the greater of its score and
 * of the lesser of the new score and the one before. */
static AI void note_best_score(sl_candidates *all, const float *scores, S score, uint32_t kept) {
    uint32_t nearer = sixteen_above(score, sixteen_splat(all->best_scores[all->best_count - 1]), kept);
    if (!nearer) return;
    S near = sixteen(all->best_scores);
    for (; nearer; nearer &= nearer - 1) {
        S comes = sixteen_splat(scores[__builtin_ctz(nearer)]);
        near = sixteen_greater(near, sixteen_lesser(sixteen_behind(near, INFINITY), comes));
    }
    sixteen_store(all->best_scores, near);
}

static void admit_candidates(sl_candidates *all, const float *scores, const uint32_t *ids, size_t n) {
    const S threshold = sixteen_splat(all->threshold);
    size_t count = all->count, first = count;
    for (size_t i = 0; i < n; i += 16) {
        S score = sixteen_first(scores + i, n - i);
        uint32_t kept = sixteen_above(score, threshold, first_of(n - i));
        sixteen_pack(all->scores + count, score, kept);
        sixteen_pack(all->open + count, score, kept);
        sixteen_pack(all->ids + count, sixteen_first(ids + i, n - i), kept);
        count += (size_t)__builtin_popcount(kept);
        if (all->best_count) note_best_score(all, scores + i, score, kept);
    }
    all->count = count;
    refresh_tops(all, first);
}

/* Returns the greatest of n, in whole sixteens. */
static AI float greatest(const float *x, size_t n) {
    S most = sixteen(x);
    for (size_t i = 16; i < n; i += 16)
        most = sixteen_greater(most, sixteen(x + i));
    return sixteen_greatest(most);
}

/* Returns the place of a score; it must be there. */
static AI size_t place_of(const float *x, float score) {
    const S all = sixteen_splat(score);
    for (size_t place = 0;; place += 16) {
        uint32_t here = sixteen_same(sixteen(x + place), all, 0xffff);
        if (here) return place + (size_t)__builtin_ctz(here);
    }
}

/* Writes a score into its sixteen and returns the greatest there. Stores the sixteen as a whole, so that its next load
 * can take it from the store. */
static AI float put_score(float *x, size_t place, float score) {
    float *at = x + place / 16 * 16;
    S all = sixteen_choose(sixteen_splat(score), sixteen(at), 1u << place % 16);
    sixteen_store(at, all);
    return sixteen_greatest(all);
}

static size_t best_open_candidate(sl_candidates *all) {
    size_t peak = 0, tops = (all->count + 15) / 16;
    int many = all->count > PEAKS_FROM;
    float most = many ? greatest(all->peaks, (tops + 15) / 16) : greatest(all->tops, tops);
    if (most == -INFINITY) return SL_NO_PLACE;
    if (many) peak = place_of(all->peaks, most);
    size_t top = 16 * peak + place_of(all->tops + 16 * peak, most);
    size_t place = 16 * top + place_of(all->open + 16 * top, most);
    float left = put_score(all->tops, top, put_score(all->open, place, -INFINITY));
    if (many) (void)put_score(all->peaks, peak, left);
    return place;
}

static AI size_t lane_keep_above(float *scores, float *open, uint32_t *ids, size_t n, float bound, uint32_t alike) {
    const S least = sixteen_splat(bound);
    size_t kept = 0;
    for (size_t i = 0; i < n; i += 16) {
        S score = sixteen_first(scores + i, n - i), id = sixteen_first(ids + i, n - i);
        uint32_t there = first_of(n - i), stay = sixteen_above(score, least, there);
        uint32_t on = sixteen_same(score, least, there);
        for (; on && alike; on &= on - 1, alike--)
            stay |= on & -on;
        if (open) sixteen_pack(open + kept, sixteen_first(open + i, n - i), stay);
        sixteen_pack(scores + kept, score, stay);
        sixteen_pack(ids + kept, id, stay);
        kept += (size_t)__builtin_popcount(stay);
    }
    return kept;
}

#else

static AI uint32_t count_from(const float *scores, uint32_t n, float bound) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += scores[i] >= bound;
    return count;
}

static AI void range_of(const float *scores, uint32_t n, float *low, float *high) {
    *low = INFINITY;
    *high = -INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        *low = scores[i] < *low ? scores[i] : *low;
        *high = scores[i] > *high ? scores[i] : *high;
    }
}

/* Moves scores above a bound to the front, and the first `alike` of those equal to it, with their ids, and with `open`
 * unless it's NULL. Returns how many it kept. */
static size_t lane_keep_above(float *scores, float *open, uint32_t *ids, size_t n, float bound, uint32_t alike) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        float score = scores[i];
        uint32_t on = score == bound && alike > 0;
        scores[kept] = score;
        ids[kept] = ids[i];
        if (open) open[kept] = open[i];
        kept += on || score > bound;
        alike -= on;
    }
    return kept;
}

static AI void close_16(float *x) {
    for (size_t i = 0; i < 16; i++)
        x[i] = -INFINITY;
}

static AI float most_of_16(const float *x) {
    float most = x[0];
    for (size_t i = 1; i < 16; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

static AI size_t place_of(const float *x, float score) {
    size_t place = 0;
    while (x[place] != score)
        place++;
    return place;
}

static void empty_candidates(sl_candidates *all) {
    all->count = 0;
    all->threshold = -INFINITY;
    close_16(all->best_scores);
    close_16(all->peaks);
}

/* Each place gets the greater of its score and of the lesser of the new score and the one before. */
static void note_best_score(sl_candidates *all, float score) {
    float before = INFINITY;
    for (size_t i = 0; i < all->best_count; i++) {
        float here = all->best_scores[i], moved = score < before ? score : before;
        all->best_scores[i] = moved > here ? moved : here;
        before = here;
    }
}

/* Opens a place: sets its score in its sixteen, and the best of the sixteens above. */
static AI void open_place(sl_candidates *all, size_t place, float score) {
    size_t top = place / 16, peak = top / 16;
    if (place % 16 == 0) close_16(all->open + place);
    if (place % 256 == 0) close_16(all->tops + top);
    if (place % 4096 == 0) close_16(all->peaks + peak);
    all->open[place] = score;
    all->tops[top] = place % 16 && all->tops[top] > score ? all->tops[top] : score;
    all->peaks[peak] = place % 256 && all->peaks[peak] > score ? all->peaks[peak] : score;
}

static void admit_candidates(sl_candidates *all, const float *scores, const uint32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float score = scores[i];
        if (!(score > all->threshold)) continue;
        all->scores[all->count] = score;
        all->ids[all->count] = ids[i];
        open_place(all, all->count++, score);
        if (all->best_count && score > all->best_scores[all->best_count - 1]) note_best_score(all, score);
    }
}

static size_t best_open_candidate(sl_candidates *all) {
    float most = -INFINITY;
    for (size_t i = 0; 256 * i < all->count; i++)
        most = all->peaks[i] > most ? all->peaks[i] : most;
    if (most == -INFINITY) return SL_NO_PLACE;
    size_t peak = place_of(all->peaks, most), top = 16 * peak + place_of(all->tops + 16 * peak, most);
    size_t place = 16 * top + place_of(all->open + 16 * top, most);
    all->open[place] = -INFINITY;
    all->tops[top] = most_of_16(all->open + 16 * top);
    all->peaks[peak] = most_of_16(all->tops + 16 * peak);
    return place;
}

static AI void close_rest(float *x, size_t n) {
    for (size_t i = n; i % 16; i++)
        x[i] = -INFINITY;
}

static AI size_t refresh_best(const float *of, size_t n, float *into) {
    size_t count = (n + 15) / 16;
    for (size_t i = 0; i < count; i++)
        into[i] = most_of_16(of + 16 * i);
    close_rest(into, count);
    return count;
}

static void lane_tops(sl_candidates *all) {
    close_rest(all->open, all->count);
    (void)refresh_best(all->tops, refresh_best(all->open, all->count, all->tops), all->peaks);
}

#endif

#endif
