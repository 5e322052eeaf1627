#include "node_filter.hpp"

#include "buffer.hpp"

#include <nanobind/stl/array.h>

#include <optional>
#include <string>

int NodeFilter::accept(void *self, uint64_t id) {
    auto *filter = static_cast<NodeFilter *>(self);
    bool allowed = false;
    bool told = filter->asking_->guarded([&] {
        nb::object said = or_stay([&] { return filter->accept_(id); });
        allowed = or_stay([&] { return nb::cast<bool>(nb::bool_(said)); });
    });
    return told ? allowed : -1;
}

// Runs work() under the gates, and raises what the callable raised. Other threads may wait at the gates meanwhile:
// asking_ is that of the thread within.
template <class Work> void NodeFilter::run(Access access, Work work) {
    Progress asking{nb::none()};
    Outcome outcome = index_.use_filter(access, [&] {
        asking_ = &asking;
        Outcome done = work();
        asking_ = nullptr;
        return done;
    });
    asking.check(outcome);
}

NodeFilter::NodeFilter(nb::handle index, nb::handle bits, size_t bits_count, nb::handle allow, size_t allow_count,
                       nb::handle exclude, size_t exclude_count, nb::handle accept, std::array<uint64_t, 3> masks,
                       std::array<uint64_t, 2> keys)
    : index_object_(nb::borrow(index)), accept_(nb::borrow(accept)), index_(nb::cast<Index &>(index)),
      index_handle_(index_.handle()) {
    std::optional<Flat<const uint64_t>> words, allowed, excluded;
    sl_filter_params params;
    sl_filter_params_init(&params);
    static const uint64_t none = 0;
    if (!bits.is_none()) {
        words.emplace(bits, bits_count / 64 + (bits_count % 64 != 0));
        params.bits = bits_count ? words->data() : &none;
        params.bits_count = bits_count;
    }
    if (!allow.is_none()) {
        allowed.emplace(allow, allow_count);
        params.allow = allow_count ? allowed->data() : &none;
        params.allow_count = allow_count;
    }
    if (!exclude.is_none()) {
        excluded.emplace(exclude, exclude_count);
        params.exclude = exclude_count ? excluded->data() : &none;
        params.exclude_count = exclude_count;
    }
    if (!accept.is_none()) {
        params.accept = NodeFilter::accept;
        params.accept_ctx = this;
    }
    params.any_tags = masks[0];
    params.all_tags = masks[1];
    params.none_tags = masks[2];
    params.key_min = keys[0];
    params.key_max = keys[1];
    try {
        run(Access::shared, [&] { return Outcome(sl_filter_create(index_handle_.get(), &params, &handle_)); });
    } catch (...) {
        sl_filter_free(handle_);
        throw;
    }
}

NodeFilter::~NodeFilter() {
    sl_filter_free(handle_);
}

void NodeFilter::refresh() {
    run(Access::exclusive, [&] { return Outcome(sl_filter_refresh(handle_)); });
}

size_t NodeFilter::count() {
    size_t found = 0;
    check(index_.use_filter(Access::shared, [&] {
        found = sl_filter_count(handle_);
        return Outcome(SL_OK);
    }));
    return found;
}

// Reads a list of filters, one a query, each a Filter or None.
static std::vector<const sl_filter *> filter_handles(const nb::list &given, size_t queries) {
    std::vector<const sl_filter *> filters;
    if (given.size() != queries)
        throw nb::value_error(("filter has " + std::to_string(given.size()) + " filters for " +
                               std::to_string(queries) + " queries; give one a query")
                                  .c_str());
    for (nb::handle one : given)
        filters.push_back(filter_handle(one));
    return filters;
}

sl_search_params search_params_of(const nb::dict &options, size_t queries, std::vector<const sl_filter *> &filters) {
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = nb::cast<size_t>(options["ef"]);
    params.threads = nb::cast<size_t>(options["threads"]);
    params.rerank = nb::cast<size_t>(options["rerank"]);
    params.recall = nb::cast<double>(options["recall"]);
    params.stop = nb::cast<double>(options["stop"]);
    params.probes = nb::cast<size_t>(options["probes"]);
    params.groups = nb::cast<size_t>(options["groups"]);
    params.group_size = nb::cast<size_t>(options["group_size"]);
    params.max_visits = nb::cast<size_t>(options["max_visits"]);
    nb::object filter = options["filter"];
    if (nb::isinstance<nb::list>(filter)) {
        filters = filter_handles(nb::cast<nb::list>(filter), queries);
        params.filters = filters.data();
    } else {
        params.filter = filter_handle(filter);
    }
    nb::object threshold = options["threshold"];
    params.has_threshold = !threshold.is_none();
    if (params.has_threshold) params.threshold = nb::cast<double>(threshold);
    return params;
}

int NodeFilter::traverse(PyObject *self, visitproc visit, void *arg) {
#if PY_VERSION_HEX >= 0x03090000
    Py_VISIT(Py_TYPE(self));
#endif
    if (!nb::inst_ready(self)) return 0;
    auto *filter = nb::inst_ptr<NodeFilter>(self);
    Py_VISIT(filter->index_object_.ptr());
    Py_VISIT(filter->accept_.ptr());
    return 0;
}

int NodeFilter::clear(PyObject *self) {
    // The index stays: the handle needs it until the end.
    nb::inst_ptr<NodeFilter>(self)->accept_ = nb::none();
    return 0;
}

void define_filter(nb::module_ &m) {
    static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(NodeFilter::traverse)},
                                  {Py_tp_clear, reinterpret_cast<void *>(NodeFilter::clear)},
                                  {0, nullptr}};
    nb::class_<NodeFilter>(m, "Filter", nb::type_slots(slots))
        .def(nb::init<nb::handle, nb::handle, size_t, nb::handle, size_t, nb::handle, size_t, nb::handle,
                      std::array<uint64_t, 3>, std::array<uint64_t, 2>>(),
             nb::arg("index"), nb::arg("bits").none(), nb::arg("bits_count"), nb::arg("allow").none(),
             nb::arg("allow_count"), nb::arg("exclude").none(), nb::arg("exclude_count"), nb::arg("accept").none(),
             nb::arg("masks"), nb::arg("keys"))
        .def("refresh", &NodeFilter::refresh)
        .def("count", &NodeFilter::count);
}
