"""Model files with embedding tables in codes, written from docs/FORMAT.md alone."""

import math
import struct

ALIGN, SLACK, HEADER = 4096, 64, 4096
EMBEDDINGS, TABLE_CODES, TABLE_ROWS = 19, 32, 33
TYPES = {"f32": 0, "i8": 1, "i4": 2}
# Per type: the largest code of an element, and of a scale or an offset.
TOPS = {"i8": (255, 65535), "i4": (15, 255)}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def sections_of(data):
    """(kind, flags) and bytes of each section."""
    count = struct.unpack_from("<I", data, 20)[0]
    found = []
    for i in range(count):
        kind, flags, offset, size = struct.unpack_from("<IIQQ", data, 512 + 32 * i)
        found.append((kind, flags, data[offset : offset + size]))
    return found


def file_of(header, sections):
    out, table = bytearray(header[:512]) + bytearray(HEADER - 512), []
    for kind, flags, content in sections:
        out += bytes(-len(out) % ALIGN)
        table.append(struct.pack("<IIQQII", kind, flags, len(out), len(content), crc32c(content), 0))
        out += content + bytes(SLACK)
    struct.pack_into("<I", out, 20, len(table))
    struct.pack_into("<Q", out, 24, len(out))
    out[512 : 512 + 32 * len(table)] = b"".join(table)
    struct.pack_into("<I", out, 4092, crc32c(out[:4092]))
    return bytes(out)


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def coded(rows, kind):
    """The record and the rows of a table, in codes of this type."""
    code_top, head_top = TOPS[kind]
    lows = [min(row) for row in rows]
    offset, offset_step = min(lows), single((max(lows) - min(lows)) / head_top)
    widest = max(max(row) - min(row) for row in rows) + offset_step
    scale_step = single(widest / code_top / head_top * 1.000001)
    out = b""
    for row in rows:
        at = int((min(row) - offset) / offset_step) if offset_step else 0
        begin = offset + offset_step * at
        scale = min(math.ceil((max(row) - begin) / code_top / scale_step), head_top) if scale_step else 0
        step = scale_step * scale
        codes = [min(max(round((x - begin) / step), 0), code_top) if step else 0 for x in row]
        if kind == "i8":
            out += struct.pack("<HH", scale, at) + bytes(codes)
        else:
            codes += [0] * (len(codes) % 2)
            out += bytes([scale, at]) + bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2]))
    return struct.pack("<Ifff", TYPES[kind], scale_step, offset, offset_step), out


def code_tables(data, shapes, types):
    """The bytes of a model file with each embedding table in the type it is given.

    shapes: (size, dim) of each table, in the file's order.
    """
    sections = sections_of(data)
    floats = next(content for kind, _, content in sections if kind == EMBEDDINGS)
    at, kept, records, rows = 0, b"", b"", b""
    for (size, dim), kind in zip(shapes, types, strict=True):
        numbers = struct.unpack_from(f"<{size * dim}f", floats, at)
        end = at + -(-4 * size * dim // 64) * 64
        if kind == "f32":
            kept, records = kept + floats[at:end], records + bytes(16)
        else:
            record, codes = coded([numbers[i : i + dim] for i in range(0, len(numbers), dim)], kind)
            records, rows = records + record, rows + codes
        at = end
    others = [section for section in sections if section[0] != EMBEDDINGS]
    new = [(EMBEDDINGS, 1, kept)] if kept else []
    return file_of(data, [*others, *new, (TABLE_CODES, 1, records), (TABLE_ROWS, 1, rows)])
