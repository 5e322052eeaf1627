#include "cli/common/json_out.h"
#include "cli/common/numa.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/size_text.h"
#include "cli/index/description.h"
#include "cli/index/plan.h"
#include "cli/index/sampled_check.h"
#include "cli/index/storage.h"
#include "cli/index/tuned_settings.h"
#include "cli/inspect/commands.h"
#include "cli/inspect/index_metrics.h"
#include "cli/inspect/index_parts.h"
#include "cli/ranker/ranking_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct info_options {
    int json, prometheus, spec, plan;
    int place; /* -1: not given */
    int tier;  /* none by default: the facts need no copies */
    size_t sample;
    numa_choice numa;
    plan_options planned;
} info_options;

/* Reads the nodes of an index, if the user asks for them. *known: whether there is anything to print. With --numa, a
 * system that does not know them is a failure. */
static int read_numa(const sl_index *index, const char *path, const info_options *options, sl_index_numa *numa,
                     int *known) {
    *numa = (sl_index_numa){.struct_size = sizeof *numa};
    *known = options->numa.policy || (options->place >= 0 && sl_index_get_numa(index, numa) == SL_OK);
    return options->numa.policy ? numa_of_index(index, path, numa) : EXIT_DONE;
}

static void json_holders(json *json, const index_facts *facts) {
    json_open_array(json, "holders");
    for (size_t i = 0; i < facts->holder_count; i++) {
        json_open_object(json, NULL);
        json_count(json, "commit", facts->holders[i].epoch);
        json_count(json, "pid", (uint64_t)facts->holders[i].pid);
        json_count(json, "tid", (uint64_t)facts->holders[i].tid);
        json_close_object(json);
    }
    json_close_array(json);
}

static void print_holders(const index_facts *facts) {
    if (!facts->holder_count) return;
    const sl_epoch_holder *oldest = &facts->holders[oldest_holder(facts)];
    printf("searches of other processes: %zu; the oldest goes by commit %llu, in process %d, thread %d\n",
           facts->holder_count, (unsigned long long)oldest->epoch, oldest->pid, oldest->tid);
}

/* Lists the searches of other processes. More may begin between two lists. */
static int read_holders(const sl_index *index, const char *path, index_facts *facts) {
    size_t room, count = 0;
    do {
        room = 2 * count + 8;
        free(facts->holders);
        facts->holders = malloc(room * sizeof *facts->holders);
        if (!facts->holders) return report_failure("out of memory");
        sl_status status = sl_index_holders(index, facts->holders, room, &count);
        if (status != SL_OK) return report_status(path, status);
    } while (count > room);
    facts->holder_count = count;
    return EXIT_DONE;
}

static void json_index_info(const char *path, const sl_index *index, const index_facts *facts,
                            const info_options *options) {
    const sl_index_stats *stats = &facts->stats;
    index_part parts[INDEX_PARTS];
    list_index_parts(stats, parts);
    json json;
    json_begin(&json, stdout);
    json_text(&json, "index", path);
    json_index(&json, stats);
    json_count(&json, "reusable", stats->reusable);
    json_count(&json, "in_repair", stats->in_repair);
    json_count(&json, "max_level", stats->max_level);
    for (size_t i = 0; i < INDEX_PARTS; i++)
        json_count(&json, parts[i].key, parts[i].bytes);
    json_flag(&json, "tags", stats->tags);
    json_flag(&json, "keys", stats->keys);
    json_flag(&json, "multi", stats->multi);
    json_count(&json, "partitions", stats->partitions);
    json_count(&json, "groups", stats->groups);
    json_real(&json, "quant_error_mean", stats->quant_error_mean);
    json_real(&json, "quant_error_max", stats->quant_error_max);
    if (options->sample) json_sampled(&json, options->sample, &facts->report);
    json_storage(&json, &facts->storage);
    json_holders(&json, facts);
    if (facts->has_numa) json_numa(&json, &facts->numa);
    json_tuned(&json, index, 0, stats->tuned);
    json_end(&json);
}

