#include "cli/index/plan.h"

#include "cli/common/json_out.h"
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/size_text.h"
#include "cli/common/system.h"
#include "cli/index/description.h"

#include <stdlib.h>
#include <string.h>

/* Bytes per medium of one way to open the index. */
typedef struct placing {
    sl_place place;
    /* Parts of a mapped file that DRAM gets a copy of: with --numa the upper layers, with --tier the 4-bit rows too. */
    enum { COPIES_NONE, COPIES_NUMA, COPIES_TIER } copies;
    uint64_t dram, page_cache, pmem;
} placing;

enum { PLACINGS = 7 };

static void list_placings(const sl_plan *plan, placing *out) {
    const uint64_t all = plan->bytes_total, upper = plan->bytes_upper, tier = plan->bytes_tier;
    const placing placings[PLACINGS] = {
        {SL_PLACE_DRAM, COPIES_NONE, all, 0, 0},    {SL_PLACE_MAP, COPIES_NONE, 0, all, 0},
        {SL_PLACE_MAP, COPIES_NUMA, upper, all, 0}, {SL_PLACE_MAP, COPIES_TIER, tier, all, 0},
        {SL_PLACE_PMEM, COPIES_NONE, 0, 0, all},    {SL_PLACE_PMEM, COPIES_NUMA, upper, 0, all},
        {SL_PLACE_PMEM, COPIES_TIER, tier, 0, all},
    };
    memcpy(out, placings, sizeof placings);
}

/* Bytes of the page tables of a process that maps all in pages of this size. A table of 4 KB has 512 entries of 8
 * bytes. Levels of tables pile up until one table is enough. */
static uint64_t page_table(uint64_t bytes, uint64_t page) {
    uint64_t tables = 0, entries = bytes / page + (bytes % page != 0);
    while (entries > 1) {
        entries = (entries + 511) / 512;
        tables += entries;
    }
    return 4096 * tables;
}

typedef struct part {
    const char *key, *name;
    uint64_t bytes;
    const char *note;
} part;

enum { PLAN_PARTS = 11 };

static void list_parts(const sl_plan *plan, part *out) {
    const part parts[PLAN_PARTS] = {
        {"bytes_codes", "codes", plan->bytes_codes, ""},
        {"bytes_rest", "rest", plan->bytes_rest, ""},
        {"bytes_coarse", "coarse", plan->bytes_coarse, ""},
        {"bytes_links", "links", plan->bytes_links, ""},
        {"bytes_ids", "ids", plan->bytes_ids, ""},
        {"bytes_refine", "refine", plan->bytes_refine, ""},
        {"bytes_tags", "tags", plan->bytes_tags, ""},
        {"bytes_keys", "keys", plan->bytes_keys, ""},
        {"bytes_upper", "upper layers", plan->bytes_upper, ", expected"},
        {"bytes_projection", "projection", plan->bytes_projection, ""},
        {"bytes_partitions", "partitions", plan->bytes_partitions, ", at most"},
    };
    memcpy(out, parts, sizeof parts);
}

/* Free memory and disk of this machine. */
typedef struct machine {
    uint64_t memory, space; /* 0: unknown */
    const char *folder;
} machine;

static const char *fit_verdict(uint64_t needed, uint64_t there) {
    return !there ? "not known" : needed <= there ? "fits" : "does not fit";
}

