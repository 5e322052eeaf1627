#include "index.hpp"

#include "buffer.hpp"

#include <algorithm>
#include <cstring>
#include <shortlist_import.h>
#include <vector>

// Ids of damaged records that a check report lists.
static constexpr size_t most_bad_ids = 10000;

const char *path_text(const nb::bytes &path) {
    if (std::strlen(path.c_str()) != path.size()) throw nb::value_error("path holds a NUL byte");
    return path.c_str();
}

Index::Index(sl_index *handle) : handle_(handle, sl_index_free) {
    sl_index_stats stats{};
    stats.struct_size = sizeof stats;
    ::check(Outcome(sl_index_get_stats(handle, &stats)));
    dim_ = stats.dim;
    dtype_ = stats.dtype;
}

Index *Index::create(size_t dim, int metric, int dtype, int codes, int refine, int clip, double clip_share, size_t m,
                     size_t ef_construction, uint64_t seed, int numa, size_t numa_node, bool tags, bool keys,
                     bool multi, size_t max_memory, nb::handle work_path) {
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = dim;
    params.metric = static_cast<sl_metric>(metric);
    params.dtype = static_cast<sl_dtype>(dtype);
    params.codes = static_cast<sl_codes>(codes);
    params.refine = static_cast<sl_refine>(refine);
    params.clip = static_cast<sl_clip>(clip);
    params.clip_share = clip_share;
    params.m = m;
    params.ef_construction = ef_construction;
    params.seed = seed;
    params.numa = static_cast<sl_numa_policy>(numa);
    params.numa_node = numa_node;
    params.tags = tags;
    params.keys = keys;
    params.multi = multi;
    params.max_memory = max_memory;
    if (!work_path.is_none()) params.work_path = path_text(nb::cast<nb::bytes>(work_path));
    sl_index *handle = nullptr;
    ::check(Outcome(sl_index_create(&params, &handle)));
    auto *index = new Index(handle);
    params.work_path = nullptr; // the caller frees the path
    index->created_ = params;
    return index;
}

nb::dict Index::plan(uint64_t n, int builder, size_t threads, size_t room, int layout) {
    if (!created_) throw nb::value_error("plan tells of an index that Index() made, not of an opened or merged one");
    sl_add_params add;
    sl_add_params_init(&add);
    add.builder = static_cast<sl_builder>(builder);
    add.threads = batch_threads(threads);
    sl_save_params save;
    sl_save_params_init(&save);
    save.room = room;
    save.layout = static_cast<sl_layout>(layout);
    sl_build_plan plan{};
    plan.struct_size = sizeof plan;
    ::check(
        use(Access::shared, [&] { return Outcome(sl_index_plan_build(&*created_, n, nullptr, &add, &save, &plan)); }));
    nb::dict out;
    out["n"] = plan.n;
    out["builder"] = static_cast<int>(plan.builder);
    out["bytes_index"] = plan.bytes_index;
    out["bytes_peak"] = plan.bytes_peak;
    out["bytes_peak_alike"] = plan.bytes_peak_alike;
    out["bytes_file"] = plan.bytes_file;
    return out;
}

Index *Index::open(nb::bytes path, int place, bool writable, int numa, size_t numa_node, int tier, size_t threads,
                   bool exclusive, double wait) {
    const char *name = path_text(path);
    Progress progress{nb::none()};
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = static_cast<sl_place>(place);
    params.writable = writable;
    params.numa = static_cast<sl_numa_policy>(numa);
    params.numa_node = numa_node;
    params.tier = static_cast<sl_tier>(tier);
    params.threads = threads;
    params.exclusive = exclusive;
    params.wait_s = wait;
    progress.attach(params);
    sl_index *handle = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_index_open(name, &params, &handle));
    }
    progress.check(outcome);
    return new Index(handle);
}

Index *Index::merge(nb::list indexes, size_t m, size_t ef_construction, int clash, int builder, size_t threads,
                    nb::handle function) {
    if (indexes.size() == 0) throw nb::value_error("no indexes to merge; give one or more");
    std::vector<Index *> parts;
    std::vector<Gate::Pass> passes;
    for (nb::handle each : indexes) {
        parts.push_back(nb::cast<Index *>(each));
        passes.push_back({parts.back()->gate_, Access::shared});
    }
    Progress progress(function);
    sl_merge_params params;
    sl_merge_params_init(&params);
    params.m = m;
    params.ef_construction = ef_construction;
    params.clash = static_cast<sl_clash>(clash);
    params.builder = static_cast<sl_builder>(builder);
    params.threads = batch_threads(threads);
    progress.attach(params);
    sl_index *merged = nullptr;
    std::vector<sl_index *> handles(parts.size());
    bool open = true;
    Outcome outcome;
    Gate::run_in(passes, [&] {
        for (size_t i = 0; i < parts.size(); i++) {
            handles[i] = parts[i]->handle_.get();
            open = open && handles[i] != nullptr;
        }
        if (open) outcome = Outcome(sl_index_merge(handles.data(), handles.size(), &params, &merged));
    });
    if (!open) throw nb::value_error("one of the indexes is closed");
    progress.check(outcome);
    return new Index(merged);
}

