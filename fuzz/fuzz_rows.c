/* Reads any bytes as a spec, a CSV file, or a model's fitted features. The first byte chooses: '{', any other, or 'F'.
 * Accepted input is used. */
#include "fuzz/fuzz.h"
#include "ranker/features/encode.h"

static const char spec_text[] =
    "{\"label\": {\"column\": \"y\", \"loss\": \"multiclass\"}, \"weight\": \"w\", \"features\": ["
    "{\"name\": \"n\", \"type\": \"numeric\", \"log\": true}, {\"name\": \"a\", \"type\": \"categorical\"},"
    "{\"name\": \"q\", \"column\": \"n\", \"type\": \"bucket\", \"quantiles\": 4},"
    "{\"name\": \"g\", \"type\": \"multi\", \"column\": \"a\", \"limit\": 100},"
    "{\"name\": \"x\", \"type\": \"cross\", \"of\": [\"a\", \"g\"], \"hash\": 9},"
    "{\"name\": \"v\", \"type\": \"vector\", \"dim\": 2}]}";

/* Encodes rows without values. */
static void use_features(const sl_features *features) {
    sl_encoder *encoder;
    sl_rows_buffer rows = {.allocator = sl_allocator_of(NULL)};
    demand(sl_encoder_create(features, SL_ALL_SIDES, 0, NULL, NULL, NULL, &encoder) == SL_OK, "an encoder is made");
    demand(sl_encoder_append_missing(encoder, 3, &rows) == SL_OK, "a missing row is encoded");
    sl_encoder_free(encoder);
    sl_rows_buffer_free(&rows);
}

static void read_spec(const char *text) {
    sl_spec *spec;
    sl_status status = sl_spec_read(text, NULL, &spec);
    demand(status == SL_OK ? spec != NULL : status == SL_EINVAL && !spec && *sl_last_error(), "a bad spec is said so");
    sl_spec_free(spec);
}

static void encode(const sl_features *features, const sl_rows *rows) {
    sl_encoder *encoder;
    sl_rows_buffer buffer = {.allocator = sl_allocator_of(NULL)};
    sl_table block;
    demand(rows->rewind(rows->ctx) == SL_OK, "the file is read again");
    demand(sl_encoder_create(features, SL_ALL_SIDES, 1, NULL, NULL, NULL, &encoder) == SL_OK, "an encoder is made");
    while (sl_rows_next(rows, 7, &block) == SL_OK && block.rows)
        if (sl_encoder_append(encoder, &block, 0, block.rows, &buffer) != SL_OK) break;
    for (size_t i = 0; i < features->count; i++)
        for (size_t row = 0; features->features[i].form == SL_FORM_ID && row < buffer.rows; row++)
            demand(buffer.ids[row * features->id_count + features->features[i].at] < features->features[i].size,
                   "ids are below a feature's size");
    sl_encoder_free(encoder);
    sl_rows_buffer_free(&buffer);
}

static void read_csv(const char *path, size_t size) {
    (void)size;
    sl_csv *csv;
    sl_rows rows;
    sl_spec *spec;
    sl_features *features;
    sl_status status = sl_csv_open(path, NULL, &csv);
    demand(status == SL_OK || status == SL_EFORMAT || status == SL_ELIMIT, "a bad file is called one");
    if (csv) {
        demand(sl_csv_rows(csv, &rows) == SL_OK, "an open file has rows");
        demand(sl_spec_read(spec_text, NULL, &spec) == SL_OK, "the spec is one");
        status = sl_features_fit(spec, &rows, &(sl_fit_source){.lookup = NULL}, &features);
        demand(status == SL_OK || *sl_last_error(), "a failing fit says why");
        if (status == SL_OK) encode(features, &rows);
        sl_features_free(features);
    }
    sl_csv_free(csv);
}

static void read_features(const void *bytes, size_t size) {
    sl_spec *spec;
    sl_features *features;
    demand(sl_spec_read(spec_text, NULL, &spec) == SL_OK, "the spec is one");
    sl_status status = sl_features_read(spec, bytes, size, &features);
    demand(status == SL_OK || status == SL_ECORRUPT || status == SL_ELIMIT, "damaged features are called so");
    if (features) use_features(features);
    sl_features_free(features);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    if (*data == 'F') {
        read_features(data + 1, size - 1);
    } else if (*data == '{') {
        char *text = malloc(size + 1);
        if (!text) abort();
        memcpy(text, data, size);
        text[size] = 0;
        read_spec(text);
        free(text);
    } else {
        with_file(data + 1, size - 1, read_csv);
    }
    return 0;
}
