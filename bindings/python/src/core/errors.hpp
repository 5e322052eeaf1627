// How a status of the library becomes a Python exception.
#pragma once

#include <nanobind/nanobind.h>
#include <shortlist.h>

#include <string>

namespace nb = nanobind;

// What a call gave, taken on the thread that made it, before anything else can overwrite the library's message.
struct Outcome {
    sl_status status = SL_OK;
    std::string message;

    Outcome() = default;
    // Reads sl_last_error() where status is a failure.
    explicit Outcome(sl_status status);
};

// Raises what outcome stands for, or returns where it is SL_OK. Needs the GIL.
void check(const Outcome &outcome);

// Raises the exception of a status with a message of this module's own. Needs the GIL.
[[noreturn]] void raise(sl_status status, const std::string &message);