static void json_plan(const sl_index_params *params, const sl_plan *plan, const machine *here) {
    part parts[PLAN_PARTS];
    placing placings[PLACINGS];
    json json;
    list_parts(plan, parts);
    list_placings(plan, placings);
    json_begin(&json, stdout);
    json_count(&json, "n", plan->n);
    json_count(&json, "dim", params->dim);
    json_text(&json, "metric", sl_metric_name(params->metric));
    json_text(&json, "input", sl_dtype_name(params->dtype));
    json_text(&json, "codes", sl_codes_name(params->codes));
    json_text(&json, "refine", sl_refine_name(params->refine));
    json_count(&json, "m", params->m);
    for (size_t i = 0; i < PLAN_PARTS; i++)
        json_count(&json, parts[i].key, parts[i].bytes);
    json_count(&json, "bytes_layer0", plan->bytes_layer0);
    json_count(&json, "bytes_upper_deviation", plan->bytes_upper_deviation);
    json_count(&json, "bytes_total", plan->bytes_total);
    json_count(&json, "bytes_with_room", plan->bytes_with_room);
    json_count(&json, "record_bytes", plan->record_bytes);
    json_count(&json, "bytes_in_records", plan->bytes_in_records);
    json_count(&json, "bytes_tier", plan->bytes_tier);
    json_real(&json, "bytes_per_vector", plan->n ? (double)plan->bytes_total / (double)plan->n : 0);
    json_open_array(&json, "places");
    for (size_t i = 0; i < PLACINGS; i++) {
        json_open_object(&json, NULL);
        json_text(&json, "place", sl_place_name(placings[i].place));
        json_text(&json, "upper",
                  placings[i].place == SL_PLACE_DRAM || placings[i].copies != COPIES_NONE ? "dram" : "mapped");
        json_text(&json, "tier", placings[i].copies == COPIES_TIER ? "dram" : "none");
        json_count(&json, "dram_bytes", placings[i].dram);
        json_count(&json, "page_cache_bytes", placings[i].page_cache);
        json_count(&json, "pmem_bytes", placings[i].pmem);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_count(&json, "page_table_bytes_4k", page_table(plan->bytes_total, 4096));
    json_count(&json, "page_table_bytes_2m", page_table(plan->bytes_total, (uint64_t)2 << 20));
    json_count(&json, "memory_bytes", here->memory);
    json_text(&json, "folder", here->folder);
    json_count(&json, "free_bytes", here->space);
    json_flag(&json, "fits_memory", plan->bytes_total <= here->memory);
    json_flag(&json, "fits_folder", plan->bytes_total <= here->space);
    json_end(&json);
}

static void print_placings(const sl_plan *plan) {
    static const char *const ways[] = {"mapped", "in DRAM (--numa)", "in DRAM (--tier)"};
    placing placings[PLACINGS];
    list_placings(plan, placings);
    printf("\n  %-6s%-18s%14s%14s%14s\n", "place", "upper layers", "DRAM", "page cache", "pmem");
    for (size_t i = 0; i < PLACINGS; i++)
        printf("  %-6s%-18s%14s%14s%14s\n", sl_place_name(placings[i].place),
               placings[i].place == SL_PLACE_DRAM ? "in DRAM" : ways[placings[i].copies],
               text_of_size(placings[i].dram).text, text_of_size(placings[i].page_cache).text,
               text_of_size(placings[i].pmem).text);
    printf("the page cache holds what was read, as long as there is memory; copies of --numa are one a memory node\n");
    printf("a tier (--tier dram, in persistent memory by itself) is each process's own%s\n",
           plan->bytes_tier > plan->bytes_upper ? ", the 4-bit rows with it" : "");
}

static void print_plan_text(const sl_index_params *params, const sl_plan *plan, const machine *here) {
    part parts[PLAN_PARTS];
    list_parts(plan, parts);
    double n = plan->n ? (double)plan->n : 1;
    printf("%llu vectors of %zu %s, %s, codes %s, refine %s, m %zu\n", (unsigned long long)plan->n, params->dim,
           sl_dtype_name(params->dtype), sl_metric_name(params->metric), sl_codes_name(params->codes),
           sl_refine_name(params->refine), params->m);
    for (size_t i = 0; i < PLAN_PARTS; i++)
        if (parts[i].bytes)
            printf("  %-12s %12s  %8.1f bytes a vector%s\n", parts[i].name, text_of_size(parts[i].bytes).text,
                   (double)parts[i].bytes / n, parts[i].note);
    printf("  %-12s %12s  %8.1f bytes a vector; saved with room for as many %s\n", "the file",
           text_of_size(plan->bytes_total).text, (double)plan->bytes_total / n,
           text_of_size(plan->bytes_with_room).text);
    printf("  %-12s %12s  %8.1f bytes a vector, in records of %llu\n", "in records",
           text_of_size(plan->bytes_in_records).text, (double)plan->bytes_in_records / n,
           (unsigned long long)plan->record_bytes);
    print_placings(plan);
    printf("page table of each process that maps all of it: %s by pages of 4 KiB, %s by pages of 2 MiB\n",
           text_of_size(page_table(plan->bytes_total, 4096)).text,
           text_of_size(page_table(plan->bytes_total, (uint64_t)2 << 20)).text);
    printf("this machine: memory %s: %s; free in %s %s: %s\n", text_of_size(here->memory).text,
           fit_verdict(plan->bytes_total, here->memory), here->folder, text_of_size(here->space).text,
           fit_verdict(plan->bytes_total, here->space));
}

int print_plan(const plan_options *options, int as_json) {
    sl_index_params params;
    sl_plan plan = {.struct_size = sizeof plan};
    sl_system system = {.struct_size = sizeof system};
    char *folder = output_folder(options->output ? options->output : "index.sl");
    if (!folder) return report_failure("out of memory");
    sl_index_params_init(&params);
    params.dim = options->dim;
    params.metric = (sl_metric)options->metric;
    params.dtype = (sl_dtype)options->dtype;
    params.codes = index_codes(options->codes, params.dtype);
    params.refine = (sl_refine)options->refine;
    params.m = options->m;
    params.tags = options->tags;
    params.keys = options->keys;
    if (params.ef_construction < params.m) params.ef_construction = params.m;
    sl_status status = sl_index_plan(&params, options->n, &plan);
    if (status == SL_OK) status = sl_system_query(&system);
    machine here = {system.memory, free_space(folder), folder};
    if (status == SL_OK && as_json)
        json_plan(&params, &plan, &here);
    else if (status == SL_OK)
        print_plan_text(&params, &plan, &here);
    free(folder);
    return status == SL_OK ? report_stdout() : report_status("--plan", status);
}
