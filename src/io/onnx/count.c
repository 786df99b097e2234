/* Counts the nodes of a model, and of a loop's body, before protobuf-c makes messages of them:
 * a file of a few bytes for each of a million is refused before memory is taken for them. */
#include "io/onnx/memory.h"

#include "base/fail.h"

enum { OF_MODEL_GRAPH = 7 };
enum { OF_GRAPH_NODE = 1, OF_GRAPH_CONSTANT = 5, OF_GRAPH_INPUT = 11, OF_GRAPH_OUTPUT = 12 };
enum { NUMBER = 0, EIGHT_BYTES = 1, PART = 2, FOUR_BYTES = 5 }; /* how a field lies */

struct span {
    const uint8_t *at, *end;
};

/* Bytes of which an empty one may lie nowhere. */
static struct span span_of(const void *data, size_t bytes)
{
    const uint8_t *at = data;
    return (struct span){at, bytes > 0 ? at + bytes : at};
}

struct counts {
    int64_t nodes, constants, ports;
};

static bool take_number(struct span *s, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; shift < 64 && s->at < s->end; shift += 7) {
        const uint8_t byte = *s->at++;
        *number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* The next field, and what it has where it is a part. false: there is none, or it is cut off,
 * which protobuf-c will say. */
static bool take_field(struct span *s, uint64_t *field, struct span *part)
{
    uint64_t tag, number = 0;
    if (!take_number(s, &tag))
        return false;
    const int kind = (int)(tag & 7);
    if ((kind == NUMBER || kind == PART) && !take_number(s, &number))
        return false;
    const uint64_t bytes = kind == PART          ? number
                           : kind == EIGHT_BYTES ? 8
                           : kind == FOUR_BYTES  ? 4
                                                 : 0;
    if ((kind > PART && kind != FOUR_BYTES) || bytes > (size_t)(s->end - s->at))
        return false;
    *field = tag >> 3;
    *part = (struct span){s->at, s->at + (kind == PART ? bytes : 0)};
    s->at += bytes;
    return true;
}

static void count_parts(struct span graph, struct counts *counts)
{
    struct span part;
    uint64_t field;
    while (take_field(&graph, &field, &part)) {
        counts->nodes += field == OF_GRAPH_NODE;
        counts->constants += field == OF_GRAPH_CONSTANT;
        counts->ports += field == OF_GRAPH_INPUT || field == OF_GRAPH_OUTPUT;
    }
}

enum lk_status lk_onnx_check_counts(const char *path, const void *data, size_t bytes)
{
    struct span model = span_of(data, bytes), part;
    uint64_t field;
    struct counts counts = {0};
    while (take_field(&model, &field, &part))
        if (field == OF_MODEL_GRAPH)
            count_parts(part, &counts);
    if (counts.nodes <= LK_ONNX_MOST_NODES && counts.constants <= LK_ONNX_MOST_NODES)
        return LK_OK;
    return lk_fail(LK_E_UNSUPPORTED, "%s: %lld nodes and %lld constants, expected at most %d",
                   path, (long long)counts.nodes, (long long)counts.constants,
                   LK_ONNX_MOST_NODES);
}

bool lk_onnx_is_small(const void *body, size_t bytes)
{
    struct counts counts = {0};
    count_parts(span_of(body, bytes), &counts);
    return counts.nodes <= LK_ONNX_MOST_BODY_PARTS &&
           counts.constants <= LK_ONNX_MOST_BODY_PARTS &&
           counts.ports <= LK_ONNX_MOST_BODY_PARTS;
}
