// A filter handle of the library as Python's objects hold it: the vectors of one index that searches may return.
#pragma once

#include "index.hpp"

#include <array>
#include <vector>

class NodeFilter {
  public:
    // index: an Index. bits: packed words (uint64) over the ids below bits_count, or None. allow, exclude: ids (uint64)
    // and how many, or None. masks: any, all and none of the tags; 0 asks nothing. keys: the least and the largest.
    // accept: a callable of an id, or None; it is kept, and asked again at each refresh.
    NodeFilter(nb::handle index, nb::handle bits, size_t bits_count, nb::handle allow, size_t allow_count,
               nb::handle exclude, size_t exclude_count, nb::handle accept, std::array<uint64_t, 3> masks,
               std::array<uint64_t, 2> keys);
    ~NodeFilter();
    NodeFilter(const NodeFilter &) = delete;
    NodeFilter &operator=(const NodeFilter &) = delete;

    void refresh();
    // The vectors that are allowed now.
    size_t count();

    // For Python's collector of cycles: a callable may hold what holds the filter.
    static int traverse(PyObject *self, visitproc visit, void *arg);
    static int clear(PyObject *self);

    // For work within Index::use_filter.
    const sl_filter *handle() const {
        return handle_;
    }

  private:
    // Asks the callable with the GIL. An exception ends the call, and is raised after it.
    static int accept(void *self, uint64_t id);
    template <class Work> void run(Access access, Work work);

    nb::object index_object_, accept_; // keep alive
    Index &index_;
    std::shared_ptr<sl_index> index_handle_;
    sl_filter *handle_ = nullptr;
    Progress *asking_ = nullptr; // holds the exception of a call at work
};

// filter: a Filter, or None.
inline const sl_filter *filter_handle(nb::handle filter) {
    return filter.is_none() ? nullptr : nb::cast<NodeFilter &>(filter).handle();
}

// options: as Index::search has them, for so many queries. filters: memory for the handles of a list of filters, which
// the parameters point to.
sl_search_params search_params_of(const nb::dict &options, size_t queries, std::vector<const sl_filter *> &filters);

void define_filter(nb::module_ &m);
