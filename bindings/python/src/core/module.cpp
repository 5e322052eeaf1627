// shortlist._core: the library's calls over buffers. The package's Python code checks arguments and gives their
// defaults. This module checks again only what keeps memory safe.
#include "exact.hpp"
#include "index.hpp"
#include "items.hpp"
#include "iterator.hpp"
#include "node_filter.hpp"
#include "ranker.hpp"
#include "recommender.hpp"
#include "structs.hpp"

namespace {

// The library's names of an enumeration, to their numbers.
template <class Enum> nb::dict names(const char *(*name)(Enum)) {
    nb::dict out;
    for (int value = 0; *name(static_cast<Enum>(value)) != '?'; value++)
        out[name(static_cast<Enum>(value))] = value;
    return out;
}

nb::dict query_system() {
    sl_system system{};
    system.struct_size = sizeof system;
    check(Outcome(sl_system_query(&system)));
    nb::list available;
    for (int isa = 0; isa < SL_ISA_COUNT; isa++)
        if (system.isa_available >> isa & 1u) available.append(sl_isa_name(static_cast<sl_isa>(isa)));
    nb::dict out;
    out["isa"] = sl_isa_name(system.isa);
    out["isa_available"] = available;
    out["cpus"] = system.cpus;
    out["numa_nodes"] = system.numa_nodes;
    out["page_size"] = system.page_size;
    out["huge_page_size"] = system.huge_page_size;
    out["huge_page_mode"] = system.huge_page_mode;
    out["openmp"] = system.has_openmp != 0;
    out["numa"] = system.has_numa != 0;
    out["pmem"] = system.has_pmem != 0;
    out["onednn"] = system.has_onednn != 0;
    out["max_threads"] = system.max_threads;
    out["most_threads"] = system.most_threads;
    return out;
}

// The policy's number and its node.
nb::tuple parse_numa(const char *text) {
    sl_numa_policy policy;
    size_t node;
    check(Outcome(sl_numa_parse(text, &policy, &node)));
    return nb::make_tuple(static_cast<int>(policy), node);
}

} // namespace

