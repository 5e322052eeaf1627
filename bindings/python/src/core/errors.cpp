#include "errors.hpp"

#include <cstring>

Outcome::Outcome(sl_status code) : status(code), message(code == SL_OK ? "" : sl_last_error()) {}

void check(const Outcome &outcome) {
    if (outcome.status != SL_OK) raise(outcome.status, outcome.message);
}

const char *text_of(nb::handle value, const char *name) {
    if (value.is_none()) return nullptr;
    if (!PyUnicode_Check(value.ptr())) throw nb::type_error((std::string(name) + " must be a text").c_str());
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (!text) throw nb::python_error();
    if (std::strlen(text) != static_cast<size_t>(size))
        throw nb::value_error((std::string(name) + " holds a NUL character").c_str());
    return text;
}

void raise(sl_status status, const std::string &message) {
    // Python alone chooses the exception of a status.
    nb::object make = nb::module_::import_("shortlist._errors").attr("from_status");
    const char *said = message.empty() ? sl_status_text(status) : message.c_str();
    nb::object error = or_stay([&] { return make(sl_status_name(status), said); });
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}
