// The library's structs as dicts of the same names.
#pragma once

#include <nanobind/nanobind.h>
#include <shortlist_rank.h>

namespace nb = nanobind;

// The word of a calibration; "?" beyond the last.
const char *calibration_name(sl_calibration calibration);

nb::dict dict_of(const sl_epoch &epoch);
nb::dict dict_of(const sl_train_report &report);
nb::dict dict_of(const sl_prune_report &report);
nb::dict dict_of(const sl_metrics &metrics);
nb::dict dict_of(const sl_ranker_info &info);
// Numbers of enumerations become words. A place that the feature lacks becomes None.
nb::dict dict_of(const sl_feature_info &feature);
nb::dict dict_of(const sl_layer_info &layer);
nb::dict dict_of(const sl_trial &trial);
nb::dict dict_of(const sl_precision_search_report &report);
nb::dict dict_of(const sl_embedding_info &table);
