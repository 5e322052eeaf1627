"""The time of a training's step on many ranks, from measured times of computing and the times of sums.

It follows cluster/train/reducer.c and ranker/train/train_reduce.c: a courier runs one sum after the other, a bucket
begins once it is complete, and the sparse gradients follow the backward pass. Bytes and seconds throughout."""

FLOAT, ROW_NUMBER = 4, 4
RECORD = 32  # bytes of a rank's record, before the biases and the counts of touched rows


class Curve:
    """Times of a sum by bytes: straight lines between the sizes that were simulated."""

    def __init__(self, sizes, seconds):
        self.points = sorted(zip(sizes, seconds))

    def __call__(self, size):
        points = self.points
        if len(points) == 1:
            return points[0][1]
        at = next((i for i, (bytes_, _) in enumerate(points) if bytes_ >= size), len(points) - 1)
        (low, first), (high, second) = points[max(at - 1, 0)], points[max(at, 1)]
        return max(0.0, first + (second - first) * (size - low) / (high - low))


def buckets(layers, bucket, overlap=True):
    """(layer whose gradient completes it, floats) of each sum of dense gradients, in their order. `layers`: floats of
    each layer, the first one first. Without overlap all are complete with layer 0."""
    first = [sum(layers[:i]) for i in range(len(layers))]
    left, found = sum(layers), []
    for layer in reversed(range(len(layers))):
        if layer and (not overlap or left - first[layer] < bucket):
            continue
        while left > first[layer]:
            size = min(bucket, left - first[layer])
            found.append((layer, size))
            left -= size
    return found


class Step:
    """What one rank computes, and the shape of its gradients."""

    def __init__(self, shape, times, faster=1):
        self.layers, self.tables, self.bucket = shape["layers"], shape["tables"], shape["bucket"]
        self.touched = times["touched"]
        # The program gives the last layer first.
        self.ready = [at / faster for at in times["layers_s"]][::-1]
        self.collected, self.alone = times["collected_s"] / faster, times["end_s"] / faster
        self.tables_s, self.sum_s = times["table_s"] / faster, times["sum_s"] / faster

    def sparse(self, ranks):
        """(bytes of the rows of all ranks, bytes of each table that is summed as a whole)."""
        rows, dense = 0, []
        for (size, width), touched in zip(self.tables, self.touched):
            as_rows, table = ranks * touched * (ROW_NUMBER + width * FLOAT), size * width * FLOAT
            if as_rows <= 2 * table:
                rows += as_rows
            else:
                dense.append(table)
        return rows, dense

    def sparse_seconds(self, ranks, curve, bandwidth, apart=False):
        """Records, rows and whole tables. A gather takes a small sum's time and its bytes'. `apart`: a sum for each
        table, which nobody does."""
        rows, dense = self.sparse(ranks)
        record = RECORD + FLOAT + 8 * len(self.tables)
        seconds = curve(0) + (ranks - 1) * record / bandwidth
        if rows:
            seconds += curve(0) + rows * (ranks - 1) / ranks / bandwidth
        sums = dense if apart else [sum(dense)] * bool(dense)
        return seconds + sum(curve(size) for size in sums)

    def seconds(self, ranks, curve, bandwidth, bucket=None, overlap=True, apart=False):
        """A step on this many ranks. Sums share the wire, so none runs beside another."""
        free = 0.0
        for layer, floats in buckets(self.layers, bucket or self.bucket, overlap):
            ready = self.ready[layer] if overlap else self.collected
            free = max(free, ready) + curve(floats * FLOAT)
        free = max(free, self.collected) + self.sparse_seconds(ranks, curve, bandwidth, apart)
        # The rank has one core, so its additions come on top.
        additions = self.sum_s + (self.tables_s if self.sparse(ranks)[1] else 0)
        return free + additions + self.alone - self.collected

    def efficiency(self, *arguments, **options):
        return self.alone / self.seconds(*arguments, **options)