Index *Index::import_file(nb::bytes path, int format, int metric, size_t dim, int codes, int refine, int clip,
                          double clip_share, size_t threads, nb::handle function) {
    const char *name = path_text(path);
    Progress progress(function);
    sl_index_params index;
    sl_index_params_init(&index);
    index.dim = dim;
    index.codes = static_cast<sl_codes>(codes);
    index.clip = static_cast<sl_clip>(clip);
    index.clip_share = clip_share;
    sl_import_params params;
    sl_import_params_init(&params);
    params.format = static_cast<sl_foreign_format>(format);
    params.metric = metric;
    params.refine = refine;
    params.index = &index;
    params.threads = batch_threads(threads);
    progress.attach(params);
    sl_index *handle = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_index_import(name, &params, &handle));
    }
    progress.check(outcome);
    return new Index(handle);
}

size_t Index::size() {
    gate_.run(Access::shared, [&] {
        if (handle_) last_size_ = sl_index_size(handle_.get());
    });
    return last_size_;
}

void Index::add(nb::handle rows, int dtype, nb::handle ids, nb::handle tags, nb::handle keys, int replace,
                nb::handle old, int builder, size_t threads, nb::handle function) {
    Rows x(rows, static_cast<sl_dtype>(dtype), dim_);
    std::optional<Flat<const uint64_t>> labels, tag_words, key_words;
    std::optional<Rows> old_rows;
    if (!old.is_none()) old_rows.emplace(old, static_cast<sl_dtype>(dtype), dim_);
    if (!ids.is_none()) labels.emplace(ids, x.count());
    if (!tags.is_none()) tag_words.emplace(tags, x.count());
    if (!keys.is_none()) key_words.emplace(keys, x.count());
    Progress progress(function);
    sl_add_params params;
    sl_add_params_init(&params);
    params.tags = tag_words ? tag_words->data() : nullptr;
    params.keys = key_words ? key_words->data() : nullptr;
    params.replace = replace;
    params.old = old_rows ? old_rows->data() : nullptr;
    params.builder = static_cast<sl_builder>(builder);
    params.threads = batch_threads(threads);
    progress.attach(params);
    progress.check(use(Access::changing, [&] {
        return Outcome(sl_index_add(handle_.get(), x.data(), static_cast<sl_dtype>(dtype), x.count(), x.stride(),
                                    labels ? labels->data() : nullptr, &params));
    }));
}

void Index::remove(nb::handle ids, size_t n) {
    Flat<const uint64_t> labels(ids, n);
    ::check(use(Access::changing, [&] { return Outcome(sl_index_delete(handle_.get(), labels.data(), n)); }));
}

void Index::compact(nb::handle function) {
    Progress progress(function);
    sl_compact_params params;
    sl_compact_params_init(&params);
    progress.attach(params);
    progress.check(use(Access::changing, [&] { return Outcome(sl_index_compact(handle_.get(), &params)); }));
}

void Index::undelete(nb::handle ids, size_t n) {
    Flat<const uint64_t> labels(ids, n);
    ::check(use(Access::changing, [&] { return Outcome(sl_index_undelete(handle_.get(), labels.data(), n)); }));
}

void Index::set_words(bool keys, nb::handle ids, size_t n, nb::handle words) {
    Flat<const uint64_t> labels(ids, n), to(words, n);
    ::check(use(Access::changing, [&] {
        return Outcome((keys ? sl_index_set_keys : sl_index_set_tags)(handle_.get(), labels.data(), n, to.data()));
    }));
}

void Index::get_words(bool keys, nb::handle ids, size_t n, nb::handle words_out) {
    Flat<const uint64_t> labels(ids, n);
    Flat<uint64_t> out(words_out, n, true);
    ::check(use(Access::shared, [&] {
        return Outcome((keys ? sl_index_get_keys : sl_index_get_tags)(handle_.get(), labels.data(), n, out.data()));
    }));
}

