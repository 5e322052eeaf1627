// Turns a status of the library into a Python exception.
#pragma once

#include "gil.hpp"

#include <shortlist.h>

#include <string>

// A call's status and message. It is taken on the call's thread, before another call can overwrite the message.
struct Outcome {
    sl_status status = SL_OK;
    std::string message;

    Outcome() = default;
    // Reads sl_last_error() if status is a failure.
    explicit Outcome(sl_status status);
};

// Raises the outcome's exception; returns if it is SL_OK. Needs the GIL.
void check(const Outcome &outcome);

// The characters of a str, which has to outlive them; null for None. Raises TypeError for another type, and ValueError
// for what is no C string.
const char *text_of(nb::handle value, const char *name);

// Raises the exception of a status with a message of this module's own. Needs the GIL.
[[noreturn]] void raise(sl_status status, const std::string &message);
