#include "errors.hpp"

Outcome::Outcome(sl_status code) : status(code), message(code == SL_OK ? "" : sl_last_error()) {}

void check(const Outcome &outcome) {
    if (outcome.status != SL_OK) raise(outcome.status, outcome.message);
}

void raise(sl_status status, const std::string &message) {
    // Python alone chooses the exception of a status.
    nb::object make = nb::module_::import_("shortlist._errors").attr("from_status");
    nb::object error = make(sl_status_name(status), message.empty() ? sl_status_text(status) : message.c_str());
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}
