#include "cli/index/index_build.h"

#include "cli/common/hash.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"
#include "cli/index/sampled_check.h"

#include <stdlib.h>

static int report_build(void *ctx, sl_status status) {
    const build_state *state = ctx;
    return report_bounded(state->base_path, state->options->output, state->options->max_memory, status);
}

/* The index's parameters, without a limit of memory. */
sl_index_params build_params(const build_state *state) {
    const build_options *options = state->options;
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = state->addition.base->dim;
    params.metric = (sl_metric)options->metric;
    params.dtype = element_dtype(state->addition.base->type);
    params.codes = index_codes(options->codes, params.dtype);
    params.refine = (sl_refine)options->refine;
    params.clip = options->clip.clip;
    params.clip_share = options->clip.share;
    params.m = options->m;
    params.ef_construction = options->ef_build;
    params.seed = options->seed;
    params.tags = options->words.tags != NULL;
    params.keys = options->words.keys != NULL;
    params.multi = options->multi;
    params.numa = options->numa.policy;
    params.numa_node = options->numa.node;
    params.log = report_log(&params.log_ctx);
    return params;
}

sl_status build_try_create(build_state *state) {
    sl_index_params params = build_params(state);
    params.max_memory = state->memory;
    params.work_path = state->work;
    return sl_index_create(&params, &state->addition.index);
}

int build_create(build_state *state) {
    sl_status status = build_try_create(state);
    return status == SL_OK ? EXIT_DONE : report_build(state, status);
}

int build_reserve(build_state *state) {
    sl_status status = sl_index_reserve(state->addition.index, state->addition.base->n);
    return status == SL_OK ? EXIT_DONE : report_build(state, status);
}

/* Checks the parameters on an index of one element, so that faults of the options are reported before faults of the
 * base. */
static int check_settings(const build_options *options) {
    sl_index_params params;
    sl_index *index;
    sl_index_params_init(&params);
    params.dim = 1;
    params.m = options->m;
    params.ef_construction = options->ef_build;
    params.numa = options->numa.policy;
    params.numa_node = options->numa.node;
    sl_status status = sl_index_create(&params, &index);
    if (status != SL_OK) return report_status(NULL, status);
    sl_index_free(index);
    return EXIT_DONE;
}

/* The command's own ids, words and rows count towards --max-memory. */
static int prepare_rows(build_state *state) {
    const build_options *options = state->options;
    const size_t limit = options->max_memory;
    int status = addition_prepare(&state->addition, options->output, limit / 8);
    if (!limit || status != EXIT_DONE) return status;
    const size_t own = addition_bytes(&state->addition);
    state->memory = limit > own ? limit - own : 1;
    return work_path(limit, options->output, &state->work);
}

/* Reads the index's facts. An index in records has arrays in memory, so its bytes come from its file. */
static int get_file_stats(const build_state *state, sl_index_stats *stats) {
    const char *path = state->options->output;
    *stats = (sl_index_stats){.struct_size = sizeof *stats};
    if (state->options->layout == SL_LAYOUT_RECORDS && !state->options->room) {
        sl_index *saved;
        int status = open_index(path, (opening){.place = SL_PLACE_MAP, .tier = SL_TIER_NONE}, &saved, stats);
        if (status == EXIT_DONE) sl_index_free(saved);
        return status;
    }
    sl_status status = sl_index_get_stats(state->addition.index, stats);
    return status == SL_OK ? EXIT_DONE : report_status(path, status);
}

