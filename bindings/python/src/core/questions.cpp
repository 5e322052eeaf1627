// Questions to an index besides searches for the k nearest.
#include "buffer.hpp"
#include "index.hpp"

bool Index::contains(uint64_t id) {
    int found = 0;
    ::check(use(Access::shared, [&] { return Outcome(sl_index_contains(handle_.get(), id, &found)); }));
    return found != 0;
}

size_t Index::list(nb::handle ids_out, size_t room) {
    Flat<uint64_t> ids(ids_out, room, true);
    size_t count = 0;
    ::check(use(Access::shared, [&] { return Outcome(sl_index_ids(handle_.get(), ids.data(), room, &count)); }));
    return count;
}
