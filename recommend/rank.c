#include "recommend/recommender.h"
#include "recommend/side.h"

#include "ranker/net/loss.h"

#include <math.h>
#include <string.h>

struct sl_model_scorer {
    sl_allocator allocator;
    sl_ranker *ranker; /* a reference of its own */
    sl_item_shape shape;
    size_t max_rows;
    float missing_score;
    int asks_recall; /* 1: the recall score is a feature of the model */
    int has_user;    /* 1: the user's side has features */
    sl_side_encoder user;
    sl_encoded user_row;
    float user_logit;   /* the bias, and the user's part of the wide sum */
    sl_net_run *run;    /* NULL without a deep part */
    size_t first_width; /* width of the first layer; 0: there is no deep part */
    float *user_sums;   /* first_width: the user's part of the first layer */
    float *item_sums; /* (max_rows, first_width); one row of zeros if items have no deep inputs; NULL: the items' parts
                         are prepared ahead */
    float *pair_sums; /* (max_rows, first_width); NULL: pairs have no deep inputs */
    const void **item_rows; /* max_rows pointers to the items' parts of the first layer */
    float *item_scales;     /* max_rows scales of item_rows; NULL: the parts are not in 8 bits */
    float *deep;            /* max_rows outputs of the deep part */
    sl_pair_rows pairs;
};

static size_t side_width(const size_t side[4], sl_side which) {
    return side[which + 1] - side[which];
}

/* ---------------------------------------------------------------------------------------------------------------
 * Making and freeing
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status make_floats(const sl_model_scorer *scorer, size_t rows, float **out) {
    void *block;
    size_t bytes;
    if (!sl_mul(rows, scorer->first_width * sizeof(float), &bytes))
        return sl_fail(SL_ENOMEM, "%zu candidates do not fit", rows);
    SL_TRY(sl_mem_alloc(&scorer->allocator, bytes, &block));
    *out = block;
    return SL_OK;
}

/* The number of rows of item_sums. */
static size_t item_rows_of(const sl_model_scorer *scorer) {
    if (!scorer->run || scorer->shape.first_width) return 0;
    return scorer->shape.deep_width ? scorer->max_rows : 1;
}

/* Returns whether the items' parts were prepared in 8 bits. */
static int has_scales(const sl_model_scorer *scorer) {
    return scorer->run && scorer->shape.first_width && scorer->shape.layer_type == SL_I8;
}

static sl_status make_deep(sl_model_scorer *scorer) {
    const sl_ranker *ranker = scorer->ranker;
    void *block;
    if (!ranker->net) return SL_OK;
    scorer->first_width = ranker->shape.width[1];
    SL_TRY(sl_net_run_create(ranker->net, scorer->max_rows, &scorer->allocator, &scorer->run));
    SL_TRY(make_floats(scorer, 1, &scorer->user_sums));
    if (item_rows_of(scorer)) SL_TRY(make_floats(scorer, item_rows_of(scorer), &scorer->item_sums));
    if (side_width(ranker->features->deep_side, SL_SIDE_PAIR))
        SL_TRY(make_floats(scorer, scorer->max_rows, &scorer->pair_sums));
    SL_TRY(sl_mem_alloc(&scorer->allocator, scorer->max_rows * sizeof *scorer->item_rows, &block));
    scorer->item_rows = block;
    if (has_scales(scorer)) {
        SL_TRY(sl_mem_alloc(&scorer->allocator, scorer->max_rows * sizeof *scorer->item_scales, &block));
        scorer->item_scales = block;
    }
    SL_TRY(sl_mem_alloc(&scorer->allocator, scorer->max_rows * sizeof *scorer->deep, &block));
    scorer->deep = block;
    return SL_OK;
}

static void note_features(sl_model_scorer *scorer) {
    const sl_features *features = scorer->ranker->features;
    for (size_t f = 0; f < features->count; f++) {
        scorer->asks_recall |= features->features[f].spec->type == SL_FEATURE_SCORE;
        scorer->has_user |= features->features[f].side == SL_SIDE_USER;
    }
}

