#include "trace.h"

#include "base/random.h"
#include "files.h"
#include "hnsw/graph/version.h"

#include <stdlib.h>

trace trace_new(size_t groups_room, size_t count_room) {
    trace t = {.groups_room = groups_room, .count_room = count_room};
    t.nodes = must_alloc(groups_room, sizeof *t.nodes);
    t.ends = must_alloc(groups_room, sizeof *t.ends);
    t.ids = must_alloc(count_room, sizeof *t.ids);
    return t;
}

void trace_free(trace *t) {
    free(t->nodes);
    free(t->ends);
    free(t->ids);
}

/* A kernel has no context of its own, so that what stands in for one finds the trace here. */
static struct {
    trace *into;
    const sl_index *index;
    const sl_kernels *kernels; /* the index's own */
    sl_kernels listening;      /* those, with a kernel that writes down what it found */
} recorder;

static size_t unvisited_recorded(sl_visited *visited, const uint32_t *links, size_t degree, size_t count,
                                 uint32_t *found) {
    size_t n = recorder.kernels->unvisited(visited, links, degree, count, found);
    trace *t = recorder.into;
    if (t->groups == t->groups_room || n > t->count_room - t->count) return n;
    for (size_t i = 0; i < n; i++)
        t->ids[t->count++] = found[i];
    t->nodes[t->groups] = (uint32_t)((size_t)(links - sl_links(&recorder.index->graph, 0)) / recorder.index->graph.m0);
    t->ends[t->groups++] = t->count;
    return n;
}

/* Makes searches see the index's kernels. */
static void publish(sl_index *index) {
    must(sl_version_reserve(index, 1), "version");
    sl_version_publish_now(index);
}

void trace_record(trace *t, sl_index *index) {
    recorder.into = t;
    recorder.index = index;
    recorder.kernels = index->graph.kernels;
    recorder.listening = *index->graph.kernels;
    recorder.listening.unvisited = unvisited_recorded;
    index->graph.kernels = &recorder.listening;
    publish(index);
}

void trace_stop(sl_index *index) {
    index->graph.kernels = recorder.kernels;
    publish(index);
}

trace trace_redrawn(const trace *from, size_t ids, size_t nodes) {
    trace t = trace_new(from->groups, from->count);
    t.groups = from->groups;
    t.count = from->count;
    for (size_t g = 0; g < t.groups; g++) {
        t.ends[g] = from->ends[g];
        t.nodes[g] = (uint32_t)(sl_random_at(1, g) % nodes);
    }
    for (size_t i = 0; i < t.count; i++)
        t.ids[i] = (uint32_t)(sl_random_at(2, i) % ids);
    return t;
}

double clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline size_t begin_of(const trace *t, size_t group) {
    return group ? t->ends[group - 1] : 0;
}

static inline void ask_for(const trace *t, const replay *how, size_t group) {
    const sl_graph *graph = &how->index->graph;
    for (size_t i = begin_of(t, group); i < t->ends[group]; i++)
        sl_prefetch(sl_walk_row(graph, t->ids[i]), sl_codec_of_walks(graph)->rows.pitch);
    if (how->links) sl_prefetch(sl_links(graph, t->nodes[group]), graph->m0 * sizeof(uint32_t));
}

double trace_replay(const trace *t, const replay *how, size_t first, size_t end) {
    const sl_graph *graph = &how->index->graph;
    sl_score_fn *score = graph->kernels->score[sl_codec_of_walks(graph)->codes];
    float out[2 * SL_MAX_M];
    volatile uint32_t sink;
    uint32_t sum = 0;
    double start = clock_ns(how->clock);
    for (size_t g = first; g < end && g < first + how->ahead; g++)
        ask_for(t, how, g);
    for (size_t g = first; g < end; g++) {
        if (g + how->ahead < end) ask_for(t, how, g + how->ahead);
        const uint32_t *links = sl_links(graph, t->nodes[g]);
        for (size_t i = 0; how->links && i < graph->m0; i++)
            sum += links[i];
        size_t begin = begin_of(t, g), n = t->ends[g] - begin;
        if (n) score(&sl_codec_of_walks(graph)->rows, how->query, t->ids + begin, n, 0, out);
    }
    double ns = clock_ns(how->clock) - start;
    sink = sum;
    (void)sink;
    return ns;
}
