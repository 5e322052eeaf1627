#include "base/gate.h"

#include "base/status.h"

#include <unistd.h>

void sl_gate_init(sl_gate *gate) {
    *gate = (sl_gate){.process = (int)getpid()};
    (void)pthread_mutex_init(&gate->lock, NULL);
    (void)pthread_cond_init(&gate->turn, NULL);
}

void sl_gate_free(sl_gate *gate) {
    (void)pthread_cond_destroy(&gate->turn);
    (void)pthread_mutex_destroy(&gate->lock);
}

/* In a child the lock may be held by a thread of the parent, so the child makes it anew. */
static sl_status adopt(sl_gate *gate) {
    const int self = (int)getpid();
    if (__atomic_load_n(&gate->process, __ATOMIC_RELAXED) == self) return SL_OK;
    if (gate->inside)
        return sl_fail(SL_EBUSY,
                       "process %d was forked while another thread of its parent made a change; open or "
                       "build this again here, or fork between changes",
                       self);
    sl_gate_init(gate);
    return SL_OK;
}

sl_status sl_gate_enter(sl_gate *gate) {
    SL_TRY(adopt(gate));
    pthread_mutex_lock(&gate->lock);
    gate->waiting++;
    while (gate->inside)
        pthread_cond_wait(&gate->turn, &gate->lock);
    gate->waiting--;
    gate->inside = 1;
    if (gate->passed && !pthread_equal(gate->last, pthread_self()))
        __atomic_store_n(&gate->shared, 1, __ATOMIC_RELAXED);
    gate->last = pthread_self();
    gate->passed = 1;
    pthread_mutex_unlock(&gate->lock);
    return SL_OK;
}

int sl_gate_is_shared(const sl_gate *gate) {
    return __atomic_load_n(&gate->shared, __ATOMIC_RELAXED);
}

void sl_gate_leave(sl_gate *gate) {
    pthread_mutex_lock(&gate->lock);
    gate->inside = 0;
    pthread_cond_signal(&gate->turn);
    pthread_mutex_unlock(&gate->lock);
}
