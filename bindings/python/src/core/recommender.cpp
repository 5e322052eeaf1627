#include "recommender.hpp"

#include "node_filter.hpp"

namespace {

sl_recommend_params params_of(const nb::dict &options) {
    sl_recommend_params params;
    sl_recommend_params_init(&params);
    params.n = nb::cast<size_t>(options["n"]);
    params.candidates = nb::cast<size_t>(options["candidates"]);
    params.ef = nb::cast<size_t>(options["ef"]);
    params.max_per_group = nb::cast<size_t>(options["max_per_group"]);
    params.threads = batch_threads(nb::cast<size_t>(options["threads"]));
    return params;
}

nb::dict stats_of(const sl_recommend_stats &stats) {
    nb::dict out;
    out["results"] = stats.results;
    out["candidates"] = stats.candidates;
    out["without_features"] = stats.without_features;
    out["version"] = stats.version;
    return out;
}

sl_ranker *ranker_of(nb::handle object) {
    return object.is_none() ? nullptr : nb::cast<Ranker &>(object).handle();
}

sl_items *items_of(nb::handle object) {
    return object.is_none() ? nullptr : nb::cast<Items &>(object).handle();
}

} // namespace

struct Recommender::Asked {
    Asked(const nb::dict &request, size_t dim)
        : dtype(static_cast<sl_dtype>(nb::cast<int>(request["dtype"]))), vectors(request["vectors"], dtype, dim) {
        const sl_table *user = nullptr;
        if (!nb::object(request["user"]).is_none()) {
            user = nb::cast<Table &>(request["user"]).view();
            if (user->rows != vectors.count()) throw nb::value_error("user features are not a row a vector");
        }
        exclude(request);
        const sl_filter *nodes = filter_handle(nb::object(request["filter"]));
        requests.resize(vectors.count());
        for (size_t i = 0; i < requests.size(); i++) {
            sl_request &one = requests[i];
            one = sl_request{};
            one.struct_size = sizeof one;
            one.vector = static_cast<const char *>(vectors.data()) + i * vectors.stride();
            one.dtype = dtype;
            one.user = user;
            one.user_row = i;
            one.filter = nodes;
            if (!starts) continue;
            one.exclude = excluded->data() + starts->data()[i];
            one.exclude_count = static_cast<size_t>(starts->data()[i + 1] - starts->data()[i]);
        }
    }

    sl_dtype dtype;
    Rows vectors;
    std::optional<Flat<const int64_t>> starts;
    std::optional<Flat<const uint64_t>> excluded;
    std::vector<sl_request> requests;

  private:
    void exclude(const nb::dict &request) {
        nb::object start = request["exclude_start"];
        if (start.is_none()) return;
        size_t n = vectors.count();
        starts.emplace(start, n + 1);
        const int64_t *at = starts->data();
        bool sound = at[0] == 0;
        for (size_t i = 0; i < n; i++)
            sound &= at[i] <= at[i + 1];
        if (!sound) throw nb::value_error("the offsets of exclude do not begin at 0, or fall");
        excluded.emplace(request["exclude_ids"], static_cast<size_t>(at[n]));
    }
};

