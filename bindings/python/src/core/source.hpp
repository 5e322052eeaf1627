// Rows of columns as the library reads them: arrays in memory, or a CSV file.
#pragma once

#include "buffer.hpp"

#include <shortlist_rank.h>

#include <cstdlib>
#include <memory>
#include <vector>

// A table over Python's buffers, which it holds. Lengths and offsets are checked, so that nothing beyond them is read.
class Table {
  public:
    // columns: tuples (name, type, dim, values, offsets, lists, valid). A buffer that the type does not need is None.
    Table(size_t rows, nb::list columns);
    Table(const Table &) = delete;
    Table &operator=(const Table &) = delete;

    const sl_table *view() const {
        return &table_;
    }
    size_t rows() const {
        return table_.rows;
    }

  private:
    // Holds a contiguous buffer of at least count elements.
    const void *hold(nb::handle object, size_t count, size_t element, const char *name);
    const int64_t *hold_offsets(nb::handle object, size_t count, size_t limit, const char *name);
    void add_values(sl_column &column, nb::tuple parts);

    struct Held;
    std::vector<std::unique_ptr<Held>> held_;
    std::vector<std::string> names_;
    std::vector<sl_column> columns_;
    sl_table table_{};
};

// A CSV file, opened for one call.
class Csv {
  public:
    // spec: a ranker's, or None; names: of the columns of a file without a header, or None.
    Csv(nb::bytes path, nb::handle spec, nb::str delimiter, nb::handle names);
    sl_status rows(sl_rows *out) {
        return sl_csv_rows(csv_.get(), out);
    }

  private:
    struct Free {
        void operator()(sl_csv *csv) const {
            sl_csv_free(csv);
        }
    };
    std::unique_ptr<sl_csv, Free> csv_;
};

// Either of them as a source of rows for one call.
class Source {
  public:
    // object: a Table or a Csv; anything else raises TypeError.
    explicit Source(nb::handle object);
    const sl_rows *rows() const {
        return &rows_;
    }

  private:
    struct Free {
        void operator()(void *memory) const {
            std::free(memory);
        }
    };
    std::unique_ptr<sl_table_cursor, Free> cursor_;
    sl_rows rows_{sizeof(sl_rows), nullptr, nullptr, nullptr};
};

void define_sources(nb::module_ &m);
