/* A gate: many threads pass it together, or one alone. A thread that wants to be alone goes before those that come
 * later. A forked child has no other threads, so it can't wait for those of its parent. */
#ifndef SL_BASE_GATE_H
#define SL_BASE_GATE_H

#include <pthread.h>
#include <shortlist.h>

typedef struct sl_gate {
    pthread_mutex_t lock;
    pthread_cond_t turn;
    size_t together; /* threads that are inside together */
    size_t waiting;  /* threads that wait to be alone */
    int alone;       /* 1: a thread is inside alone */
    pthread_t last;  /* the thread that was alone last; valid once `passed` */
    int passed, shared;
    int process; /* the process that the threads inside belong to */
} sl_gate;

void sl_gate_init(sl_gate *gate);
void sl_gate_free(sl_gate *gate);

/* Waits until this thread may be inside, with others or alone. A thread that is inside must not enter again.
 * Errors: SL_EBUSY, in a child that was forked while a thread of its parent was inside. */
sl_status sl_gate_enter(sl_gate *gate);
sl_status sl_gate_enter_alone(sl_gate *gate);
/* Returns whether different threads have been inside alone. The caller is inside alone. */
int sl_gate_is_shared(const sl_gate *gate);
/* Leaves the gate, as the thread that entered it. */
void sl_gate_leave(sl_gate *gate);

#endif