sl_status sl_model_scorer_create(const sl_recommender *recommender, const sl_pair *pair, size_t max_rows,
                                 sl_model_scorer **out) {
    void *block;
    *out = NULL;
    SL_TRY(sl_mem_alloc(&recommender->allocator, sizeof(sl_model_scorer), &block));
    sl_model_scorer *scorer = block;
    scorer->allocator = recommender->allocator;
    scorer->missing_score = recommender->missing_score;
    scorer->ranker = sl_ranker_retain(pair->ranker);
    scorer->shape = pair->prepared->shape;
    scorer->max_rows = max_rows;
    const sl_features *features = scorer->ranker->features;
    note_features(scorer);
    sl_status status;
    SL_TRY_GOTO(sl_side_encoder_init(&scorer->user, features, SL_SIDE_USER, &scorer->allocator), fail);
    SL_TRY_GOTO(make_deep(scorer), fail);
    SL_TRY_GOTO(sl_pair_rows_init(&scorer->pairs, features, &scorer->shape, max_rows, &scorer->allocator), fail);
    *out = scorer;
    return SL_OK;
fail:
    sl_model_scorer_free(scorer);
    return status;
}

void sl_model_scorer_free(sl_model_scorer *scorer) {
    if (!scorer) return;
    sl_allocator allocator = scorer->allocator;
    size_t width = scorer->first_width * sizeof(float), rows = scorer->max_rows;
    sl_pair_rows_free(&scorer->pairs);
    sl_side_encoder_free(&scorer->user);
    sl_mem_free(&allocator, scorer->user_sums, width);
    sl_mem_free(&allocator, scorer->item_sums, item_rows_of(scorer) * width);
    sl_mem_free(&allocator, scorer->pair_sums, rows * width);
    SL_FREE_ARRAY(&allocator, scorer->item_rows, rows);
    SL_FREE_ARRAY(&allocator, scorer->item_scales, rows);
    SL_FREE_ARRAY(&allocator, scorer->deep, rows);
    sl_net_run_free(scorer->run);
    sl_ranker_free(scorer->ranker);
    SL_FREE(&allocator, scorer);
}

int sl_model_scorer_fits(const sl_model_scorer *scorer, const sl_pair *pair) {
    return scorer && scorer->ranker == pair->ranker;
}

int sl_model_scorer_asks_recall(const sl_model_scorer *scorer) {
    return scorer->asks_recall;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The user
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status put_user_vectors(sl_model_scorer *scorer, const sl_request *request) {
    const sl_features *features = scorer->ranker->features;
    if (!scorer->user.vectors) return SL_OK;
    if (!request->vector) return sl_fail(SL_EINVAL, "the model asks for the request's vector, which is NULL");
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (!sl_feature_from_index(feature, SL_SIDE_USER)) continue;
        SL_TRY(sl_convert(request->vector, request->dtype, sl_side_vector(&scorer->user, feature, 0), SL_F32,
                          feature->width));
    }
    return SL_OK;
}

static sl_status encode_user(sl_model_scorer *scorer, const sl_request *request) {
    static const sl_table nobody = {.struct_size = sizeof nobody, .rows = 1, .origin = "the request"};
    const sl_table *table = request->user ? request->user : &nobody;
    size_t row = request->user ? request->user_row : 0;
    if (row >= table->rows) return sl_fail(SL_EINVAL, "user_row is %zu of a table of %zu rows", row, table->rows);
    scorer->user.rows.rows = 0;
    SL_TRY(sl_side_encode(&scorer->user, table, row, 1));
    SL_TRY(put_user_vectors(scorer, request));
    sl_rows_buffer_view(&scorer->user.rows, &scorer->user_row);
    return SL_OK;
}

