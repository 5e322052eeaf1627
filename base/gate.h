/* A gate that one thread passes at a time. A forked child has no other threads, so it can't wait for those of its
 * parent. */
#ifndef SL_BASE_GATE_H
#define SL_BASE_GATE_H

#include <pthread.h>
#include <shortlist.h>

typedef struct sl_gate {
    pthread_mutex_t lock;
    pthread_cond_t turn;
    int inside;         /* 1: a thread is inside */
    size_t waiting;     /* threads that wait for it, for tests */
    pthread_t last;     /* the thread that was inside last; valid once `passed` */
    int passed, shared; /* `shared` is atomic */
    int process;        /* the process that the thread inside belongs to */
} sl_gate;

void sl_gate_init(sl_gate *gate);
void sl_gate_free(sl_gate *gate);

/* Waits until no thread is inside. A thread that is inside must not enter again.
 * Errors: SL_EBUSY, in a child that was forked while a thread of its parent was inside. */
sl_status sl_gate_enter(sl_gate *gate);
/* Returns whether different threads have been inside. Threads: any. */
int sl_gate_is_shared(const sl_gate *gate);
/* Leaves the gate, as the thread that entered it. */
void sl_gate_leave(sl_gate *gate);

#endif
