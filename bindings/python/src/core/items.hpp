// An item table of the library as Python's objects hold it. Readers never wait; changes take turns at the gate.
#pragma once

#include "gate.hpp"
#include "source.hpp"

#include <atomic>

class Items {
  public:
    static Items *create(nb::handle rows, nb::str id, nb::handle progress);
    static Items *open(nb::bytes path, nb::str id, bool exclusive, double wait);
    ~Items();
    Items(const Items &) = delete;
    Items &operator=(const Items &) = delete;

    void save(nb::bytes path, nb::handle progress);
    // The report on the table's file, with the status and message of the call.
    nb::dict check(nb::handle progress);
    // partial: sets the table's columns, and leaves the items' others.
    void update(nb::handle table, bool partial);
    void remove(nb::handle ids, size_t n);
    // The texts of one column for n ids.
    nb::list texts(nb::handle ids, size_t n, nb::str column);
    size_t size() const {
        return sl_items_size(handle_);
    }
    // Changes so far, of any kind.
    size_t changes() const {
        return changes_;
    }

    // For the recommenders that use it and update it.
    sl_items *handle() const {
        return handle_;
    }
    Gate &gate() {
        return gate_;
    }
    void changed() {
        changes_++;
    }

  private:
    explicit Items(sl_items *handle) : handle_(handle) {}
    // Runs work alone among the changes, without the GIL.
    template <class Work> void change(Work work);

    sl_items *handle_;
    Gate gate_;
    std::atomic<size_t> changes_{0};
};

void define_items(nb::module_ &m);