void Index::search_in(const Queries &q, size_t k, sl_search_params &params, uint64_t *ids, float *scores) {
    Progress progress{nb::none()};
    params.threads = q.count > 1 ? batch_threads(params.threads) : 1;
    // A single query is over before a signal could be served.
    if (q.count > 1) progress.attach(params);
    progress.check(search_use(params, [&] {
        return Outcome(
            sl_index_search(handle_.get(), q.data, q.dtype, q.count, q.stride, k, &params, ids, scores, nullptr));
    }));
}

nb::dict Index::tune(nb::handle rows, int dtype, size_t k, nb::handle truth, nb::handle targets, size_t target_count,
                     size_t max_ef, size_t threads, nb::handle function) {
    Rows q(rows, static_cast<sl_dtype>(dtype), dim_);
    std::optional<Flat<const uint64_t>> ids;
    std::optional<Flat<const double>> wanted;
    if (!truth.is_none()) ids.emplace(truth, q.count() * k);
    if (!targets.is_none()) wanted.emplace(targets, target_count);
    Progress progress(function);
    sl_tune_params params;
    sl_tune_params_init(&params);
    params.targets = wanted ? wanted->data() : nullptr;
    params.target_count = target_count;
    params.max_ef = max_ef;
    params.threads = batch_threads(threads);
    progress.attach(params);
    sl_tune_report report{};
    report.struct_size = sizeof report;
    progress.check(use(Access::changing, [&] {
        return Outcome(sl_index_tune(handle_.get(), q.data(), static_cast<sl_dtype>(dtype), q.count(), q.stride(),
                                     ids ? ids->data() : nullptr, k, &params, &report));
    }));
    nb::dict out;
    out["first"] = report.first;
    out["targets"] = report.targets;
    out["reached"] = report.reached;
    out["passes"] = report.passes;
    out["queries_needed"] = report.queries_needed;
    return out;
}

nb::list Index::tuned() {
    nb::list out;
    std::vector<sl_tuned> all;
    ::check(use(Access::shared, [&] {
        sl_index_stats stats{};
        stats.struct_size = sizeof stats;
        Outcome outcome(sl_index_get_stats(handle_.get(), &stats));
        for (size_t i = 0; outcome.status == SL_OK && i < stats.tuned; i++) {
            sl_tuned one{};
            one.struct_size = sizeof one;
            outcome = Outcome(sl_index_get_tuned(handle_.get(), i, &one));
            all.push_back(one);
        }
        return outcome;
    }));
    for (const sl_tuned &one : all) {
        nb::dict entry;
        entry["target"] = one.target;
        entry["k"] = one.k;
        entry["least_k"] = one.least_k;
        entry["ef"] = one.ef;
        entry["rerank"] = one.rerank;
        entry["stop"] = one.stop;
        entry["limit"] = one.limit == SL_LIMIT_NONE ? nb::none() : nb::object(nb::str(sl_tune_limit_name(one.limit)));
        entry["recall"] = one.recall;
        entry["standard_error"] = one.standard_error;
        entry["evaluations"] = one.evaluations;
        entry["n"] = one.n;
        entry["queries"] = one.queries;
        entry["ef_alone"] = one.ef_alone;
        entry["probes"] = one.probes;
        entry["probes_one"] = one.probes_one;
        entry["groups"] = one.groups;
        entry["scan_only"] = one.scan_only != 0;
        out.append(entry);
    }
    return out;
}

nb::bytes Index::get_all(uint64_t id, int dtype) {
    const size_t row = dim_ * sl_dtype_size(static_cast<sl_dtype>(dtype));
    std::vector<char> out;
    size_t count = 1, room = 0;
    ::check(use(Access::shared, [&] {
        sl_status status = SL_OK;
        // Another process may add to the file meanwhile.
        while (status == SL_OK && room < count) {
            room = count;
            out.resize(room * row);
            status = sl_index_get_all(handle_.get(), id, static_cast<sl_dtype>(dtype), out.data(), room, &count);
        }
        return Outcome(status);
    }));
    return nb::bytes(out.data(), count * row);
}

void Index::get(nb::handle ids, size_t n, int dtype, nb::handle out) {
    Flat<const uint64_t> labels(ids, n);
    Rows vectors(out, static_cast<sl_dtype>(dtype), dim_, true);
    if (vectors.count() != n || (n > 1 && vectors.stride() != dim_ * sl_dtype_size(static_cast<sl_dtype>(dtype))))
        throw nb::value_error("the output is not a dense matrix of one row an id");
    ::check(use(Access::shared, [&] {
        return Outcome(sl_index_get(handle_.get(), labels.data(), n, static_cast<sl_dtype>(dtype), vectors.data()));
    }));
}

