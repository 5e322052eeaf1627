#ifndef SL_BASE_INLINE_H
#define SL_BASE_INLINE_H

/* Small functions that must vanish into the loops around them. */
#define AI inline __attribute__((always_inline))

#endif
