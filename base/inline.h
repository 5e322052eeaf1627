#ifndef SL_BASE_INLINE_H
#define SL_BASE_INLINE_H

/* For small functions that must be inlined into the loops that call them. */
#define AI inline __attribute__((always_inline))

#endif
