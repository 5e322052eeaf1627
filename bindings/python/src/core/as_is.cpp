// Searches whose arguments need no conversion, by NumPy's C interface. A search may take a few microseconds. Checking
// its arguments and making its results in Python takes as long.
#include "index.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define NPY_TARGET_VERSION    NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>

namespace {

// Tells whether an index of that element type takes the array's elements as they are, and the type it takes them as.
bool taken(PyArrayObject *array, sl_dtype own, sl_dtype &dtype) {
    switch (PyArray_TYPE(array)) {
    case NPY_FLOAT32:
        dtype = SL_F32;
        return own == SL_F32;
    case NPY_FLOAT16:
        dtype = SL_F16;
        return own == SL_F32;
    case NPY_INT8:
        dtype = SL_I8;
        return own == SL_I8;
    case NPY_UINT8:
        dtype = SL_U8;
        return own == SL_U8;
    case NPY_INT16:
        dtype = SL_I16;
        return own == SL_I16;
    default:
        return false;
    }
}

// A Python int from 0 on.
bool whole(nb::handle value, size_t &number) {
    if (!PyLong_CheckExact(value.ptr())) return false;
    Py_ssize_t given = PyLong_AsSsize_t(value.ptr());
    if (given < 0) PyErr_Clear();
    number = static_cast<size_t>(given);
    return given >= 0;
}

// A Python float from 0 on.
bool real(nb::handle value, double &number) {
    if (!PyFloat_CheckExact(value.ptr())) return false;
    number = PyFloat_AS_DOUBLE(value.ptr());
    return number >= 0;
}

// None, or a Python float above 0, up to 1.
bool share(nb::handle value, double &number) {
    return value.is_none() || (real(value, number) && number > 0 && number <= 1);
}

nb::object made(int axes, npy_intp *shape, int type) {
    nb::object array = nb::steal(PyArray_SimpleNew(axes, shape, type));
    if (!array.is_valid()) throw nb::python_error();
    return array;
}

template <class T> T *elements(const nb::object &array) {
    return static_cast<T *>(PyArray_DATA(reinterpret_cast<PyArrayObject *>(array.ptr())));
}

} // namespace

void load_numpy() {
    if (_import_array() < 0) throw nb::python_error();
}

nb::object Index::search_as_is(nb::handle q, nb::handle k, nb::handle ef, nb::handle threads, nb::handle rerank,
                               nb::handle recall, nb::handle stop, nb::handle probes, nb::handle groups) {
    if (!PyArray_CheckExact(q.ptr())) return nb::none();
    auto *array = reinterpret_cast<PyArrayObject *>(q.ptr());
    Queries queries{PyArray_DATA(array), dtype_, 1, 0};
    int axes = PyArray_NDIM(array);
    if (axes < 1 || axes > 2 || PyArray_DIM(array, axes - 1) != static_cast<npy_intp>(dim_)) return nb::none();
    if (!PyArray_ISCARRAY_RO(array) || !taken(array, dtype_, queries.dtype)) return nb::none();
    if (axes == 2) queries.count = static_cast<size_t>(PyArray_DIM(array, 0));

    size_t wanted = 0;
    sl_search_params params;
    sl_search_params_init(&params);
    if (!whole(k, wanted) || wanted > SL_MAX_EF || !whole(ef, params.ef) || !whole(threads, params.threads) ||
        !whole(rerank, params.rerank) || !share(recall, params.recall) || !real(stop, params.stop) ||
        !whole(probes, params.probes) || !whole(groups, params.groups))
        return nb::none();

    npy_intp shape[] = {static_cast<npy_intp>(queries.count), static_cast<npy_intp>(wanted)};
    npy_intp *own = axes == 1 ? shape + 1 : shape;
    nb::object ids = made(axes, own, NPY_UINT64), scores = made(axes, own, NPY_FLOAT32);
    search_in(queries, wanted, params, elements<uint64_t>(ids), elements<float>(scores));
    return nb::make_tuple(ids, scores);
}