static void print_index_info(const char *path, const sl_index *index, const index_facts *facts,
                             const info_options *options) {
    const sl_index_stats *stats = &facts->stats;
    index_part parts[INDEX_PARTS];
    list_index_parts(stats, parts);
    printf("%s: ", path);
    print_index(stats);
    for (size_t i = 0; i < INDEX_PARTS; i++)
        if (parts[i].bytes)
            printf("  %-12s %12s  %8.1f bytes a vector\n", parts[i].title, text_of_size(parts[i].bytes).text,
                   stats->n ? (double)parts[i].bytes / (double)stats->n : 0);
    if (stats->reusable) printf("%zu places of deleted vectors are free for the next adds\n", stats->reusable);
    if (stats->in_repair) printf("%zu of the deleted vectors are in repair\n", stats->in_repair);
    if (stats->multi) puts("an id may have several vectors");
    if (stats->partitions) {
        printf("%zu partitions", stats->partitions);
        if (stats->groups) printf(" in %zu groups", stats->groups);
        putchar('\n');
    }
    printf("seed %llu, highest layer %zu, quantisation error %.3g mean, %.3g largest\n",
           (unsigned long long)stats->seed, stats->max_level, stats->quant_error_mean, stats->quant_error_max);
    if (options->sample) print_sampled(options->sample, &facts->report);
    (void)warn_of_resolution(path, stats, facts->report.unresolved, facts->report.resolution_sampled);
    print_storage(&facts->storage);
    print_holders(facts);
    if (facts->has_numa) print_numa(&facts->numa);
    if (stats->tuned) {
        printf("\nsettings tuned for a recall\n");
        print_tuned(index, 0, stats->tuned);
    }
}

/* Searches for a sample of the vectors, as `check` does, if the user asks for that. */
static sl_status check_sample(sl_index *index, const info_options *options, index_facts *facts) {
    sl_check_params params;
    if (!options->sample) return SL_OK;
    sl_check_params_init(&params);
    params.sample = options->sample;
    return check_index_with_progress(index, &params, 0, &facts->report);
}

static int read_facts(const char *path, sl_index *index, const info_options *options, index_facts *facts) {
    sl_status status = sl_index_get_stats(index, &facts->stats);
    if (status != SL_OK) return report_status(path, status);
    int result = read_numa(index, path, options, &facts->numa, &facts->has_numa);
    if (result != EXIT_DONE) return result;
    status = check_sample(index, options, facts);
    if (status == SL_OK) status = sl_index_get_storage(index, &facts->storage);
    return status == SL_OK ? read_holders(index, path, facts) : report_status(path, status);
}

static int print_index_facts(const char *path, sl_index *index, const info_options *options) {
    index_facts facts = {.path = path,
                         .sample = options->sample,
                         .stats = {.struct_size = sizeof facts.stats},
                         .storage = {.struct_size = sizeof facts.storage}};
    int result = read_facts(path, index, options, &facts);
    if (result == EXIT_DONE && options->prometheus)
        result = print_index_metrics(&facts);
    else if (result == EXIT_DONE) {
        if (options->json)
            json_index_info(path, index, &facts, options);
        else
            print_index_info(path, index, &facts, options);
        result = report_stdout();
    }
    free(facts.holders);
    return result;
}

static const char *const loss_names[] = {"logistic", "multiclass", "squared"};
static const char *const form_names[] = {"dense", "id", "bag"};
static const char *const side_names[] = {"user", "item", "pair"};

static const char *part_names(const sl_feature_info *feature) {
    if (feature->wide_at != SIZE_MAX) return feature->deep_at != SIZE_MAX ? "wide, deep" : "wide";
    return feature->deep_at != SIZE_MAX ? "deep" : "none";
}

static void json_feature(json *json, const sl_feature_info *feature) {
    json_open_object(json, NULL);
    json_text(json, "name", feature->name);
    json_text(json, "form", form_names[feature->form]);
    json_text(json, "side", side_names[feature->side]);
    json_count(json, "size", feature->form == SL_FORM_DENSE ? feature->width : feature->size);
    json_count(json, "dim", feature->deep_at != SIZE_MAX ? feature->deep_width : 0);
    json_flag(json, "wide", feature->wide_at != SIZE_MAX);
    json_flag(json, "deep", feature->deep_at != SIZE_MAX);
    json_close_object(json);
}

static const char *const table_types[] = {"f32", "i8", "i4"};

static void json_embeddings(json *json, const sl_ranker *ranker, size_t count) {
    sl_embedding_info table = {.struct_size = sizeof table};
    json_open_array(json, "embeddings");
    for (size_t i = 0; i < count && sl_ranker_get_embedding(ranker, i, &table) == SL_OK; i++) {
        json_open_object(json, NULL);
        json_text(json, "name", table.tensor);
        json_text(json, "type", table_types[table.type]);
        json_count(json, "size", table.size);
        json_count(json, "dim", table.dim);
        json_count(json, "bytes", table.bytes);
        json_close_object(json);
    }
    json_close_array(json);
}

