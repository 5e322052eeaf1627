#include "exact.hpp"

#include "buffer.hpp"
#include "gate.hpp"
#include "progress.hpp"

#include <memory>

namespace {

struct FreeExact {
    void operator()(sl_exact *exact) const {
        sl_exact_free(exact);
    }
};

Outcome scan(const sl_exact_params &params, const Rows &x, const Rows &q, uint64_t *ids, float *scores) {
    sl_exact *made = nullptr;
    sl_status status = sl_exact_create(&params, q.data(), q.count(), q.stride(), &made);
    std::unique_ptr<sl_exact, FreeExact> exact(made);
    if (status == SL_OK) status = sl_exact_scan(exact.get(), x.data(), x.count(), x.stride(), 0);
    if (status == SL_OK) status = sl_exact_results(exact.get(), ids, scores);
    return Outcome(status);
}

} // namespace

void exact_search(nb::handle x_rows, nb::handle q_rows, int dtype, int metric, size_t dim, size_t k, size_t threads,
                  nb::handle ids_out, nb::handle scores_out) {
    Rows x(x_rows, static_cast<sl_dtype>(dtype), dim);
    Rows q(q_rows, static_cast<sl_dtype>(dtype), dim);
    Flat<uint64_t> ids(ids_out, q.count() * k, true);
    Flat<float> scores(scores_out, q.count() * k, true);
    Progress progress{nb::none()};
    sl_exact_params params;
    sl_exact_params_init(&params);
    params.dim = dim;
    params.metric = static_cast<sl_metric>(metric);
    params.dtype = static_cast<sl_dtype>(dtype);
    params.k = k;
    params.threads = batch_threads(threads);
    progress.attach(params);
    Outcome outcome;
    {
        Released released;
        outcome = scan(params, x, q, ids.data(), scores.data());
    }
    progress.check(outcome);
}
