#include "items.hpp"

#include "index.hpp"

namespace {

sl_items_params params_of(const nb::str &id) {
    sl_items_params params;
    sl_items_params_init(&params);
    params.id = id.c_str();
    return params;
}

} // namespace

Items *Items::create(nb::handle rows, nb::str id, nb::handle function) {
    Source source(rows);
    Progress progress(function);
    sl_items_params params = params_of(id);
    progress.attach(params);
    sl_items *made = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_items_create(source.rows(), &params, &made));
    }
    std::unique_ptr<Items> items(made ? new Items(made) : nullptr);
    progress.check(outcome);
    return items.release();
}

Items *Items::open(nb::bytes path, nb::str id, bool exclusive, double wait) {
    const char *name = path_text(path);
    Progress progress{nb::none()};
    sl_items_params params = params_of(id);
    params.exclusive = exclusive;
    params.wait_s = wait;
    progress.attach(params);
    sl_items *made = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_items_open(name, &params, &made));
    }
    std::unique_ptr<Items> items(made ? new Items(made) : nullptr);
    progress.check(outcome);
    return items.release();
}

Items::~Items() {
    sl_items_free(handle_);
}

void Items::save(nb::bytes path, nb::handle function) {
    const char *name = path_text(path);
    Progress progress(function);
    sl_save_params params;
    sl_save_params_init(&params);
    progress.attach(params);
    Outcome outcome;
    gate_.run(Access::exclusive, [&] { outcome = Outcome(sl_items_save(handle_, name, &params)); });
    progress.check(outcome);
}

nb::dict Items::check(nb::handle function) {
    Progress progress(function);
    sl_file_check_params params;
    sl_file_check_params_init(&params);
    progress.attach(params);
    sl_items_check_report report{};
    report.struct_size = sizeof report;
    Outcome outcome;
    {
        // Readers and updates do not wait for it.
        Released released;
        outcome = Outcome(sl_items_check(handle_, &params, &report));
    }
    progress.check(outcome.status == SL_ECORRUPT ? Outcome() : outcome);
    nb::dict found;
    found["status"] = sl_status_name(outcome.status);
    found["message"] = outcome.message.c_str();
    found["rows"] = report.rows;
    found["columns"] = report.columns;
    found["sections_checked"] = report.sections_checked;
    found["bytes_checked"] = report.bytes_checked;
    found["bad_ids"] = report.bad_ids;
    return found;
}

template <class Work> void Items::change(Work work) {
    Outcome outcome;
    gate_.run(Access::exclusive, [&] {
        outcome = Outcome(work());
        changed();
    });
    ::check(outcome);
}

void Items::update(nb::handle object, bool partial) {
    const Table &table = nb::cast<Table &>(object);
    change([&] { return (partial ? sl_items_set : sl_items_update)(handle_, table.view()); });
}

void Items::remove(nb::handle ids, size_t n) {
    Flat<const uint64_t> labels(ids, n);
    change([&] { return sl_items_delete(handle_, labels.data(), n); });
}

nb::list Items::texts(nb::handle ids, size_t n, nb::str column) {
    Flat<const uint64_t> labels(ids, n);
    nb::list out;
    std::string text(64, '\0');
    for (size_t i = 0; i < n; i++) {
        size_t length = 0;
        for (;;) {
            ::check(
                Outcome(sl_items_text(handle_, labels.data()[i], column.c_str(), text.data(), text.size(), &length)));
            if (length < text.size()) break;
            text.resize(length + 1);
        }
        out.append(nb::str(text.data(), length));
    }
    return out;
}

void define_items(nb::module_ &m) {
    nb::class_<Items>(m, "Items")
        .def_static("create", &Items::create, nb::arg("rows"), nb::arg("id"), nb::arg("progress").none())
        .def_static("open", &Items::open, nb::arg("path"), nb::arg("id"), nb::arg("exclusive"), nb::arg("wait"))
        .def("save", &Items::save, nb::arg("path"), nb::arg("progress").none())
        .def("check", &Items::check, nb::arg("progress").none())
        .def("update", &Items::update, nb::arg("table"), nb::arg("partial"))
        .def("delete", &Items::remove, nb::arg("ids"), nb::arg("n"))
        .def("texts", &Items::texts, nb::arg("ids"), nb::arg("n"), nb::arg("column"))
        .def_prop_ro("size", &Items::size)
        .def_prop_ro("changes", &Items::changes);
}