int build_print(const build_state *state, build_more_fn *more, void *ctx) {
    sl_index_stats stats;
    sl_resolution resolution;
    file_hash hash;
    int status = get_file_stats(state, &stats);
    if (status == EXIT_DONE)
        status =
            measure_resolution(state->options->output, state->addition.index, state->options->threads, &resolution);
    if (status == EXIT_DONE) status = hash_file(state->options->output, state->options->room, &hash);
    if (status != EXIT_DONE) return status;
    size_t threads = thread_count(state->options->threads);
    double rate = state->addition.add_s > 0 ? (double)stats.n / state->addition.add_s : 0;
    if (state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_index(&json, &stats);
        json_real(&json, "build_s", state->addition.add_s);
        json_real(&json, "read_s", state->addition.read_s);
        json_real(&json, "link_s", state->addition.link_s);
        json_real(&json, "number_s", state->addition.number_s);
        json_real(&json, "save_s", state->save_s);
        json_real(&json, "rows_per_s", rate);
        json_count(&json, "threads", threads);
        json_real(&json, "quant_error_mean", stats.quant_error_mean);
        json_real(&json, "quant_error_max", stats.quant_error_max);
        json_resolution(&json, resolution.unresolved, resolution.sampled);
        json_text(&json, "output", state->options->output);
        json_text(&json, "hash", hash_digits(&hash));
        if (more) more(&json, ctx);
        json_end(&json);
    } else {
        printf("%s: ", state->options->output);
        print_index(&stats);
        printf("built in %.1f s, %.0f vectors/s on %zu threads; quantisation error %.3g mean, %.3g largest\n",
               state->addition.add_s, rate, threads, stats.quant_error_mean, stats.quant_error_max);
        if (more) more(NULL, ctx);
        print_hash(&hash);
    }
    (void)warn_of_resolution(state->options->output, &stats, resolution.unresolved, resolution.sampled);
    return report_stdout();
}

/* This check comes before the work. */
static int check_room(const build_state *state) {
    size_t room = state->options->room, n = state->addition.base->n;
    if (!room || room >= n) return EXIT_DONE;
    return report_failure("--room %zu: %s has %zu vectors; give as many or more", room, state->base_path, n);
}

int build_check(const build_state *state) {
    const build_options *options = state->options;
    if (options->place != SL_PLACE_DRAM)
        return report_failure("--place %s: this version builds in DRAM only; build with --place dram, and open the "
                              "index with --place map",
                              sl_place_name((sl_place)options->place));
    int status = check_settings(options);
    if (status != EXIT_DONE) return status;
    return addition_check_output(options->output, state->base_path, options->ids, &options->words);
}

int build_open(build_state *state) {
    const build_options *options = state->options;
    addition *addition = &state->addition;
    int status = vectors_open(state->base_path, VECTORS_BASE, &addition->base);
    if (status == EXIT_DONE) status = vectors_check_metric(addition->base, (sl_metric)options->metric);
    if (status != EXIT_DONE) return status;
    addition->type = element_of_dtype(element_dtype(addition->base->type));
    size_t n = addition->base->n;
    if (options->ids) status = vectors_read_ids(options->ids, state->base_path, &n, &state->ids);
    addition->ids = state->ids;
    if (status == EXIT_DONE) status = addition_read_words(addition, state->base_path, &options->words);
    if (status == EXIT_DONE) status = check_room(state);
    return status == EXIT_DONE ? prepare_rows(state) : status;
}

int build_add(build_state *state) {
    return addition_run(&state->addition, "building");
}

int build_save(build_state *state) {
    const build_options *options = state->options;
    return save_index((saving){state->addition.index, options->room, (sl_layout)options->layout}, options->output,
                      options->progress, &state->save_s);
}

build_options build_defaults(void) {
    sl_index_params defaults;
    sl_index_params_init(&defaults);
    return (build_options){.codes = -1,
                           .refine = (int)defaults.refine,
                           .clip = {.clip = defaults.clip, .share = defaults.clip_share},
                           .m = defaults.m,
                           .ef_build = defaults.ef_construction,
                           .seed = (size_t)defaults.seed};
}

void build_begin(build_state *state, const build_options *options, const char *base_path) {
    *state = (build_state){.options = options, .base_path = base_path};
    state->addition.threads = options->threads;
    state->addition.builder = (sl_builder)options->builder;
    state->addition.progress = options->progress;
    state->addition.refused = report_build;
    state->addition.refused_ctx = state;
}

void build_end(build_state *state) {
    sl_index_free(state->addition.index);
    addition_free(&state->addition);
    free(state->work);
    free(state->ids);
}
