#include "cli/inspect/index_metrics.h"

#include "cli/common/metrics_out.h"
#include "cli/common/report.h"
#include "cli/inspect/index_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define NAME(name) "shortlist_index_" name

size_t oldest_holder(const index_facts *facts) {
    size_t oldest = 0;
    for (size_t i = 1; i < facts->holder_count; i++)
        if (facts->holders[i].epoch < facts->holders[oldest].epoch) oldest = i;
    return oldest;
}

static void print_kind(metrics *out, const index_facts *facts) {
    const sl_index_stats *stats = &facts->stats;
    const metric_label kind[] = {{"metric", sl_metric_name(stats->metric)},
                                 {"input", sl_dtype_name(stats->dtype)},
                                 {"codes", sl_codes_name(stats->codes)},
                                 {"refine", sl_refine_name(stats->refine)},
                                 {"layout", sl_layout_name(stats->layout)},
                                 {"place", sl_place_name(stats->place)},
                                 {"version", sl_version()}};
    metrics_family(out, NAME("info"), METRIC_GAUGE,
                   "How vectors are kept, and the version that read the file. Always 1.");
    metrics_count(out, kind, sizeof kind / sizeof *kind, 1);
}

static void print_vectors(metrics *out, const sl_index_stats *stats) {
    metrics_gauge(out, NAME("vectors"), "Vectors, without deleted ones.", stats->n);
    metrics_gauge(out, NAME("deleted_vectors"), "Deleted vectors that still take memory.", stats->deleted);
    metrics_gauge(out, NAME("in_repair_vectors"), "Those of the deleted vectors that are becoming reusable.",
                  stats->in_repair);
    metrics_gauge(out, NAME("reusable_vectors"), "Places of deleted vectors that the next adds use.", stats->reusable);
    metrics_gauge(out, NAME("room_vectors"),
                  "Vectors that a file with room can hold, deleted ones too. 0: it has no room.", stats->room);
    metrics_gauge(out, NAME("dimensions"), "Elements of a vector.", stats->dim);
    metrics_gauge(out, NAME("partitions"), "Partitions of the vectors.", stats->partitions);
    metrics_gauge(out, NAME("tuned_settings"), "Settings that tune stored.", stats->tuned);
    metrics_ratio(out, NAME("quantization_error_mean_ratio"),
                  "Mean error of the codes, as a share of the vector's length.", stats->quant_error_mean);
    metrics_ratio(out, NAME("quantization_error_max_ratio"),
                  "Largest error of the codes, as a share of the vector's length.", stats->quant_error_max);
}

static void print_bytes(metrics *out, const sl_index_stats *stats, const struct stat *file) {
    index_part parts[INDEX_PARTS];
    list_index_parts(stats, parts);
    metrics_gauge(out, NAME("bytes"), "Bytes of the index as a file without room.", stats->bytes_total);
    metrics_family(out, NAME("part_bytes"), METRIC_GAUGE, "Bytes of each part, with deleted vectors.");
    for (size_t i = 0; i < INDEX_PARTS; i++)
        metrics_count(out, &(metric_label){"part", parts[i].key + strlen("bytes_")}, 1, parts[i].bytes);
    metrics_gauge(out, NAME("file_bytes"), "Size of the file, holes too.", (uint64_t)file->st_size);
    metrics_gauge(out, NAME("file_disk_bytes"), "Bytes that the file takes on the disk.",
                  (uint64_t)file->st_blocks * 512);
}

static void print_storage_metrics(metrics *out, const sl_index_storage *storage) {
    metrics_gauge(out, NAME("layer0_bytes"), "Bytes of layer 0, which searches mostly read.", storage->bytes_layer0);
    if (storage->pages_known) {
        metrics_gauge(out, NAME("resident_bytes"), "Bytes of layer 0 that lie in memory.", storage->bytes_resident);
        metrics_gauge(out, NAME("huge_page_bytes"), "Bytes of these on huge pages.", storage->bytes_huge);
    }
    metrics_gauge(out, NAME("log_bytes"), "Bytes of the redo log beside a file that is written in place.",
                  storage->bytes_log);
    metrics_gauge(out, NAME("log_lost"), "1 if the log of a crashed writer is missing or damaged, else 0.",
                  (uint64_t)storage->log_lost);
    metrics_counter(out, NAME("recoveries_total"), "Replays of the log after a crash.", storage->recoveries);
    metrics_gauge(out, NAME("recovered_syncs"), "Syncs that the last recovery replayed.", storage->recovered_groups);
    metrics_gauge(out, NAME("recovered_bytes"), "Bytes that the last recovery replayed.", storage->recovered_bytes);
}

static void print_searches(metrics *out, const index_facts *facts) {
    const size_t oldest = oldest_holder(facts);
    metrics_gauge(out, NAME("running_searches"), "Searches that run in other processes at this moment.",
                  facts->holder_count);
    if (!facts->holder_count) return;
    metrics_gauge(out, NAME("oldest_search_commit"), "Commit of the file by which the oldest of these goes.",
                  facts->holders[oldest].epoch);
}

static void print_sample(metrics *out, const index_facts *facts) {
    if (!facts->sample) return;
    metrics_gauge(out, NAME("sampled_vectors"), "Vectors that the sample searched for.", facts->sample);
    metrics_ratio(out, NAME("sampled_recall_ratio"), "Share of their nearest vectors that the searches found.",
                  facts->report.sampled_recall);
    metrics_gauge(out, NAME("sampled_lost_vectors"),
                  "Vectors of the sample of whose nearest a search found less than half.", facts->report.sampled_lost);
}

int print_index_metrics(const index_facts *facts) {
    metrics out = {.file = stdout, .label = {"path", facts->path}};
    struct stat file;
    if (stat(facts->path, &file) != 0) return report_failure("%s: %s", facts->path, strerror(errno));
    print_kind(&out, facts);
    print_vectors(&out, &facts->stats);
    print_bytes(&out, &facts->stats, &file);
    print_storage_metrics(&out, &facts->storage);
    print_searches(&out, facts);
    print_sample(&out, facts);
    return report_stdout();
}