void Index::sync() {
    ::check(use(Access::changing, [&] { return Outcome(sl_index_sync(handle_.get())); }));
}

void Index::save(nb::bytes path, size_t room, int layout, nb::handle function) {
    const char *name = path_text(path);
    Progress progress(function);
    sl_save_params params;
    sl_save_params_init(&params);
    params.room = room;
    params.layout = static_cast<sl_layout>(layout);
    progress.attach(params);
    progress.check(use(Access::changing, [&] { return Outcome(sl_index_save(handle_.get(), name, &params)); }));
}

void take_snapshot(nb::bytes path, nb::bytes copy, nb::handle function) {
    const char *from = path_text(path), *to = path_text(copy);
    Progress progress(function);
    sl_snapshot_params params;
    sl_snapshot_params_init(&params);
    progress.attach(params);
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_index_snapshot(from, to, &params));
    }
    progress.check(outcome);
}

nb::dict rebuild(nb::bytes path, nb::handle output, size_t m, size_t ef_construction, size_t room, int builder,
                 size_t threads, double wait, nb::handle function) {
    const char *name = path_text(path);
    Progress progress(function);
    sl_rebuild_params params;
    sl_rebuild_params_init(&params);
    if (!output.is_none()) params.output = path_text(nb::cast<nb::bytes>(output));
    params.m = m;
    params.ef_construction = ef_construction;
    params.room = room;
    params.builder = static_cast<sl_builder>(builder);
    params.threads = batch_threads(threads);
    params.wait_s = wait;
    progress.attach(params);
    sl_rebuild_report report{};
    report.struct_size = sizeof report;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_index_rebuild(name, &params, &report));
    }
    progress.check(outcome);
    nb::dict made;
    made["n"] = report.n;
    made["deleted"] = report.deleted;
    made["bytes_before"] = report.bytes_before;
    made["bytes_after"] = report.bytes_after;
    made["room"] = report.room;
    made["layout"] = sl_layout_name(report.layout);
    made["linked_from"] = report.linked_from;
    return made;
}

nb::tuple Index::resolution(size_t threads) {
    sl_resolution found{};
    found.struct_size = sizeof found;
    ::check(use(Access::shared,
                [&] { return Outcome(sl_index_resolution(handle_.get(), batch_threads(threads), &found)); }));
    return nb::make_tuple(found.sampled, found.unresolved);
}

nb::dict Index::recall(size_t sample, size_t k, size_t ef, double seconds, uint64_t seed, nb::handle function) {
    Progress progress(function);
    sl_recall_params params;
    sl_recall_params_init(&params);
    params.sample = sample;
    params.k = k;
    params.ef = ef;
    params.seconds = seconds;
    params.seed = seed;
    progress.attach(params);
    sl_recall_report report{};
    report.struct_size = sizeof report;
    progress.check(use(Access::shared, [&] { return Outcome(sl_index_recall(handle_.get(), &params, &report)); }));
    nb::dict found;
    found["sampled"] = report.sampled;
    found["recall"] = report.recall;
    found["standard_error"] = report.standard_error;
    found["lost"] = report.lost;
    return found;
}

nb::dict Index::check(size_t sample, size_t k, size_t ef, size_t threads, bool scrub, nb::handle function) {
    Progress progress(function);
    sl_check_params params;
    sl_check_params_init(&params);
    params.sample = sample;
    params.k = k;
    params.ef = ef;
    params.threads = batch_threads(threads);
    std::vector<uint64_t> bad(scrub ? most_bad_ids : 0);
    params.scrub = scrub;
    params.bad_ids = bad.data();
    params.bad_ids_room = bad.size();
    progress.attach(params);
    sl_check_report report{};
    report.struct_size = sizeof report;
    Outcome outcome = use(Access::changing, [&] { return Outcome(sl_index_check(handle_.get(), &params, &report)); });
    bool damaged = outcome.status == SL_ECORRUPT;
    progress.check(damaged ? Outcome() : outcome);
    nb::dict found;
    found["status"] = sl_status_name(outcome.status);
    found["message"] = outcome.message.c_str();
    found["n"] = report.n;
    found["bad_links"] = report.bad_links;
    found["bad_upper"] = report.bad_upper;
    found["unreachable"] = report.unreachable;
    found["no_in_link"] = report.no_in_link;
    found["bad_vectors"] = report.bad_vectors;
    found["duplicate_ids"] = report.duplicate_ids;
    found["min_degree"] = report.min_degree;
    found["max_degree"] = report.max_degree;
    found["mean_degree"] = report.mean_degree;
    found["sampled_lost"] = report.sampled_lost;
    found["sampled_recall"] = report.sampled_recall;
    found["resolution_sampled"] = report.resolution_sampled;
    found["unresolved"] = report.unresolved;
    found["sections_checked"] = report.sections_checked;
    found["records_checked"] = report.records_checked;
    found["bad_records"] = report.bad_records;
    bad.resize(std::min(bad.size(), report.bad_records));
    nb::list ids;
    for (uint64_t id : bad)
        ids.append(id);
    found["bad_ids"] = ids;
    found["deleted"] = report.deleted;
    found["pages_checked"] = report.pages_checked;
    found["bad_pages"] = report.bad_pages;
    found["unverified"] = report.unverified != 0;
    return found;
}