static void print_embeddings(const sl_ranker *ranker, size_t count) {
    sl_embedding_info table = {.struct_size = sizeof table};
    if (count) printf("\n  %-34s %-5s %10s %5s %12s\n", "embedding table", "type", "size", "dim", "bytes");
    for (size_t i = 0; i < count && sl_ranker_get_embedding(ranker, i, &table) == SL_OK; i++)
        printf("  %-34s %-5s %10zu %5zu %12zu\n", table.tensor, table_types[table.type], table.size, table.dim,
               table.bytes);
}

static void json_model(const char *path, const sl_ranker *ranker, const sl_ranker_info *info) {
    sl_feature_info feature = {.struct_size = sizeof feature};
    sl_layer_info layer = {.struct_size = sizeof layer};
    json json;
    json_begin(&json, stdout);
    json_text(&json, "model", path);
    json_text(&json, "loss", loss_names[info->loss]);
    json_count(&json, "outputs", info->outputs);
    json_open_array(&json, "classes");
    for (size_t i = 0; sl_ranker_class(ranker, i); i++)
        json_text(&json, NULL, sl_ranker_class(ranker, i));
    json_close_array(&json);
    json_count(&json, "parameters", info->parameters);
    json_count(&json, "bytes", info->bytes);
    json_count(&json, "multiply_adds", info->multiply_adds);
    json_count(&json, "dense_zeros", info->dense_zeros);
    json_count(&json, "wide_size", info->wide_size);
    json_count(&json, "deep_inputs", info->deep_inputs);
    json_count(&json, "layers", info->layers);
    json_open_array(&json, "dense_layers");
    for (size_t i = 0; i < info->layers && sl_ranker_get_layer(ranker, i, &layer) == SL_OK; i++)
        json_layer(&json, &layer);
    json_close_array(&json);
    json_flag(&json, "uses_onednn", info->uses_onednn);
    json_open_array(&json, "features");
    for (size_t i = 0; i < info->features && sl_ranker_get_feature(ranker, i, &feature) == SL_OK; i++)
        json_feature(&json, &feature);
    json_close_array(&json);
    json_embeddings(&json, ranker, info->embeddings);
    json_text(&json, "spec", info->spec);
    json_end(&json);
}

static void print_model(const char *path, const sl_ranker *ranker, const sl_ranker_info *info) {
    sl_feature_info feature = {.struct_size = sizeof feature};
    sl_layer_info layer = {.struct_size = sizeof layer};
    printf("%s: a model, %s loss, %zu outputs; %zu parameters, %s in memory\n", path, loss_names[info->loss],
           info->outputs, info->parameters, text_of_size(info->bytes).text);
    printf("wide part of %zu weights, deep part of %zu inputs and %zu layers\n", info->wide_size, info->deep_inputs,
           info->layers);
    for (size_t i = 0; i < info->layers && sl_ranker_get_layer(ranker, i, &layer) == SL_OK; i++)
        print_layer(&layer);
    printf("%zu multiply-adds a row in the layers, %zu of their weights are 0\n\n", info->multiply_adds,
           info->dense_zeros);
    printf("  %-24s %-6s %-5s %10s %5s  %s\n", "feature", "form", "side", "size", "dim", "part");
    for (size_t i = 0; i < info->features && sl_ranker_get_feature(ranker, i, &feature) == SL_OK; i++)
        printf("  %-24s %-6s %-5s %10zu %5zu  %s\n", feature.name, form_names[feature.form], side_names[feature.side],
               feature.form == SL_FORM_DENSE ? feature.width : feature.size,
               feature.deep_at != SIZE_MAX ? feature.deep_width : 0, part_names(&feature));
    print_embeddings(ranker, info->embeddings);
}

static int print_model_info(const char *path, const info_options *options, const sl_ranker *ranker) {
    sl_ranker_info info = {.struct_size = sizeof info};
    sl_status status = sl_ranker_get_info(ranker, &info);
    if (status != SL_OK) return report_status(path, status);
    if (options->json)
        json_model(path, ranker, &info);
    else if (options->spec)
        printf("%s\n", info.spec);
    else
        print_model(path, ranker, &info);
    return report_stdout();
}

