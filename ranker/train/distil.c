#include "ranker/train/distil.h"

#include "ranker/features/table.h"
#include "ranker/model/model.h"

#include <math.h>
#include <string.h>

/* Rows that the teacher scores at a time. Each thread scores one tile of them. */
#define TEACHER_ROWS 512u

/* ---------------------------------------------------------------------------------------------------------------
 * The teacher's scores
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status check_teacher(const sl_features *teacher, const sl_features *student) {
    if (teacher->spec->loss != student->spec->loss)
        return sl_fail(SL_EINVAL, "the teacher has another loss than the spec; name a teacher with the spec's loss");
    if (teacher->outputs != student->outputs)
        return sl_fail(SL_EINVAL,
                       "the teacher has %zu outputs, the spec's model %zu; name a teacher of the same classes",
                       teacher->outputs, student->outputs);
    for (size_t o = 0; o < student->outputs; o++)
        if (strcmp(teacher->classes[o], student->classes[o]) != 0)
            return sl_fail(SL_EINVAL,
                           "class %zu is '%s' for the teacher and '%s' for the spec's model; list the teacher's "
                           "classes in \"label.classes\", in its order",
                           o, sl_show(teacher->classes[o], strlen(teacher->classes[o])).text,
                           sl_show(student->classes[o], strlen(student->classes[o])).text);
    return SL_OK;
}

static sl_status fail_other_rows(void) {
    return sl_fail(SL_EVALUE, "the rows are others at another reading; give a source whose rows stay the same");
}

/* Writes the teacher's logits of a source's rows, from row *at on. */
static sl_status read_logits(sl_distil *distil, sl_predictor *teacher, const sl_rows *source, size_t rows, size_t *at) {
    SL_TRY(source->rewind(source->ctx));
    for (;;) {
        sl_table block;
        SL_TRY(sl_rows_next(source, SL_BLOCK_ROWS, &block));
        if (block.rows == 0) return SL_OK;
        if (block.rows > rows - *at) return fail_other_rows();
        SL_TRY(sl_predictor_logits(teacher, &block, distil->targets + *at * distil->outputs));
        *at += block.rows;
    }
}

static sl_status ask_teacher(sl_distil *distil, const sl_train_params *params, const sl_rows *train,
                             const sl_rows *valid, size_t rows) {
    sl_predictor_params predict;
    sl_predictor *predictor;
    size_t at = 0;
    sl_predictor_params_init(&predict);
    predict.max_rows = TEACHER_ROWS;
    predict.threads = params->threads;
    predict.lookup = params->lookup;
    predict.lookup_ctx = params->lookup_ctx;
    predict.allocator = &distil->allocator;
    SL_TRY(sl_predictor_create(params->teacher, &predict, &predictor));
    sl_status status = read_logits(distil, predictor, train, rows, &at);
    if (status == SL_OK && valid) status = read_logits(distil, predictor, valid, rows, &at);
    sl_predictor_free(predictor);
    if (status == SL_OK && at != rows) status = fail_other_rows();
    if (status == SL_OK && !sl_all_finite(distil->targets, distil->target_count))
        status = sl_fail(SL_EVALUE, "a score is not finite: its weights, or huge values in the columns, overflow F32");
    return status == SL_OK ? SL_OK : sl_fail_in(status, "the teacher");
}