nb::dict Index::stats() {
    sl_index_stats stats{};
    stats.struct_size = sizeof stats;
    std::vector<sl_epoch_holder> holders(64);
    ::check(use(Access::shared, [&] {
        Outcome outcome(sl_index_get_stats(handle_.get(), &stats));
        // Calls may begin between two lists.
        for (size_t count = SIZE_MAX; outcome.status == SL_OK && count > holders.size();) {
            if (count != SIZE_MAX) holders.resize(2 * count);
            outcome = Outcome(sl_index_holders(handle_.get(), holders.data(), holders.size(), &count));
            if (count <= holders.size()) holders.resize(count);
        }
        return outcome;
    }));
    nb::dict out;
    out["n"] = stats.n;
    out["dim"] = stats.dim;
    out["metric"] = sl_metric_name(stats.metric);
    out["dtype"] = sl_dtype_name(stats.dtype);
    out["codes"] = sl_codes_name(stats.codes);
    out["refine"] = sl_refine_name(stats.refine);
    out["clip"] = sl_clip_name(stats.clip);
    out["clip_share"] = stats.clip_share;
    out["m"] = stats.m;
    out["ef_build"] = stats.ef_construction;
    out["seed"] = stats.seed;
    out["place"] = sl_place_name(stats.place);
    out["max_level"] = stats.max_level;
    out["bytes_codes"] = stats.bytes_codes;
    out["bytes_links"] = stats.bytes_links;
    out["bytes_ids"] = stats.bytes_ids;
    out["bytes_upper"] = stats.bytes_upper;
    out["bytes_refine"] = stats.bytes_refine;
    out["tags"] = stats.tags != 0;
    out["keys"] = stats.keys != 0;
    out["multi"] = stats.multi != 0;
    out["bytes_tags"] = stats.bytes_tags;
    out["bytes_keys"] = stats.bytes_keys;
    out["bytes_partitions"] = stats.bytes_partitions;
    out["partitions"] = stats.partitions;
    out["groups"] = stats.groups;
    out["bytes_total"] = stats.bytes_total;
    out["bytes_per_vector"] = stats.n ? static_cast<double>(stats.bytes_total) / static_cast<double>(stats.n) : 0.0;
    out["quant_error_mean"] = stats.quant_error_mean;
    out["quant_error_max"] = stats.quant_error_max;
    out["isa"] = stats.isa;
    out["tuned"] = stats.tuned;
    out["deleted"] = stats.deleted;
    out["reusable"] = stats.reusable;
    out["in_repair"] = stats.in_repair;
    out["epoch"] = stats.epoch;
    out["oldest_epoch"] = stats.oldest_epoch;
    out["versions_held"] = stats.versions_held;
    out["bytes_held"] = stats.bytes_held;
    nb::list held;
    for (const sl_epoch_holder &holder : holders) {
        nb::dict one;
        one["epoch"] = holder.epoch;
        one["pid"] = holder.pid;
        one["tid"] = holder.tid;
        held.append(one);
    }
    out["holders"] = held;
    out["room"] = stats.room;
    out["layout"] = sl_layout_name(stats.layout);
    return out;
}

nb::dict Index::numa() {
    sl_index_numa numa{};
    numa.struct_size = sizeof numa;
    ::check(use(Access::shared, [&] { return Outcome(sl_index_get_numa(handle_.get(), &numa)); }));
    nb::list bytes;
    for (size_t node = 0; node < numa.nodes; node++)
        bytes.append(numa.bytes[node]);
    char policy[32];
    nb::dict out;
    out["policy"] = sl_numa_format(numa.policy, numa.node, policy, sizeof policy);
    out["bytes_by_node"] = bytes;
    out["bytes_absent"] = numa.bytes_absent;
    out["upper_copies"] = numa.copies;
    return out;
}

void Index::close() {
    gate_.run(Access::exclusive, [&] {
        if (handle_) last_size_ = sl_index_size(handle_.get());
        handle_.reset();
        closed_ = true;
    });
}