static int print_items_info(const char *path, const info_options *options, const sl_items *items) {
    struct stat file = {0};
    if (stat(path, &file) != 0) file.st_size = 0;
    size_t rows = sl_items_size(items), column = 0;
    const char *name;
    if (options->json) {
        json json;
        json_begin(&json, stdout);
        json_text(&json, "items", path);
        json_count(&json, "rows", rows);
        json_count(&json, "bytes", (uint64_t)file.st_size);
        json_open_array(&json, "columns");
        while ((name = sl_items_column_name(items, column++)) != NULL)
            json_text(&json, NULL, name);
        json_close_array(&json);
        json_end(&json);
        return report_stdout();
    }
    printf("%s: an item table, %zu items, %s\ncolumns:", path, rows, text_of_size((uint64_t)file.st_size).text);
    while ((name = sl_items_column_name(items, column++)) != NULL)
        printf("%s %s", column == 1 ? "" : ",", name);
    putchar('\n');
    return report_stdout();
}

static int info_of_index(const char *path, const info_options *options) {
    sl_index *index;
    sl_open_params params;
    sl_open_params_init(&params);
    if (options->place >= 0) params.place = (sl_place)options->place;
    params.numa = options->numa.policy;
    params.numa_node = options->numa.node;
    params.tier = (sl_tier)options->tier;
    params.log = report_log(&params.log_ctx);
    sl_status status = sl_index_open(path, &params, &index);
    int result = status == SL_OK ? print_index_facts(path, index, options) : report_status(path, status);
    sl_index_free(index);
    return result;
}

static int info_of_model(const char *path, const info_options *options) {
    sl_ranker *ranker;
    sl_status status = sl_ranker_open(path, NULL, &ranker);
    int result = status == SL_OK ? print_model_info(path, options, ranker) : report_status(path, status);
    sl_ranker_free(ranker);
    return result;
}

static int info_of_items(const char *path, const info_options *options) {
    sl_items *items;
    sl_status status = sl_items_open(path, NULL, &items);
    int result = status == SL_OK ? print_items_info(path, options, items) : report_status(path, status);
    sl_items_free(items);
    return result;
}

static int print_info(const char *path, const info_options *options) {
    sl_file_kind kind;
    sl_status status = sl_file_kind_of(path, &kind);
    if (status != SL_OK) return report_status(path, status);
    if (options->prometheus && kind != SL_FILE_INDEX)
        return report_usage("--prometheus is of an index; '%s' is none", path);
    if (kind == SL_FILE_RANKER) return info_of_model(path, options);
    return kind == SL_FILE_ITEMS ? info_of_items(path, options) : info_of_index(path, options);
}

static int run_info(const command *self, int argc, char **argv) {
    sl_index_params defaults;
    sl_index_params_init(&defaults);
    info_options options = {.place = -1,
                            .tier = SL_TIER_NONE,
                            .planned = {.m = defaults.m,
                                        .metric = (int)defaults.metric,
                                        .dtype = (int)defaults.dtype,
                                        .codes = -1,
                                        .refine = (int)defaults.refine}};
    const char *path = NULL;
    OPTIONS_PARSE(self, argc, argv, &options, &path);
    if (!path && !options.plan) return report_usage("FILE is missing");
    if (options.prometheus && (options.json || options.spec || options.plan))
        return report_usage("--prometheus is a form of its own; leave --json, --spec and --plan out");
    if (path && options.plan) return report_usage("--plan is of an index that is not there yet; leave '%s' out", path);
    if (!options.plan) return print_info(path, &options);
    if (!options.planned.dim) return report_usage("--plan misses --dim N");
    if (!options.planned.n) return report_usage("--plan misses --n N");
    return print_plan(&options.planned, options.json);
}

static const char *const operands[] = {"[FILE]", NULL};