/* Sets the rows' labels from the teacher's logits. */
static sl_status label_rows(const sl_distil *distil, sl_dataset *data) {
    sl_rows_buffer *rows = &data->rows;
    size_t outputs = distil->outputs;
    sl_status status = SL_OK;
    rows->labels = sl_mem_grow(&rows->allocator, NULL, &rows->label_room, rows->rows, sizeof *rows->labels, &status);
    SL_TRY(status);
    for (size_t r = 0; r < rows->rows; r++) {
        const float *logits = distil->targets + r * outputs;
        size_t likeliest = 0;
        for (size_t o = 1; o < outputs; o++)
            likeliest = logits[o] > logits[likeliest] ? o : likeliest;
        rows->labels[r] = data->features->spec->loss == SL_LOSS_MULTICLASS ? (float)likeliest : logits[0];
    }
    if (data->features->spec->loss == SL_LOSS_LOGISTIC) sl_link(SL_LOSS_LOGISTIC, 1, rows->rows, rows->labels);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Life
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status alloc_floats(const sl_distil *distil, size_t rows, size_t columns, float **out, size_t *count) {
    size_t floats, bytes;
    void *block;
    if (!sl_mul(rows, columns, &floats) || !sl_mul(floats, sizeof **out, &bytes))
        return sl_fail(SL_ENOMEM, "the teacher's scores of %zu rows do not fit", rows);
    SL_TRY(sl_mem_alloc(&distil->allocator, bytes, &block));
    *out = block;
    *count = floats;
    return SL_OK;
}

static sl_status set_up_distil(sl_distil *distil, const sl_train_params *params, const sl_rows *train,
                               const sl_rows *valid, sl_dataset *data, size_t minibatch_rows) {
    sl_loss loss = data->features->spec->loss;
    size_t rows = data->rows.rows;
    SL_TRY(alloc_floats(distil, rows, distil->outputs, &distil->targets, &distil->target_count));
    SL_TRY(alloc_floats(distil, minibatch_rows, 3 * distil->outputs, &distil->room, &distil->room_count));
    SL_TRY(ask_teacher(distil, params, train, valid, rows));
    if (!data->rows.labels) SL_TRY(label_rows(distil, data));
    if (loss == SL_LOSS_SQUARED) return SL_OK;
    float cooled = (float)(1 / distil->temperature);
    for (size_t i = 0; i < distil->target_count; i++)
        distil->targets[i] *= cooled;
    sl_link(loss, distil->outputs, rows, distil->targets);
    return SL_OK;
}

sl_status sl_distil_create(const sl_train_params *params, const sl_rows *train, const sl_rows *valid, sl_dataset *data,
                           size_t minibatch_rows, sl_distil **out) {
    const sl_features *features = data->features;
    void *block;
    *out = NULL;
    SL_TRY(check_teacher(params->teacher->features, features));
    SL_TRY(sl_mem_alloc(&data->rows.allocator, sizeof(sl_distil), &block));
    sl_distil *distil = block;
    distil->allocator = data->rows.allocator;
    distil->loops = sl_loops_get();
    distil->share = params->soft;
    distil->temperature = features->spec->loss == SL_LOSS_SQUARED ? 1 : params->temperature;
    distil->outputs = features->outputs;
    *out = distil;
    return set_up_distil(distil, params, train, valid, data, minibatch_rows);
}

void sl_distil_free(sl_distil *distil) {
    if (!distil) return;
    sl_allocator allocator = distil->allocator;
    SL_FREE_ARRAY(&allocator, distil->targets, distil->target_count);
    SL_FREE_ARRAY(&allocator, distil->room, distil->room_count);
    SL_FREE(&allocator, distil);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The loss
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns the cross entropy of softmax with the targets. `logits` become probabilities. `gradient` gets the derivative
 * by the logits times weight * scale. */
static double multiclass_sum(const sl_loss_rows *rows, float *logits, const float *targets, float scale,
                             float *gradient) {
    size_t outputs = rows->outputs;
    double total = 0;
    for (size_t r = 0; r < rows->rows; r++) {
        float *row = logits + r * outputs, by = rows->weights[r] * scale;
        const float *target = targets + r * outputs;
        double agreement = 0;
        for (size_t o = 0; o < outputs; o++)
            agreement += (double)target[o] * (double)row[o];
        total += (double)rows->weights[r] * (sl_softmax(row, outputs) - agreement);
        for (size_t o = 0; o < outputs; o++)
            gradient[r * outputs + o] = by * (row[o] - target[o]);
    }
    return total;
}

double sl_distil_sum(sl_distil *distil, sl_loss loss, const sl_loss_rows *rows, const uint32_t *numbers, float scale,
                     float *gradient) {
    size_t outputs = distil->outputs, count = rows->rows * outputs;
    double share = distil->share, temperature = distil->temperature, total = 0;
    float *logits = distil->room, *targets = logits + count, *soft = targets + count;
    if (share < 1)
        total = (1 - share) * sl_loss_sum(loss, rows, (float)(1 - share) * scale, gradient);
    else
        memset(gradient, 0, count * sizeof *gradient);
    for (size_t i = 0; i < count; i++)
        logits[i] = rows->logits[i] * (float)(1 / temperature);
    for (size_t r = 0; r < rows->rows; r++)
        memcpy(targets + r * outputs, distil->targets + numbers[r] * outputs, outputs * sizeof *targets);
    /* The factor temperature^2 times 1 / temperature, the derivative of logit / temperature. */
    float by = (float)(share * temperature) * scale;
    const sl_loss_rows softened = {
        .rows = rows->rows, .outputs = outputs, .logits = logits, .labels = targets, .weights = rows->weights};
    double sum = loss == SL_LOSS_MULTICLASS ? multiclass_sum(rows, logits, targets, by, soft)
                                            : sl_loss_sum(loss, &softened, by, soft);
    distil->loops->add(gradient, soft, count);
    return total + share * temperature * temperature * sum;
}
