#include "cluster/allreduce/levels.h"

static size_t smallest_factor(size_t number) {
    for (size_t factor = 2; factor * factor <= number; factor++)
        if (number % factor == 0) return factor;
    return number;
}

/* Appends a level without its partners. */
static sl_level *add_level(sl_levels *levels, size_t ways, size_t digit, sl_status *status) {
    sl_level *level = &levels->level[levels->count];
    level->places = sl_mem_array(&levels->allocator, ways, sizeof *level->places, status);
    if (*status != SL_OK) return NULL;
    level->ways = ways;
    level->digit = digit;
    levels->count++;
    return level;
}

sl_status sl_levels_halving(size_t length, size_t place, const sl_allocator *allocator, sl_levels *out) {
    sl_status status = SL_OK;
    *out = (sl_levels){.allocator = *allocator};
    for (size_t stride = 1; stride < length; stride *= out->level[out->count - 1].ways) {
        size_t ways = smallest_factor(length / stride), digit = place / stride % ways;
        sl_level *level = add_level(out, ways, digit, &status);
        SL_TRY(status);
        for (size_t i = 0; i < ways; i++)
            level->places[i] = place + i * stride - digit * stride;
    }
    return SL_OK;
}

/* The partner at a level of the Bine butterfly. `offset`: of even places, modulo length. */
static size_t bine_partner(size_t length, size_t place, size_t offset) {
    return (place % 2 == 0 ? place + offset : place + length - offset) % length;
}

sl_status sl_levels_bine(size_t length, size_t place, const sl_allocator *allocator, sl_levels *out) {
    sl_status status = SL_OK;
    size_t offsets[SL_LEVELS_MAX], count = 0, sum = 0, power = 1;
    *out = (sl_levels){.allocator = *allocator};
    /* sum = 1 - 2 + 4 - 8 ... modulo length, which is a power of two, so that wrapping is harmless. */
    for (size_t reach = 1; reach < length; reach *= 2, power *= (size_t)-2) {
        sum += power;
        offsets[count++] = sum % length;
    }
    /* least[p]: the least place that shares p's range when a level begins. Of two partners, the one with the lesser
     * keeps part 0. */
    size_t *least = sl_mem_array(allocator, 2 * length, sizeof *least, &status), *next = least + length;
    unsigned char digits[SL_LEVELS_MAX];
    SL_TRY(status);
    for (size_t p = 0; p < length; p++)
        least[p] = p;
    for (size_t i = count; i-- > 0;) {
        size_t partner = bine_partner(length, place, offsets[i]);
        digits[i] = least[place] > least[partner];
        for (size_t p = 0; p < length; p++) {
            size_t other = least[bine_partner(length, p, offsets[i])];
            next[p] = least[p] < other ? least[p] : other;
        }
        for (size_t p = 0; p < length; p++)
            least[p] = next[p];
    }
    for (size_t i = 0; i < count && status == SL_OK; i++) {
        sl_level *level = add_level(out, 2, digits[i], &status);
        if (!level) break;
        level->places[digits[i]] = place;
        level->places[1 - digits[i]] = bine_partner(length, place, offsets[i]);
    }
    SL_FREE_ARRAY(allocator, least, 2 * length);
    return status;
}

void sl_levels_free(sl_levels *levels) {
    for (size_t i = 0; i < levels->count; i++)
        SL_FREE_ARRAY(&levels->allocator, levels->level[i].places, levels->level[i].ways);
    levels->count = 0;
}
