#include "cli/commands.h"

typedef struct info_options {
    int json;
} info_options;

static int print_info(const char *path, const sl_index_stats *stats, int as_json) {
    static const char *const names[] = {"codes", "links", "ids", "upper layers", "refine"};
    static const char *const keys[] = {"bytes_codes", "bytes_links", "bytes_ids", "bytes_upper", "bytes_refine"};
    const uint64_t bytes[] = {stats->bytes_codes, stats->bytes_links, stats->bytes_ids, stats->bytes_upper,
                              stats->bytes_refine};
    const size_t parts = sizeof bytes / sizeof *bytes;
    if (as_json) {
        json json;
        json_begin(&json, stdout);
        json_text(&json, "index", path);
        json_index(&json, stats);
        json_count(&json, "max_level", stats->max_level);
        for (size_t i = 0; i < parts; i++)
            json_count(&json, keys[i], bytes[i]);
        json_real(&json, "quant_error_mean", stats->quant_error_mean);
        json_real(&json, "quant_error_max", stats->quant_error_max);
        json_end(&json);
        return report_stdout();
    }
    printf("%s: ", path);
    print_index(stats);
    for (size_t i = 0; i < parts; i++)
        if (bytes[i])
            printf("  %-12s %12s  %8.1f bytes a vector\n", names[i], text_of_size(bytes[i]).text,
                   stats->n ? (double)bytes[i] / (double)stats->n : 0);
    printf("seed %llu, highest layer %zu, quantisation error %.3g mean, %.3g largest\n",
           (unsigned long long)stats->seed, stats->max_level, stats->quant_error_mean, stats->quant_error_max);
    return report_stdout();
}

static int run_info(const command *self, int argc, char **argv) {
    info_options options = {0};
    const char *path;
    OPTIONS_PARSE(self, argc, argv, &options, &path);
    sl_index *index;
    sl_index_stats stats;
    int status = open_index(path, SL_PLACE_MAP, 0, &index, &stats);
    if (status == EXIT_DONE) status = print_info(path, &stats, options.json);
    sl_index_free(index);
    return status;
}

static const char *const operands[] = {"INDEX", NULL};

static const option info_table[] = {OPTION_JSON(info_options), OPTION_LAST};

const command command_info = {
    .name = "info",
    .summary = "tell what an index holds",
    .synopsis = "shortlist info INDEX [--json]",
    .description =
        "Prints how many vectors the index holds, how they are kept and what each part takes. Reads only the "
        "file's header, whatever its size; 'shortlist check' reads all of it.\n",
    .examples = "shortlist info base.sl\nshortlist info base.sl --json\n",
    .operands = operands,
    .options = info_table,
    .run = run_info,
};