sl_status sl_model_scorer_user(sl_model_scorer *scorer, const sl_request *request) {
    const sl_ranker *ranker = scorer->ranker;
    const sl_features *features = ranker->features;
    const unsigned mask = 1u << SL_SIDE_USER;
    scorer->user_logit = ranker->weights.bias[0];
    if (scorer->has_user) {
        SL_TRY(encode_user(scorer, request));
        if (features->wide_size)
            sl_wide_sums(features, ranker->weights.wide, &scorer->user_row, mask, &scorer->user_logit);
    }
    if (!scorer->run) return SL_OK;
    size_t from = features->deep_side[SL_SIDE_USER], width = side_width(features->deep_side, SL_SIDE_USER);
    float *inputs = sl_net_run_input(scorer->run);
    if (width)
        sl_deep_inputs(features, (const float *const *)ranker->weights.embeddings, &ranker->weights.coded,
                       &scorer->user_row, mask, width, inputs);
    const sl_first_part part = {from, width, 1};
    return sl_net_run_first(scorer->run, &part, inputs, width, 1, scorer->user_sums);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Candidates
 * ------------------------------------------------------------------------------------------------------------- */

/* Computes one side's part of the first layer, for candidates as encoded rows. */
static sl_status first_sums(sl_model_scorer *scorer, const sl_encoded *rows, sl_side side, float *out) {
    const sl_ranker *ranker = scorer->ranker;
    const sl_features *features = ranker->features;
    size_t from = features->deep_side[side], width = side_width(features->deep_side, side);
    float *inputs = sl_net_run_input(scorer->run);
    sl_deep_inputs(features, (const float *const *)ranker->weights.embeddings, &ranker->weights.coded, rows, 1u << side,
                   width, inputs);
    const sl_first_part part = {from, width, 0};
    return sl_net_run_first(scorer->run, &part, inputs, width, rows->rows, out);
}

/* Points item_rows at each candidate's part of the first layer. */
static sl_item_rows point_at_items(sl_model_scorer *scorer, const sl_candidate *candidates, size_t count) {
    const sl_item_shape *shape = &scorer->shape;
    const size_t bytes = sl_item_layer_bytes(shape);
    const void **rows = scorer->item_rows;
    float *scales = scorer->item_scales;
    if (!shape->first_width) {
        for (size_t i = 0; i < count; i++)
            rows[i] = scorer->item_sums + (shape->deep_width ? i * scorer->first_width : 0);
        return (sl_item_rows){SL_F32, rows, NULL};
    }
    for (size_t i = 0; i < count; i++)
        rows[i] = candidates[i].part->layer + candidates[i].row * bytes;
    for (size_t i = 0; i < count && scales; i++)
        scales[i] = candidates[i].part->marks[candidates[i].row].scale;
    return (sl_item_rows){shape->layer_type, rows, scales};
}

static sl_status add_deep(sl_model_scorer *scorer, const sl_candidate *candidates, const sl_encoded *rows, size_t count,
                          float *logits) {
    if (scorer->item_sums && scorer->shape.deep_width)
        SL_TRY(first_sums(scorer, rows, SL_SIDE_ITEM, scorer->item_sums));
    if (scorer->pair_sums) SL_TRY(first_sums(scorer, rows, SL_SIDE_PAIR, scorer->pair_sums));
    const sl_item_rows items = point_at_items(scorer, candidates, count);
    SL_TRY(sl_net_run_rest(scorer->run, scorer->user_sums, &items, scorer->pair_sums, count, scorer->deep));
    for (size_t i = 0; i < count; i++)
        logits[i] += scorer->deep[i];
    return SL_OK;
}

sl_status sl_model_scorer_run(sl_model_scorer *scorer, const sl_candidate *candidates, const float *recall_scores,
                              size_t count, float *scores) {
    const sl_ranker *ranker = scorer->ranker;
    const sl_features *features = ranker->features;
    sl_encoded rows;
    if (count == 0) return SL_OK;
    for (size_t i = 0; i < count; i++)
        scores[i] = scorer->user_logit + candidates[i].part->marks[candidates[i].row].wide;
    if (scorer->pairs.needed) {
        SL_TRY(sl_pair_rows_fill(&scorer->pairs, &scorer->user_row, candidates, recall_scores, count, &rows));
        unsigned mask = 1u << SL_SIDE_PAIR | (scorer->shape.wide_ahead ? 0u : 1u << SL_SIDE_ITEM);
        if (features->wide_size) sl_wide_sums(features, ranker->weights.wide, &rows, mask, scores);
    }
    if (scorer->run) SL_TRY(add_deep(scorer, candidates, &rows, count, scores));
    sl_link(features->spec->loss, 1, count, scores);
    if (isnan(scorer->missing_score)) return SL_OK;
    for (size_t i = 0; i < count; i++)
        if (candidates[i].missing) scores[i] = scorer->missing_score;
    return SL_OK;
}
