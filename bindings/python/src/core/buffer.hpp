// Arrays of Python seen as the library takes them, held for the length of a call.
#pragma once

#include "errors.hpp"

class Buffer {
  public:
    Buffer(nb::handle object, bool writable) {
        int flags = PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
    }
    ~Buffer() {
        PyBuffer_Release(&view_);
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

  protected:
    Py_buffer view_;
};

// A matrix whose rows may lie apart, but not a row's elements. Other layouts are copied before they come here.
class Rows : public Buffer {
  public:
    Rows(nb::handle object, sl_dtype dtype, size_t dim, bool writable = false) : Buffer(object, writable) {
        Py_ssize_t element = static_cast<Py_ssize_t>(sl_dtype_size(dtype));
        Py_ssize_t width = static_cast<Py_ssize_t>(dim);
        bool fits = view_.ndim == 2 && view_.itemsize == element && view_.shape[1] == width &&
                    (width < 2 || view_.len == 0 || view_.strides[1] == element) &&
                    (view_.shape[0] < 2 || view_.strides[0] >= width * element);
        if (!fits) throw nb::value_error("not a matrix of the index's dimension and element type with contiguous rows");
    }

    void *data() const {
        return view_.buf;
    }
    size_t count() const {
        return static_cast<size_t>(view_.shape[0]);
    }
    size_t stride() const {
        return view_.shape[0] < 2 ? 0 : static_cast<size_t>(view_.strides[0]);
    }
};

// `count` elements of T in a row, whatever their shape.
template <class T> class Flat : public Buffer {
  public:
    Flat(nb::handle object, size_t count, bool writable = false) : Buffer(object, writable) {
        bool fits = view_.itemsize == static_cast<Py_ssize_t>(sizeof(T)) &&
                    static_cast<size_t>(view_.len) == count * sizeof(T) && PyBuffer_IsContiguous(&view_, 'C');
        if (!fits) throw nb::value_error("not a contiguous array of the length and element type expected");
    }

    T *data() const {
        return static_cast<T *>(view_.buf);
    }
};