// A session for one call, with room for params.
class Recommender::Session {
  public:
    Session(Recommender &owner, const sl_recommend_params &params)
        : owner_(owner), entry_(owner.sessions_.take({params.n, params.candidates, params.ef})) {
        if (!entry_.handle)
            check(owner.use([&] { return Outcome(sl_session_create(owner.handle_, &params, &entry_.handle)); }));
    }
    ~Session() {
        owner_.sessions_.give(entry_);
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    sl_session *handle() const {
        return entry_.handle;
    }

  private:
    Recommender &owner_;
    Sessions::Entry entry_;
};

template <class Work> Outcome Recommender::use(Work work) {
    return index_.use_filter(Access::shared, work);
}

Recommender::Recommender(nb::handle index, nb::handle ranker, nb::handle items, int item_part, size_t threads,
                         float missing_score, nb::handle group, bool verify)
    : index_object_(nb::borrow(index)), items_object_(nb::borrow(items)), index_(nb::cast<Index &>(index)),
      index_handle_(index_.handle()) {
    sl_recommender_params params;
    sl_recommender_params_init(&params);
    params.item_part = static_cast<sl_item_part>(item_part);
    params.threads = batch_threads(threads);
    params.missing_score = missing_score;
    params.verify = verify;
    params.group = text_of(group, "group");
    sl_ranker *model = ranker_of(ranker);
    sl_items *table = items_of(items);
    in_use_ = items.is_none() ? nullptr : &nb::cast<Items &>(items);
    auto create = [&] { return Outcome(sl_recommender_create(index_handle_.get(), model, table, &params, &handle_)); };
    Gate::Pass shared{index_.gate(), Access::shared};
    // Preparing reads the table, in turns with the table's updates and with other recommenders.
    if (table)
        check(index_.use_in({{in_use_.load()->gate(), Access::exclusive}, shared}, create));
    else
        check(index_.use_in({shared}, create));
}

Recommender::~Recommender() {
    sessions_.clear();
    sl_recommender_free(handle_);
}

nb::dict Recommender::recommend(nb::dict request, nb::dict options, nb::handle ids_out, nb::handle scores_out,
                                nb::handle recall_out, nb::handle function) {
    Asked asked(request, index_.dim());
    sl_recommend_params params = params_of(options);
    size_t count = asked.requests.size(), places = 0;
    if (__builtin_mul_overflow(count, params.n, &places)) throw nb::value_error("n is too large");
    Flat<uint64_t> ids(ids_out, places, true);
    Flat<float> scores(scores_out, places, true), recall(recall_out, places, true);
    Progress progress(function);
    sl_recommend_stats stats{};
    if (count == 1) {
        Session session(*this, params);
        check(use([&] {
            return Outcome(sl_session_recommend(session.handle(), asked.requests.data(), &params, ids.data(),
                                                scores.data(), recall.data(), &stats));
        }));
        return stats_of(stats);
    }
    progress.attach(params);
    progress.check(use([&] {
        return Outcome(sl_recommend(handle_, asked.requests.data(), count, &params, ids.data(), scores.data(),
                                    recall.data(), &stats));
    }));
    return stats_of(stats);
}

nb::dict Recommender::score(nb::dict request, nb::handle ids, size_t count, nb::handle recall, nb::handle scores_out) {
    Asked asked(request, index_.dim());
    if (asked.requests.size() != 1) throw nb::value_error("not one vector");
    Flat<const uint64_t> labels(ids, count);
    std::optional<Flat<const float>> recalled;
    if (!recall.is_none()) recalled.emplace(recall, count);
    Flat<float> scores(scores_out, count, true);
    sl_recommend_params params;
    sl_recommend_params_init(&params);
    params.n = 1;
    // A session takes ids beyond its room in turns.
    params.candidates = std::min<size_t>(std::max<size_t>(count, 1), SL_MAX_EF);
    sl_recommend_stats stats{};
    Session session(*this, params);
    check(use([&] {
        return Outcome(sl_session_score(session.handle(), asked.requests.data(), labels.data(),
                                        recalled ? recalled->data() : nullptr, count, scores.data(), &stats));
    }));
    return stats_of(stats);
}

// Runs work(items) alone among the changes of this recommender and of the item table. None: the table in use, which
// another swap may have changed while this call waited.
template <class Work> void Recommender::with_items(nb::handle given, Work work) {
    for (;;) {
        nb::object object = given.is_none() ? items_object_ : nb::borrow(given);
        Items *items = object.is_none() ? nullptr : &nb::cast<Items &>(object);
        bool current = true;
        auto checked = [&] {
            current = !given.is_none() || items == in_use_;
            return current ? work(items) : Outcome();
        };
        Gate::Pass own{changes_, Access::exclusive}, shared{index_.gate(), Access::shared};
        if (items)
            check(index_.use_in({{items->gate(), Access::exclusive}, own, shared}, checked));
        else
            check(index_.use_in({own, shared}, checked));
        if (current) return;
    }
}

void Recommender::swap(nb::handle ranker, nb::handle items) {
    sl_ranker *model = ranker_of(ranker);
    sl_items *table = items_of(items);
    with_items(items, [&](Items *used) {
        Outcome outcome(sl_recommender_swap(handle_, model, table));
        if (outcome.status == SL_OK) in_use_ = used;
        return outcome;
    });
    // Unless a later swap was quicker to get here.
    if (!items.is_none() && in_use_ == &nb::cast<Items &>(items)) items_object_ = nb::borrow(items);
}

// Runs work on the table in use.
template <class Work> void Recommender::change(Work work) {
    if (items_object_.is_none()) throw nb::value_error("this recommender has no items to change");
    with_items(nb::none(), [&](Items *used) {
        Outcome outcome(work());
        used->changed();
        return outcome;
    });
}

void Recommender::update(nb::handle object, bool partial) {
    const Table &table = nb::cast<Table &>(object);
    change([&] { return (partial ? sl_recommender_set : sl_recommender_update)(handle_, table.view()); });
}

void Recommender::remove(nb::handle ids, size_t n) {
    Flat<const uint64_t> labels(ids, n);
    change([&] { return sl_recommender_delete(handle_, labels.data(), n); });
}

void define_recommender(nb::module_ &m) {
    nb::class_<Recommender>(m, "Recommender")
        .def(nb::init<nb::handle, nb::handle, nb::handle, int, size_t, float, nb::handle, bool>(), nb::arg("index"),
             nb::arg("ranker").none(), nb::arg("items").none(), nb::arg("item_part"), nb::arg("threads"),
             nb::arg("missing_score"), nb::arg("group").none(), nb::arg("verify"))
        .def("recommend", &Recommender::recommend, nb::arg("request"), nb::arg("options"), nb::arg("ids_out"),
             nb::arg("scores_out"), nb::arg("recall_out"), nb::arg("progress").none())
        .def("score", &Recommender::score, nb::arg("request"), nb::arg("ids"), nb::arg("count"),
             nb::arg("recall").none(), nb::arg("scores_out"))
        .def("swap", &Recommender::swap, nb::arg("ranker").none(), nb::arg("items").none())
        .def("update", &Recommender::update, nb::arg("table"), nb::arg("partial"))
        .def("delete", &Recommender::remove, nb::arg("ids"), nb::arg("n"))
        .def_prop_ro("version", &Recommender::version)
        .def_prop_ro("item_bytes", &Recommender::item_bytes);
}
