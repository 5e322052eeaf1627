#include "iterator.hpp"

#include "buffer.hpp"
#include "node_filter.hpp"

namespace {

class Iterator {
  public:
    // index: an Index. rows: a matrix of one query. filter: a Filter, or None.
    Iterator(nb::handle index, nb::handle rows, int dtype, size_t ef, size_t rerank, nb::handle filter,
             size_t max_visits)
        : index_object_(nb::borrow(index)), filter_object_(nb::borrow(filter)), index_(nb::cast<Index &>(index)),
          index_handle_(index_.handle()) {
        Rows query(rows, static_cast<sl_dtype>(dtype), index_.dim());
        if (query.count() != 1) throw nb::value_error("not one query");
        sl_search_params params;
        sl_search_params_init(&params);
        params.ef = ef;
        params.rerank = rerank;
        params.filter = filter_handle(filter);
        params.max_visits = max_visits;
        check(use([&] {
            return Outcome(
                sl_iterator_create(index_handle_.get(), query.data(), static_cast<sl_dtype>(dtype), &params, &handle_));
        }));
    }
    ~Iterator() {
        sl_iterator_free(handle_);
    }
    Iterator(const Iterator &) = delete;
    Iterator &operator=(const Iterator &) = delete;

    // Fills ids_out and scores_out, k each. Returns the number of results, and whether max_visits ended the page.
    nb::tuple next(size_t k, nb::handle ids_out, nb::handle scores_out) {
        Flat<uint64_t> ids(ids_out, k, true);
        Flat<float> scores(scores_out, k, true);
        size_t got = 0;
        sl_search_stats stats{};
        check(use([&] { return Outcome(sl_iterator_next(handle_, k, ids.data(), scores.data(), &got, &stats)); }));
        return nb::make_tuple(got, stats.cut != 0);
    }

  private:
    template <class Work> Outcome use(Work work) {
        return filter_object_.is_none() ? index_.use(Access::shared, work) : index_.use_filter(Access::shared, work);
    }

    nb::object index_object_, filter_object_; // keep alive
    Index &index_;
    std::shared_ptr<sl_index> index_handle_;
    sl_iterator *handle_ = nullptr;
};

} // namespace

void define_iterator(nb::module_ &m) {
    nb::class_<Iterator>(m, "Iterator")
        .def(nb::init<nb::handle, nb::handle, int, size_t, size_t, nb::handle, size_t>(), nb::arg("index"),
             nb::arg("rows"), nb::arg("dtype"), nb::arg("ef"), nb::arg("rerank"), nb::arg("filter").none(),
             nb::arg("max_visits"))
        .def("next", &Iterator::next, nb::arg("k"), nb::arg("ids_out"), nb::arg("scores_out"));
}
