#include "../rank/shapes.h"
#include "contender.h"
#include "distance/codec/convert.h"
#include "distance/codec/quantise.h"
#include "ranker/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ours {
    sl_allocator allocator;
    const inputs *in;
    our_form form;
    sl_ranker *ranker;
    sl_net_run *run;
    /* OUR_MODEL: encoded rows of each set. */
    sl_predictor *predictor;
    sl_encoded *encoded;
    /* Parts of the first layer: the user's, and the items' of all sets, in a table whose order is not theirs. */
    sl_first_part user, item;
    float *user_part, *scales;
    char *table;
    const void **rows; /* (sets, rows) */
} ours;

/* Gives the place of item i among n: neighbours of a request lie apart. */
static size_t place_of(size_t i, size_t n) {
    const size_t step = 7919; /* a prime */
    return n % step ? i * step % n : i;
}

static sl_dtype type_of(our_form form) {
    return form == OUR_PARTS ? SL_F32 : form == OUR_PARTS_BF16 ? SL_BF16 : SL_I8;
}

static size_t element_size(our_form form) {
    return form == OUR_PARTS ? sizeof(float) : form == OUR_PARTS_BF16 ? sizeof(uint16_t) : 1;
}

/* Writes one item's part as the recommender keeps it. Returns the scale of signed bytes. */
static float keep_part(our_form form, const float *sums, size_t width, void *to) {
    if (form == OUR_PARTS_I8) return sl_quantise(SL_CODES_I8, (sl_clip_rule){SL_CLIP_MINMAX, 0}, sums, width, to);
    sl_from_float(type_of(form), sums, to, width);
    return 1;
}

static void make_table(ours *o) {
    const array *items = o->in->arrays[1];
    size_t total = o->in->sets * o->in->rows, width = o->ranker->shape.width[1];
    size_t bytes = width * element_size(o->form);
    float *sums = must_alloc(o->in->rows * width, sizeof *sums);
    o->table = must_alloc(total + 1, bytes);
    o->rows = must_alloc(total, sizeof *o->rows);
    o->scales = must_alloc(total, sizeof *o->scales);
    for (size_t set = 0; set < o->in->sets; set++) {
        const float *from = items->floats + set * o->in->rows * items->columns;
        must(sl_net_run_first(o->run, &o->item, from, items->columns, o->in->rows, sums), "items' parts");
        for (size_t r = 0; r < o->in->rows; r++) {
            size_t i = set * o->in->rows + r;
            char *to = o->table + place_of(i, total) * bytes;
            o->scales[i] = keep_part(o->form, sums + r * width, width, to);
            o->rows[i] = to;
        }
    }
    free(sums);
}

static void run_net(void *state, size_t set) {
    ours *o = state;
    size_t size = o->in->rows * o->in->arrays[0]->columns;
    memcpy(sl_net_run_input(o->run), o->in->arrays[0]->floats + set * size, size * sizeof(float));
    must(sl_net_run_forward(o->run, o->in->rows, o->in->out), "forward");
}

static void run_parts(void *state, size_t set) {
    ours *o = state;
    const sl_item_rows items = {type_of(o->form), o->rows + set * o->in->rows, o->scales + set * o->in->rows};
    const array *user = o->in->arrays[0];
    must(sl_net_run_first(o->run, &o->user, user->floats + set * user->columns, user->columns, 1, o->user_part),
         "the user's part");
    must(sl_net_run_rest(o->run, o->user_part, &items, NULL, o->in->rows, o->in->out), "rest");
}

static void run_model(void *state, size_t set) {
    ours *o = state;
    must(sl_predictor_predict_encoded(o->predictor, &o->encoded[set], o->in->out), "predict");
}

static void free_encoded(ours *o) {
    for (size_t set = 0; o->encoded && set < o->in->sets; set++) {
        free((void *)o->encoded[set].ids);
        free((void *)o->encoded[set].bag_start);
        free((void *)o->encoded[set].bag_ids);
    }
    free(o->encoded);
}

static void ours_free(void *state) {
    ours *o = state;
    sl_net_run_free(o->run);
    sl_predictor_free(o->predictor);
    sl_ranker_free(o->ranker);
    free_encoded(o);
    free(o->user_part);
    free(o->scales);
    free(o->table);
    free(o->rows);
    free(o);
}

/* Rows of the graph's inputs, whose bags are filled up with -1, as encoded rows. */
static void encode_set(const ours *o, size_t set, sl_encoded *out) {
    const array *dense = o->in->arrays[0], *ids = o->in->arrays[1];
    size_t rows = o->in->rows, bags = o->in->count - 2, id_count = rows * ids->columns, room = 1, used = 0;
    for (size_t b = 0; b < bags; b++)
        room += rows * o->in->arrays[2 + b]->columns;
    uint32_t *copy = must_alloc(id_count, sizeof *copy), *start = must_alloc(rows * bags + 1, sizeof *start);
    uint32_t *bag_ids = must_alloc(room, sizeof *bag_ids);
    for (size_t i = 0; i < id_count; i++)
        copy[i] = (uint32_t)ids->ids[set * id_count + i];
    for (size_t r = 0; r < rows; r++)
        for (size_t b = 0; b < bags; b++) {
            const array *bag = o->in->arrays[2 + b];
            const int64_t *from = bag->ids + (set * rows + r) * bag->columns;
            for (size_t i = 0; i < bag->columns && from[i] >= 0; i++)
                bag_ids[used++] = (uint32_t)from[i];
            start[r * bags + b + 1] = (uint32_t)used;
        }
    *out = (sl_encoded){sizeof *out, rows, dense->floats + set * rows * dense->columns, copy, start, bag_ids};
}

static void open_model(ours *o) {
    sl_predictor_params params;
    sl_predictor_params_init(&params);
    params.max_rows = o->in->rows;
    must(sl_predictor_create(o->ranker, &params, &o->predictor), "predictor");
    o->encoded = must_alloc(o->in->sets, sizeof *o->encoded);
    for (size_t set = 0; set < o->in->sets; set++)
        encode_set(o, set, &o->encoded[set]);
}

static void (*open_net(ours *o))(void *, size_t) {
    size_t width = o->ranker->shape.width[0], user;
    must(sl_net_run_create(o->ranker->net, o->in->rows, &o->allocator, &o->run), "net");
    if (o->form == OUR_NET) return run_net;
    user = o->in->arrays[0]->columns;
    o->user = (sl_first_part){0, user, 1};
    o->item = (sl_first_part){user, width - user, 0};
    o->user_part = must_alloc(o->ranker->shape.width[1], sizeof(float));
    make_table(o);
    return run_parts;
}

void ours_open(our_form form, const char *model, const inputs *in, contender *out) {
    ours *o = must_alloc(1, sizeof *o);
    o->allocator = sl_allocator_of(NULL);
    o->in = in;
    o->form = form;
    must(sl_ranker_open(model, NULL, &o->ranker), model);
    *out = (contender){.state = o, .run = run_model, .free = ours_free};
    if (form == OUR_MODEL)
        open_model(o);
    else
        out->run = open_net(o);
    snprintf(out->about, sizeof out->about, "%s", sl_version());
}
