#include "tests/support/history.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of an id. A version that is not present is that of the last delete. */
typedef struct state {
    uint32_t version;
    int present;
} state;

/* A possible truth at a moment: the state, and which of the running operations have happened. */
typedef struct moment {
    uint64_t happened; /* a bit for each place of `running` */
    state state;
} moment;

typedef struct moments {
    moment *list;
    size_t count, room;
} moments;

typedef struct search {
    const history_op *running[64];
    uint64_t places; /* that are taken */
    moments now, tried, next;
} search;

/* Adds a moment that is not there yet. */
static void add_moment(moments *to, moment which) {
    for (size_t i = 0; i < to->count; i++) {
        const moment *there = &to->list[i];
        if (there->happened == which.happened && there->state.version == which.state.version &&
            there->state.present == which.state.present)
            return;
    }
    if (to->count == to->room) {
        to->room = to->room ? 2 * to->room : 64;
        to->list = realloc(to->list, to->room * sizeof *to->list);
        ck_assert_ptr_nonnull(to->list);
    }
    to->list[to->count++] = which;
}

/* Lets an operation happen. Returns whether it may have its result in this state. */
static int happens(const history_op *op, state *state) {
    const int present = state->present;
    switch (op->kind) {
    case HISTORY_ADD:
        if (op->refused) return present;
        break;
    case HISTORY_REPLACE:
        break;
    case HISTORY_DELETE:
        state->present = 0;
        return present == !op->refused;
    case HISTORY_UNDELETE:
        if (op->refused) return present == (op->version != 0);
        state->present = 1;
        return !present && state->version;
    case HISTORY_READ:
    case HISTORY_WALK:
        return op->version == (present ? state->version : 0);
    case HISTORY_CONTAINS:
        return present == (op->version != 0);
    }
    state->version = op->version;
    state->present = 1;
    return op->kind == HISTORY_REPLACE || !present;
}

/* Ends the operation of a place. Each moment that stays has let it happen, after any of the other running ones. That is
 * the search of Wing and Gong (Testing and Verifying Concurrent Objects, 1993), which tries no moment twice and lets
 * operations happen no earlier than an end needs them (Lowe, Testing for Linearizability, 2017). */
static void end_operation(search *search, size_t place) {
    const uint64_t bit = (uint64_t)1 << place;
    search->next.count = search->tried.count = 0;
    for (size_t i = 0; i < search->now.count; i++)
        add_moment(search->now.list[i].happened & bit ? &search->next : &search->tried, search->now.list[i]);
    for (size_t i = 0; i < search->tried.count; i++)
        for (uint64_t left = search->places & ~search->tried.list[i].happened; left; left &= left - 1) {
            const size_t other = (size_t)__builtin_ctzll(left);
            moment then = search->tried.list[i];
            if (!happens(search->running[other], &then.state)) continue;
            then.happened |= (uint64_t)1 << other;
            add_moment(other == place ? &search->next : &search->tried, then);
        }
    search->places &= ~bit;
    for (size_t i = 0; i < search->next.count; i++)
        search->next.list[i].happened &= ~bit;
    const moments swapped = search->now;
    search->now = search->next;
    search->next = swapped;
}

static size_t place_of(const search *search, const history_op *op) {
    for (size_t place = 0; place < 64; place++)
        if (search->places >> place & 1 && search->running[place] == op) return place;
    ck_abort_msg("an operation ends that did not begin");
}

typedef struct event {
    uint64_t at;
    int ends;
    const history_op *op;
} event;

/* Begins come before ends of the same count: the two operations may overlap. */
static int by_time(const void *a, const void *b) {
    const event *left = a, *right = b;
    if (left->at != right->at) return left->at < right->at ? -1 : 1;
    return left->ends - right->ends;
}

static event *events_of(const history_op *ops, size_t count) {
    event *events = malloc(2 * count * sizeof *events);
    ck_assert_ptr_nonnull(events);
    for (size_t i = 0; i < count; i++) {
        events[2 * i] = (event){ops[i].begun, 0, &ops[i]};
        events[2 * i + 1] = (event){ops[i].ended, 1, &ops[i]};
    }
    qsort(events, 2 * count, sizeof *events, by_time);
    return events;
}

/* The same for the history of one id. */
static const history_op *fault_of_id(search *search, const history_op *ops, size_t count) {
    event *events = events_of(ops, count);
    const history_op *fault = NULL;
    search->places = 0;
    search->now.count = 0;
    add_moment(&search->now, (moment){0});
    for (size_t i = 0; i < 2 * count && !fault; i++) {
        if (events[i].ends) {
            end_operation(search, place_of(search, events[i].op));
            if (!search->now.count) fault = events[i].op;
            continue;
        }
        ck_assert_uint_ne(~search->places, 0);
        const size_t place = (size_t)__builtin_ctzll(~search->places);
        search->running[place] = events[i].op;
        search->places |= (uint64_t)1 << place;
    }
    free(events);
    return fault;
}

static int by_id(const void *a, const void *b) {
    const history_op *left = a, *right = b;
    if (left->id != right->id) return left->id < right->id ? -1 : 1;
    return left->begun < right->begun ? -1 : left->begun > right->begun;
}

const history_op *history_fault(history_op *ops, size_t count) {
    static search search;
    const history_op *fault = NULL;
    qsort(ops, count, sizeof *ops, by_id);
    for (size_t first = 0, end; first < count && !fault; first = end) {
        for (end = first; end < count && ops[end].id == ops[first].id; end++)
            ;
        fault = fault_of_id(&search, ops + first, end - first);
    }
    return fault;
}

size_t history_missed(history_op *ops, size_t *count, size_t most) {
    size_t missed = 0;
    const history_op *fault;
    while (missed <= most && (fault = history_fault(ops, *count))) {
        /* A miss may show at a later operation. */
        size_t at = (size_t)(fault - ops);
        while (at && !(ops[at].kind == HISTORY_WALK && !ops[at].version))
            at--;
        memmove(ops + at, ops + at + 1, (--*count - at) * sizeof *ops);
        missed++;
    }
    return missed;
}

const char *history_text(const history_op *op, char *out, size_t size) {
    static const char *const names[] = {"add", "replace", "delete", "undelete", "read", "walk", "contains"};
    snprintf(out, size, "[%llu, %llu] %s id %u version %u%s", (unsigned long long)op->begun,
             (unsigned long long)op->ended, names[op->kind], op->id, op->version, op->refused ? ", refused" : "");
    return out;
}