static const option info_table[] = {
    {0, "spec", OPTION_FLAG, NULL, 0, offsetof(info_options, spec),
     "Print the spec that a model was trained from, and nothing else."},
    {0, "place", OPTION_WORD, "dram|map|pmem", 0, offsetof(info_options, place),
     "For an index: open it copied into memory (dram), mapped (map, default) or mapped from persistent memory (pmem). "
     "Of a mapped index, only the pages that were read lie in memory. Also print on which memory nodes the pages of "
     "layer 0 lie."},
    OPTION_PLACE_NODES(info_options),
    {0, "tier", OPTION_WORD, "auto|none|dram", 0, offsetof(info_options, tier),
     "For a mapped index: open it with this tier in memory, and print how far the tier is filled. The default here is "
     "none, since nothing is searched."},
    {0, "sample", OPTION_COUNT, "N", 0, offsetof(info_options, sample),
     "For an index: also search for N of its vectors, and print their recall and how many are lost, as 'shortlist "
     "check' does. The lost share shows how badly regions are linked. This checks the whole index (default 0: no "
     "sample)."},
    {0, "prometheus", OPTION_FLAG, NULL, 0, offsetof(info_options, prometheus),
     "For an index: print its counts as metrics in the text format of Prometheus, for the textfile collector of "
     "node_exporter. Each has the label path. With --sample also the recall of the sample."},
    {0, "plan", OPTION_FLAG, NULL, 0, offsetof(info_options, plan),
     "Print what an index of --n vectors of --dim elements would take, without building it."},
    {0, "dim", OPTION_COUNT, "N", 0, offsetof(info_options, planned.dim), "With --plan: elements of a vector."},
    {0, "n", OPTION_COUNT, "N", 0, offsetof(info_options, planned.n), "With --plan: vectors; 4000000000, or 4e9."},
    {0, "metric", OPTION_WORD, "ip|cosine|l2", 0, offsetof(info_options, planned.metric),
     "With --plan (default cosine)."},
    {0, "input", OPTION_WORD, "f32|f16|bf16|i8|u8|i16", 0, offsetof(info_options, planned.dtype),
     "With --plan: type of the vectors (default f32)."},
    {0, "codes", OPTION_WORD, "i8|i16|f32|i4", 0, offsetof(info_options, planned.codes), "With --plan, as of build."},
    {0, "refine", OPTION_WORD, "none|f32|bf16|i16", 0, offsetof(info_options, planned.refine),
     "With --plan, as of build."},
    {0, "m", OPTION_COUNT, "N", 0, offsetof(info_options, planned.m), "With --plan, as of build (default 16)."},
    {0, "tags", OPTION_FLAG, NULL, 0, offsetof(info_options, planned.tags), "With --plan: each vector has a tag word."},
    {0, "keys", OPTION_FLAG, NULL, 0, offsetof(info_options, planned.keys), "With --plan: each vector has a key."},
    {'o', "output", OPTION_TEXT, "INDEX", 0, offsetof(info_options, planned.output),
     "With --plan: path of the future file; the command reads the free space of its folder (default: the current "
     "one)."},
    OPTION_JSON(info_options),
    OPTION_LAST};

const command command_info = {
    .name = "info",
    .summary = "show what a file holds",
    .synopsis = "shortlist info FILE [--spec] [--place dram|map|pmem] [--numa interleave|bind:N|local] [--tier "
                "auto|none|dram] [--sample N] [--json | --prometheus]; shortlist info --plan --dim N --n N [--codes "
                "i8|i16|f32|i4] [--refine "
                "none|f32|bf16|i16] [--m N] [--metric "
                "ip|cosine|l2] [--input f32|f16|bf16|i8|u8|i16] [--tags] [--keys] [-o INDEX] [--json]",
    .description =
        "An index: prints how many vectors it holds, how many are deleted, how they are kept, the size of each part, "
        "and the settings that 'shortlist tune' stored. Only the file's header is read, whatever the file's size; "
        "'shortlist check' and --sample read all of it. Also prints the storage of layer 0: the medium, whether loads "
        "go to persistent memory itself (DAX), and the pages. For a file with room, the log, the recoveries and "
        "the searches that other processes run are printed too. With --place or --numa the index is opened so, and the "
        "memory nodes of its pages are printed. A "
        "model: prints its loss, its weights, its features as they were fitted, the type and the bytes of each "
        "embedding table, and its spec; all of the file is verified. An item table: prints its rows and columns.\nWith "
        "--plan, for an index that does not exist yet: prints the size of each part in a file, and the medium of each "
        "part for each --place. Also prints the page table of a process that maps the file, and whether this machine "
        "has the memory and the folder the space.\n",
    .examples = "shortlist info base.sl\nshortlist info base.sl --json\nshortlist info --plan --dim 100 --n 4e9 "
                "--codes i4\nshortlist info base.sl --sample 200\nshortlist info base.sl --place dram --numa "
                "interleave\nshortlist info model.slr --spec\nshortlist info base.sl --prometheus > "
                "/var/lib/node_exporter/base.prom\n",
    .operands = operands,
    .options = info_table,
    .run = run_info,
};
