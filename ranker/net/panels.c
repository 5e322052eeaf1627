#include "ranker/net/panels.h"

#include <string.h>

/* Parameters: `size` is a compile-time constant. */
static inline void pack_panels(const sl_panels *of, const uint8_t *weights, const size_t size, uint8_t *to) {
    const size_t groups = (of->in + of->group - 1) / of->group;
    for (size_t from = 0; from < of->out; from += SL_PANEL_BLOCK * SL_PANEL_BLOCKS) {
        size_t width = sl_panel_width(of->out, from);
        for (size_t i = 0; i < of->in; i++) {
            uint8_t *group = to + (i / of->group * width * of->group + i % of->group) * size;
            for (size_t o = from; o < of->out && o < from + width; o++)
                memcpy(group + (o - from) * of->group * size, weights + (i * of->out + o) * size, size);
        }
        to += groups * width * of->group * size;
    }
}

sl_status sl_panels_pack(const sl_panels *of, const void *weights, const sl_allocator *allocator, void **out,
                         size_t *bytes) {
    *out = NULL;
    *bytes = 0;
    size_t wanted;
    if (!sl_mul(sl_round_up(of->in, of->group) * of->size, sl_round_up(of->out, SL_PANEL_BLOCK), &wanted))
        return sl_fail(SL_ENOMEM, "a layer of %zu times %zu weights does not fit the address space", of->in, of->out);
    SL_TRY(sl_mem_alloc(allocator, wanted, out));
    *bytes = wanted;
    if (of->size == 1)
        pack_panels(of, weights, 1, *out);
    else
        pack_panels(of, weights, 2, *out);
    return SL_OK;
}
