#include "source.hpp"

#include "index.hpp"

#include <cstring>

namespace {

const char *optional_text(nb::handle text) {
    return text.is_none() ? nullptr : nb::borrow<nb::str>(text).c_str();
}

[[noreturn]] void misfit(const char *name, const char *what) {
    throw nb::value_error(("column '" + std::string(name) + "': " + what).c_str());
}

// The number of texts that an array of offsets bounds.
size_t bounded(Py_ssize_t bytes) {
    size_t numbers = static_cast<size_t>(bytes) / sizeof(int64_t);
    return numbers ? numbers - 1 : 0;
}

} // namespace

struct Table::Held : Buffer {
    explicit Held(nb::handle object) : Buffer(object, false) {}
    const Py_buffer &view() const {
        return view_;
    }
};

const void *Table::hold(nb::handle object, size_t count, size_t element, const char *name) {
    held_.push_back(std::make_unique<Held>(object));
    const Py_buffer &view = held_.back()->view();
    bool fits = PyBuffer_IsContiguous(&view, 'C') && static_cast<size_t>(view.len) / element >= count &&
                (count == 0 || reinterpret_cast<uintptr_t>(view.buf) % element == 0);
    if (!fits) misfit(name, "not a contiguous buffer of the length and element type expected");
    return view.buf;
}

// Checks count + 1 numbers: they begin at 0, never fall, and end at most at limit.
const int64_t *Table::hold_offsets(nb::handle object, size_t count, size_t limit, const char *name) {
    auto offsets = static_cast<const int64_t *>(hold(object, count + 1, sizeof(int64_t), name));
    bool sound = offsets[0] >= 0;
    for (size_t i = 0; i < count; i++)
        sound &= offsets[i] <= offsets[i + 1];
    if (!sound || static_cast<uint64_t>(offsets[count]) > limit)
        misfit(name, "offsets outside of what they point into");
    return offsets;
}

void Table::add_values(sl_column &column, nb::tuple parts) {
    static const size_t sizes[] = {sizeof(float), sizeof(double), sizeof(int32_t), sizeof(int64_t), 1, 1,
                                   sizeof(float)};
    const char *name = column.name;
    size_t rows = table_.rows, count = rows;
    bool text = column.type == SL_COLUMN_TEXT || column.type == SL_COLUMN_TEXTS;
    if (text) count = 0;
    if (column.type == SL_COLUMN_VECTOR && __builtin_mul_overflow(rows, column.dim, &count)) misfit(name, "too large");
    column.values = hold(parts[3], count, sizes[column.type], name);
    if (!text) return;
    size_t bytes = static_cast<size_t>(held_.back()->view().len);
    if (column.type == SL_COLUMN_TEXTS) {
        Held offsets(parts[4]);
        column.lists = hold_offsets(parts[5], rows, bounded(offsets.view().len), name);
        rows = static_cast<size_t>(column.lists[rows]);
    }
    column.offsets = hold_offsets(parts[4], rows, bytes, name);
}

Table::Table(size_t rows, nb::list columns) {
    if (rows > SIZE_MAX / 16) throw nb::value_error("too many rows");
    table_.struct_size = sizeof table_;
    table_.rows = rows;
    names_.reserve(nb::len(columns));
    for (nb::handle item : columns) {
        nb::tuple parts = nb::cast<nb::tuple>(item);
        if (nb::len(parts) != 7) throw nb::value_error("a column is (name, type, dim, values, offsets, lists, valid)");
        names_.push_back(nb::cast<nb::str>(parts[0]).c_str());
        sl_column column{};
        column.name = names_.back().c_str();
        int type = nb::cast<int>(parts[1]);
        if (type < SL_COLUMN_F32 || type > SL_COLUMN_VECTOR) misfit(column.name, "no such type");
        column.type = static_cast<sl_column_type>(type);
        column.dim = nb::cast<size_t>(parts[2]);
        add_values(column, parts);
        if (!parts[6].is_none())
            column.valid = static_cast<const uint8_t *>(hold(parts[6], (rows + 7) / 8, 1, column.name));
        columns_.push_back(column);
    }
    table_.column_count = columns_.size();
    table_.columns = columns_.data();
}

Csv::Csv(nb::bytes path, nb::handle spec, nb::str delimiter, nb::handle names) {
    std::vector<const char *> columns;
    if (!names.is_none())
        for (nb::handle name : names)
            columns.push_back(nb::borrow<nb::str>(name).c_str());
    sl_csv_params params;
    sl_csv_params_init(&params);
    if (std::strlen(delimiter.c_str()) != 1) throw nb::value_error("delimiter must be one ASCII character");
    params.delimiter = *delimiter.c_str();
    params.header = columns.empty();
    params.names = columns.data();
    params.name_count = columns.size();
    params.spec = optional_text(spec);
    const char *name = path_text(path);
    sl_csv *csv = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_csv_open(name, &params, &csv));
    }
    check(outcome);
    csv_.reset(csv);
}

Source::Source(nb::handle object) {
    if (nb::isinstance<Csv>(object)) {
        check(Outcome(nb::cast<Csv &>(object).rows(&rows_)));
        return;
    }
    const sl_table *table = nb::cast<Table &>(object).view();
    cursor_.reset(static_cast<sl_table_cursor *>(std::malloc(sl_table_cursor_size(table->column_count))));
    if (!cursor_) throw std::bad_alloc();
    check(Outcome(sl_table_rows(table, cursor_.get(), &rows_)));
}

void define_sources(nb::module_ &m) {
    nb::class_<Table>(m, "Table")
        .def(nb::init<size_t, nb::list>(), nb::arg("rows"), nb::arg("columns"))
        .def_prop_ro("rows", &Table::rows);
    nb::class_<Csv>(m, "Csv").def(nb::init<nb::bytes, nb::handle, nb::str, nb::handle>(), nb::arg("path"),
                                  nb::arg("spec").none(), nb::arg("delimiter"), nb::arg("names").none());
}