NB_MODULE(_core, m) {
    watch_forks();
    watch_the_end();
    load_numpy();
    m.attr("METRICS") = names(sl_metric_name);
    m.attr("DTYPES") = names(sl_dtype_name);
    m.attr("CODES") = names(sl_codes_name);
    m.attr("REFINES") = names(sl_refine_name);
    m.attr("CLIPS") = names(sl_clip_name);
    m.attr("CALIBRATIONS") = names(calibration_name);
    m.attr("PLACES") = names(sl_place_name);
    m.attr("LAYOUTS") = names(sl_layout_name);
    m.attr("TIERS") = names(sl_tier_name);
    m.attr("MAX_EF") = SL_MAX_EF;
    m.attr("NO_ID") = SL_NO_ID;
    m.def("version", sl_version);
    m.def("system", query_system);
    m.def("parse_numa", parse_numa, nb::arg("text"));
    m.def("snapshot", take_snapshot, nb::arg("path"), nb::arg("copy"), nb::arg("progress").none());
    m.def("rebuild", rebuild, nb::arg("path"), nb::arg("output").none(), nb::arg("m"), nb::arg("ef_construction"),
          nb::arg("room"), nb::arg("builder"), nb::arg("threads"), nb::arg("wait"), nb::arg("progress").none());
    m.def("exact", exact_search, nb::arg("x"), nb::arg("q"), nb::arg("dtype"), nb::arg("metric"), nb::arg("dim"),
          nb::arg("k"), nb::arg("threads"), nb::arg("ids_out"), nb::arg("scores_out"));
    nb::class_<Index>(m, "Index")
        .def_static("create", &Index::create, nb::arg("dim"), nb::arg("metric"), nb::arg("dtype"), nb::arg("codes"),
                    nb::arg("refine"), nb::arg("clip"), nb::arg("clip_share"), nb::arg("m"), nb::arg("ef_construction"),
                    nb::arg("seed"), nb::arg("numa"), nb::arg("numa_node"), nb::arg("tags"), nb::arg("keys"),
                    nb::arg("multi"), nb::arg("max_memory"), nb::arg("work_path").none())
        .def_static("open", &Index::open, nb::arg("path"), nb::arg("place"), nb::arg("writable"), nb::arg("numa"),
                    nb::arg("numa_node"), nb::arg("tier"), nb::arg("threads"), nb::arg("exclusive"), nb::arg("wait"))
        .def_static("merge", &Index::merge, nb::arg("indexes"), nb::arg("m"), nb::arg("ef_construction"),
                    nb::arg("clash"), nb::arg("builder"), nb::arg("threads"), nb::arg("progress").none())
        .def_static("import_file", &Index::import_file, nb::arg("path"), nb::arg("format"), nb::arg("metric"),
                    nb::arg("dim"), nb::arg("codes"), nb::arg("refine"), nb::arg("clip"), nb::arg("clip_share"),
                    nb::arg("threads"), nb::arg("progress").none())
        .def("add", &Index::add, nb::arg("rows"), nb::arg("dtype"), nb::arg("ids").none(), nb::arg("tags").none(),
             nb::arg("keys").none(), nb::arg("replace"), nb::arg("old").none(), nb::arg("builder"), nb::arg("threads"),
             nb::arg("progress").none())
        .def("delete", &Index::remove, nb::arg("ids"), nb::arg("n"))
        .def("undelete", &Index::undelete, nb::arg("ids"), nb::arg("n"))
        .def("compact", &Index::compact, nb::arg("progress").none())
        .def("search", &Index::search, nb::arg("rows"), nb::arg("dtype"), nb::arg("k"), nb::arg("options"),
             nb::arg("ids_out"), nb::arg("scores_out"))
        .def("search_ids", &Index::search_ids, nb::arg("ids"), nb::arg("n"), nb::arg("k"), nb::arg("options"),
             nb::arg("ids_out"), nb::arg("scores_out"))
        .def("range", &Index::range, nb::arg("rows"), nb::arg("dtype"), nb::arg("radius"), nb::arg("exact"),
             nb::arg("ef"), nb::arg("slack"), nb::arg("threads"), nb::arg("filter").none())
        .def("search_as_is", &Index::search_as_is, nb::arg("q").none(), nb::arg("k").none(), nb::arg("ef").none(),
             nb::arg("threads").none(), nb::arg("rerank").none(), nb::arg("recall").none(), nb::arg("stop").none(),
             nb::arg("probes").none(), nb::arg("groups").none())
        .def("tune", &Index::tune, nb::arg("rows"), nb::arg("dtype"), nb::arg("k"), nb::arg("truth").none(),
             nb::arg("targets").none(), nb::arg("target_count"), nb::arg("max_ef"), nb::arg("threads"),
             nb::arg("progress").none())
        .def("tuned", &Index::tuned)
        .def("get", &Index::get, nb::arg("ids"), nb::arg("n"), nb::arg("dtype"), nb::arg("out"))
        .def("get_all", &Index::get_all, nb::arg("id"), nb::arg("dtype"))
        .def("set_words", &Index::set_words, nb::arg("keys"), nb::arg("ids"), nb::arg("n"), nb::arg("words"))
        .def("get_words", &Index::get_words, nb::arg("keys"), nb::arg("ids"), nb::arg("n"), nb::arg("words_out"))
        .def("contains", &Index::contains, nb::arg("id"))
        .def("list", &Index::list, nb::arg("ids_out"), nb::arg("room"))
        .def("save", &Index::save, nb::arg("path"), nb::arg("room"), nb::arg("layout"), nb::arg("progress").none())
        .def("plan", &Index::plan, nb::arg("n"), nb::arg("builder"), nb::arg("threads"), nb::arg("room"),
             nb::arg("layout"))
        .def("sync", &Index::sync)
        .def("check", &Index::check, nb::arg("sample"), nb::arg("k"), nb::arg("ef"), nb::arg("threads"),
             nb::arg("scrub"), nb::arg("progress").none())
        .def("recall", &Index::recall, nb::arg("sample"), nb::arg("k"), nb::arg("ef"), nb::arg("seconds"),
             nb::arg("seed"), nb::arg("progress").none())
        .def("resolution", &Index::resolution, nb::arg("threads"))
        .def("stats", &Index::stats)
        .def("numa", &Index::numa)
        .def("close", &Index::close)
        .def_prop_ro("size", &Index::size)
        .def_prop_ro("closed", &Index::closed);
    define_filter(m);
    define_iterator(m);
    define_sources(m);
    define_ranker(m);
    define_items(m);
    define_recommender(m);
}
