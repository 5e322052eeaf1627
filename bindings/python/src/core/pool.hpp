// Scratch of the library that rests between calls. One call at a time takes it; it is made if none fits.
#pragma once

#include <cstddef>
#include <vector>

// Handle: of the library, freed by `release`. Room: what it was made for, with bool covers(const Room &) const. All
// calls need the GIL, which guards what rests.
template <class Handle, class Room, void (*release)(Handle *)> class Pool {
  public:
    struct Entry {
        Handle *handle;
        Room room;
    };

    // The latest with enough room; a NULL handle: there is none.
    Entry take(const Room &wanted) {
        for (size_t i = resting_.size(); i-- > 0;) {
            if (!resting_[i].room.covers(wanted)) continue;
            Entry found = resting_[i];
            resting_.erase(resting_.begin() + static_cast<std::ptrdiff_t>(i));
            return found;
        }
        return {nullptr, wanted};
    }

    // Only a few of the latest rest, since each may be as large as its index or model.
    void give(const Entry &entry) {
        resting_.push_back(entry);
        if (resting_.size() <= kept) return;
        release(resting_.front().handle);
        resting_.erase(resting_.begin());
    }

    // To be called before their index or model is freed.
    void clear() {
        for (const Entry &entry : resting_)
            release(entry.handle);
        resting_.clear();
    }

  private:
    static constexpr size_t kept = 8;
    std::vector<Entry> resting_;
};
