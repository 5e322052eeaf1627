#include "ranker/prune/unit_pruning.h"

#include "ranker/model/auc.h"
#include "ranker/prune/importance.h"

#include <math.h>
#include <string.h>

/* The state of a choice. */
typedef struct choice {
    const sl_net_shape *shape;
    const sl_prune_params *params;
    sl_sort_entry *order; /* units by rising importance, and behind them scratch for the sort */
    unsigned char *kept;
    size_t units;
    size_t left[SL_MAX_LAYERS + 1]; /* units to keep of each layer's inputs */
} choice;

/* The layer that reads the unit. */
static size_t layer_of(const sl_net_shape *shape, size_t unit) {
    size_t layer = 1;
    while (unit >= shape->width[layer])
        unit -= shape->width[layer++];
    return layer;
}

/* The layer's width if `left` units stay: rounded up to params->multiple. */
static size_t rounded_width(const choice *c, size_t layer, size_t left) {
    size_t multiple = c->params->multiple, width = c->shape->width[layer];
    if (multiple >= width) return width;
    size_t up = (left + multiple - 1) / multiple * multiple;
    return up < width ? up : width;
}

static void narrower_shape(const choice *c, sl_net_shape *out) {
    *out = *c->shape;
    for (size_t l = 1; l < c->shape->layers; l++)
        out->width[l] = rounded_width(c, l, c->left[l]);
}

/* Returns whether `cut` units are enough. */
static int cut_is_enough(const choice *c, size_t cut) {
    sl_net_shape now;
    if (c->params->multiply_adds == 0) return cut >= (size_t)(c->params->units * (double)c->units + 0.5);
    narrower_shape(c, &now);
    double all = (double)sl_net_multiply_adds(c->shape);
    return (double)sl_net_multiply_adds(&now) <= (1 - c->params->multiply_adds) * all;
}

/* Sorts units by importance. No importance is negative, so its bits, read as an integer, give the same order. */
static void sort_units(choice *c, const double *importance) {
    for (size_t i = 0; i < c->units; i++) {
        uint64_t key;
        memcpy(&key, &importance[i], sizeof key);
        c->order[i] = (sl_sort_entry){key, i};
    }
    sl_sort(c->order, c->order + c->units, c->units);
}

/* Cuts the least important units of the whole net. Returns whether that is enough. */
static int cut_across_layers(choice *c) {
    size_t cut = 0;
    for (size_t i = 0; i < c->units && !cut_is_enough(c, cut); i++) {
        size_t layer = layer_of(c->shape, c->order[i].row);
        if (c->left[layer] == 1) continue;
        c->left[layer]--;
        cut++;
    }
    return cut_is_enough(c, cut);
}

/* Tried shares of a layer are multiples of 1 / SHARES. */
enum { SHARES = 4096 };

/* Cuts the same share of each layer: the smallest share that is enough. Returns 0 if none is. */
static int cut_every_layer(choice *c) {
    for (size_t step = 1; step < SHARES; step++) {
        size_t cut = 0;
        for (size_t l = 1; l < c->shape->layers; l++) {
            size_t of_layer = (size_t)((double)c->shape->width[l] * (double)step / SHARES);
            c->left[l] = c->shape->width[l] > of_layer ? c->shape->width[l] - of_layer : 1;
            cut += c->shape->width[l] - c->left[l];
        }
        if (cut_is_enough(c, cut)) return 1;
    }
    return 0;
}

/* Marks the units to keep: in each layer the most important ones, as many as the shape's width. */
static void mark_kept(choice *c, const sl_net_shape *out) {
    size_t room[SL_MAX_LAYERS + 1];
    memcpy(room, out->width, sizeof room);
    memset(c->kept, 0, c->units);
    for (size_t i = c->units; i-- > 0;) {
        size_t layer = layer_of(c->shape, c->order[i].row);
        if (!room[layer]) continue;
        room[layer]--;
        c->kept[c->order[i].row] = 1;
    }
}

sl_status sl_units_choose(const sl_net_shape *shape, const double *importance, const sl_prune_params *params,
                          const sl_allocator *allocator, unsigned char *kept, sl_net_shape *out) {
    choice c = {.shape = shape, .params = params, .kept = kept, .units = sl_unit_count(shape)};
    void *block;
    size_t bytes;
    if (!sl_mul(c.units, 2 * sizeof *c.order, &bytes)) return sl_fail(SL_ENOMEM, "%zu units do not fit", c.units);
    SL_TRY(sl_mem_alloc(allocator, bytes, &block));
    c.order = block;
    memcpy(c.left, shape->width, sizeof c.left);
    sort_units(&c, importance);
    int reached = params->per_layer ? cut_every_layer(&c) : cut_across_layers(&c), cuts = 0;
    if (reached) {
        narrower_shape(&c, out);
        mark_kept(&c, out);
        cuts = memcmp(out->width, shape->width, sizeof shape->width) != 0;
    }
    sl_mem_free(allocator, block, bytes);
    if (cuts) return SL_OK;
    if (reached)
        return sl_fail(SL_EINVAL,
                       "the share is less than a unit, or widths are rounded up to what they are: give a "
                       "larger share, or a smaller multiple than %zu",
                       params->multiple);
    return sl_fail(SL_EINVAL,
                   "so large a share cannot be cut: each layer keeps a unit, and widths are multiples of %zu",
                   params->multiple);
}

/* Returns whether unit `i` of a layer's inputs stays. */
static int unit_stays(const unsigned char *kept, size_t i) {
    return !kept || kept[i];
}

/* Copies the kept entries of a row. Returns the place after the last copy. */
static float *copy_row(const float *from, const unsigned char *kept, size_t count, float *to) {
    for (size_t i = 0; i < count; i++)
        if (unit_stays(kept, i)) *to++ = from[i];
    return to;
}

void sl_units_copy(const sl_net_shape *shape, const unsigned char *kept, const float *from, float *to) {
    const unsigned char *in = NULL; /* the first layer keeps all inputs, and the last all outputs */
    for (size_t l = 0; l < shape->layers; l++) {
        const unsigned char *out = l + 1 < shape->layers ? kept : NULL;
        for (size_t r = 0; r < shape->width[l]; r++) {
            if (unit_stays(in, r)) to = copy_row(from, out, shape->width[l + 1], to);
            from += shape->width[l + 1];
        }
        to = copy_row(from, out, shape->width[l + 1], to);
        from += shape->width[l + 1];
        in = out;
        kept += shape->width[l + 1];
    }
}
