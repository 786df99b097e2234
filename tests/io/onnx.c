/* ONNX files: what is written is read again; damaged and hostile ones are refused, in little
 * time and memory. */
#include "io/onnx/onnx.h"

#include "ok.h"
#include "records.h"
#include <sys/resource.h>
#include <time.h>

/* Fields of the format's messages. */
enum { OF_MODEL_GRAPH = 7, OF_MODEL_SET = 8 };
enum { OF_GRAPH_NODE = 1, OF_GRAPH_CONSTANT = 5, OF_GRAPH_INPUT = 11 };

static const char *model_path(void)
{
    return scratch_path("m.onnx");
}

static void put_number(struct bytes *to, int field, uint64_t value)
{
    put_varint(to, (uint64_t)field << 3);
    put_varint(to, value);
}

/* A file of version 8 whose graph has these bytes. */
static void write_model(const void *graph, size_t bytes)
{
    static struct bytes model;
    model.used = 0;
    put_number(&model, 1, 8);
    put_field(&model, OF_MODEL_SET, "\x10\x11", 2);
    FILE *file = fopen(model_path(), "wb");
    assert_non_null(file);
    put_varint(&model, OF_MODEL_GRAPH << 3 | 2);
    put_varint(&model, bytes);
    assert_int_equal(fwrite(model.data, 1, model.used, file), model.used);
    assert_int_equal(fwrite(graph, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void refused(enum lk_status code, const char *said)
{
    struct lk_onnx_file file = {0};
    assert_refused(lk_onnx_read(model_path(), &file), code, lk_error_text(), said);
    assert_null(file.memory);
    lk_error_clear();
}

/* --- whole files -------------------------------------------------------------------------- */

static void keeps_what_is_written(void **state)
{
    (void)state;
    static const float weights[] = {1.5f, -2, 0.25f, 8}, reals[] = {0.5f, 3};
    static const int64_t pads[] = {0, 1, -1, 2}, shape[] = {7};
    const struct lk_onnx_tensor constants[] = {
        {.name = "w",
         .type = LK_ONNX_FLOAT,
         .rank = 2,
         .dim = {2, 2},
         .count = 4,
         .data = weights},
        {.name = "s", .type = LK_ONNX_INT64, .rank = 1, .dim = {1}, .count = 1, .data = shape}};
    const struct lk_onnx_attribute attributes[] = {
        {.name = "pads", .kind = LK_ONNX_INTEGERS, .integers = pads, .count = 4},
        {.name = "many", .kind = LK_ONNX_REALS, .reals = reals, .count = 2},
        {.name = "alpha", .kind = LK_ONNX_REAL, .real = 0},
        {.name = "group", .kind = LK_ONNX_INTEGER, .integer = 3},
        {.name = "mode", .kind = LK_ONNX_TEXT, .text = "reflect"},
        {.name = "value", .kind = LK_ONNX_TENSOR, .tensor = &constants[0]}};
    const char *const inputs[] = {"x", "", "w"}, *const outputs[] = {"y"};
    const struct lk_onnx_node node = {"first", "Conv", "", inputs,    outputs,
                                      3,       1,      6,  attributes};
    const struct lk_onnx_port x = {"x", "n", LK_ONNX_FLOAT, 2, {-1, 5}},
                              y = {"y", NULL, LK_ONNX_FLOAT, 1, {4}};
    const struct lk_onnx_graph graph = {"g", "lockstep", 8,     17,        1,  2,
                                        1,   1,          &node, constants, &x, &y};
    struct lk_onnx_file file;
    ASSERT_OK(lk_onnx_write(model_path(), &graph));
    ASSERT_OK(lk_onnx_read(model_path(), &file));
    const struct lk_onnx_graph *g = &file.graph;
    assert_string_equal(g->name, "g");
    assert_int_equal(g->operators, 17);
    assert_int_equal(g->node_count, 1);
    const struct lk_onnx_node *n = g->nodes;
    assert_string_equal(n->op, "Conv");
    assert_string_equal(n->inputs[1], "");
    assert_int_equal(n->attribute_count, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(n->attributes[i].kind, attributes[i].kind);
    assert_memory_equal(n->attributes[0].integers, pads, sizeof pads);
    assert_memory_equal(n->attributes[1].reals, reals, sizeof reals);
    assert_int_equal(n->attributes[3].integer, 3);
    assert_string_equal(n->attributes[4].text, "reflect");
    assert_true(lk_onnx_real(n->attributes[5].tensor, 1) == -2);
    assert_memory_equal(g->constants[0].data, weights, sizeof weights);
    assert_int_equal(lk_onnx_integer(&g->constants[1], 0), 7);
    assert_int_equal(g->inputs[0].rank, 2);
    assert_int_equal(g->inputs[0].dim[0], -1);
    assert_int_equal(g->outputs[0].dim[0], 4);
    lk_onnx_clear(&file);
}

static void refuses_what_is_cut(void **state)
{
    (void)state;
    keeps_what_is_written(state);
    static uint8_t whole[4096];
    FILE *file = fopen(model_path(), "rb");
    const size_t bytes = fread(whole, 1, sizeof whole, file);
    fclose(file);
    for (size_t cut = 0; cut < bytes; cut++) {
        struct lk_onnx_file read = {0};
        scratch_put(model_path(), whole, cut);
        if (lk_onnx_read(model_path(), &read) == LK_OK) /* cut between two parts */
            lk_onnx_clear(&read);
        lk_error_clear();
    }
    scratch_put(model_path(), whole, bytes - 1);
    refused(LK_E_DATA, "no ONNX model");
    scratch_put(model_path(), "\x08\x08", 2);
    refused(LK_E_DATA, "no graph");
}

/* --- tensors ------------------------------------------------------------------------------ */

/* A graph of one constant with that shape, type, and field of data. */
static void write_tensor(const uint64_t *dims, int rank, int type, int field, const void *data,
                         size_t bytes)
{
    static struct bytes tensor, graph;
    tensor.used = graph.used = 0;
    for (int i = 0; i < rank; i++)
        put_number(&tensor, 1, dims[i]);
    put_number(&tensor, 2, (uint64_t)type);
    put_field(&tensor, 8, "w", 1);
    put_field(&tensor, field, data, bytes);
    put_field(&graph, OF_GRAPH_CONSTANT, tensor.data, tensor.used);
    write_model(graph.data, graph.used);
}

static void reads_narrow_numbers(void **state)
{
    (void)state;
    struct lk_onnx_file file;
    write_tensor((uint64_t[]){2}, 1, LK_ONNX_HALF, 5, "\x80\x78\x80\x80\x03", 5);
    ASSERT_OK(lk_onnx_read(model_path(), &file));
    assert_true(lk_onnx_real(&file.graph.constants[0], 0) == 1);
    assert_true(lk_onnx_real(&file.graph.constants[0], 1) == -2);
    lk_onnx_clear(&file);
    write_tensor((uint64_t[]){2}, 1, LK_ONNX_INT8, 9, "\xff\x05", 2);
    ASSERT_OK(lk_onnx_read(model_path(), &file));
    assert_int_equal(lk_onnx_integer(&file.graph.constants[0], 0), -1);
    assert_int_equal(lk_onnx_integer(&file.graph.constants[0], 1), 5);
    lk_onnx_clear(&file);
}

static void refuses_sizes_that_lie(void **state)
{
    (void)state;
    static const char data[16] = {0};
    write_tensor((uint64_t[]){5}, 1, LK_ONNX_FLOAT, 9, data, 16);
    refused(LK_E_DATA, "tensor 'w' has 16 bytes, its shape needs 20");
    write_tensor((uint64_t[]){3}, 1, LK_ONNX_FLOAT, 4, data, 16);
    refused(LK_E_DATA, "has 4 numbers, its shape needs 3");
    write_tensor((uint64_t[]){UINT64_C(1) << 62, 4}, 2, LK_ONNX_FLOAT, 9, data, 16);
    refused(LK_E_DATA, "more than 2^31 elements");
    write_tensor((uint64_t[]){(uint64_t)-1}, 1, LK_ONNX_FLOAT, 9, data, 16);
    refused(LK_E_DATA, "negative length");
    write_tensor((uint64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, 9, LK_ONNX_FLOAT, 9, data, 4);
    refused(LK_E_UNSUPPORTED, "more than 8 axes");
    write_tensor((uint64_t[]){4}, 1, 8, 9, data, 16);
    refused(LK_E_UNSUPPORTED, "elements of type 8");
}

/* A constant of four floats in the file `location`, at the given place. */
static void write_outside(const char *location, const char *offset, const char *length)
{
    static struct bytes tensor, graph, pair;
    const char *const pairs[][2] = {
        {"location", location}, {"offset", offset}, {"length", length}};
    tensor.used = graph.used = 0;
    put_number(&tensor, 1, 4);
    put_number(&tensor, 2, LK_ONNX_FLOAT);
    for (int i = 0; i < 3; i++) {
        pair.used = 0;
        put_field(&pair, 1, pairs[i][0], strlen(pairs[i][0]));
        put_field(&pair, 2, pairs[i][1], strlen(pairs[i][1]));
        put_field(&tensor, 13, pair.data, pair.used);
    }
    put_number(&tensor, 14, 1);
    put_field(&graph, OF_GRAPH_CONSTANT, tensor.data, tensor.used);
    write_model(graph.data, graph.used);
}

static void reads_data_of_its_folder_alone(void **state)
{
    (void)state;
    static const float numbers[] = {9, 1, 2, 3, 4};
    struct lk_onnx_file file;
    scratch_put(scratch_path("numbers"), numbers, sizeof numbers);
    write_outside("numbers", "4", "16");
    ASSERT_OK(lk_onnx_read(model_path(), &file));
    assert_memory_equal(file.graph.constants[0].data, numbers + 1, 16);
    lk_onnx_clear(&file);
    write_outside("numbers", "8", "16");
    refused(LK_E_DATA, "bytes 8 to 24; it has 20");
    write_outside("numbers", "18446744073709551612", "16");
    refused(LK_E_DATA, "no number");
    write_outside("numbers", "0", "20");
    refused(LK_E_DATA, "another shape");
    write_outside("../numbers", "0", "16");
    refused(LK_E_DATA, "leads up");
    write_outside("a/../../numbers", "0", "16");
    refused(LK_E_DATA, "leads up");
    write_outside("/etc/passwd", "0", "16");
    refused(LK_E_DATA, "begins at the root");
    write_outside("absent", "0", "16");
    refused(LK_E_IO, "cannot find");
    assert_int_equal(symlink("/etc/passwd", scratch_path("link")), 0);
    write_outside("link", "0", "16");
    refused(LK_E_DATA, "leads out of the model's folder");
    assert_int_equal(symlink("/etc", scratch_path("folder")), 0);
    write_outside("folder/passwd", "0", "16");
    refused(LK_E_DATA, "leads out of the model's folder");
}

/* --- hostile files ------------------------------------------------------------------------ */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static long peak_kilobytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* A million empty nodes, two bytes each, and as many empty attributes of one node. */
static void bounds_time_and_memory(void **state)
{
    (void)state;
    enum { BYTES = 2 << 20 };
    static uint8_t many[BYTES + 16];
    const long before = peak_kilobytes();
    for (int nested = 0; nested < 2; nested++) {
        size_t first = 0;
        if (nested) { /* the length of a node of that many bytes, in four */
            const uint8_t head[] = {0x0a, 0x80 | (BYTES & 127), 0x80 | (BYTES >> 7 & 127),
                                    0x80 | (BYTES >> 14 & 127), BYTES >> 21};
            memcpy(many, head, first = sizeof head);
        }
        for (size_t i = 0; i < BYTES; i += 2) {
            many[first + i] = nested ? 0x2a : 0x0a;
            many[first + i + 1] = 0;
        }
        write_model(many, first + BYTES);
        const double began = seconds();
        refused(nested ? LK_E_DATA : LK_E_UNSUPPORTED,
                nested ? "absurdly many parts" : "1048576 nodes and 0 constants");
        assert_true(seconds() - began < 1); /* a tenth of that where nothing else runs */
        assert_true(nested || peak_kilobytes() - before < 8 << 10); /* none for the nodes */
    }
    assert_true(peak_kilobytes() - before < 64 << 10);
}

/* --- bodies of loops ---------------------------------------------------------------------- */

enum { MANY_PARTS = 200000 };

/* Adds a Loop with a body of so many bytes, which come next. */
static void put_loop_head(struct bytes *graph, size_t bytes)
{
    static struct bytes attribute, node;
    attribute.used = node.used = 0;
    put_field(&attribute, 1, "body", 4);
    put_varint(&attribute, 6 << 3 | 2);
    put_varint(&attribute, bytes);
    put_field(&node, 4, "Loop", 4);
    put_varint(&node, 5 << 3 | 2);
    put_varint(&node, attribute.used + bytes);
    put_varint(graph, OF_GRAPH_NODE << 3 | 2);
    put_varint(graph, node.used + attribute.used + bytes);
    put(graph, node.data, node.used);
    put(graph, attribute.data, attribute.used);
}

static void put_loop(struct bytes *graph, const void *body, size_t bytes)
{
    put_loop_head(graph, bytes);
    put(graph, body, bytes);
}

/* The body that was read of a node; NULL: none. */
static const struct lk_onnx_graph *body_of(const struct lk_onnx_graph *graph, int node)
{
    assert_true(node < graph->node_count);
    assert_string_equal(graph->nodes[node].op, "Loop");
    assert_int_equal(graph->nodes[node].attribute_count, 1);
    return graph->nodes[node].attributes[0].graph;
}

/* Of a body with so many empty parts: whether it is read. */
static bool reads_body(int field, int parts)
{
    static struct bytes head;
    static uint8_t graph[MANY_PARTS * 2 + 64];
    struct lk_onnx_file file;
    head.used = 0;
    put_loop_head(&head, (size_t)parts * 2);
    memcpy(graph, head.data, head.used);
    for (int i = 0; i < parts; i++) {
        graph[head.used + 2 * i] = (uint8_t)(field << 3 | 2);
        graph[head.used + 2 * i + 1] = 0;
    }
    write_model(graph, head.used + 2 * parts);
    ASSERT_OK(lk_onnx_read(model_path(), &file));
    const struct lk_onnx_graph *read = body_of(&file.graph, 0);
    assert_true(!read || field != OF_GRAPH_NODE || read->node_count == parts);
    const bool is_read = read != NULL;
    lk_onnx_clear(&file);
    return is_read;
}

static void leaves_large_bodies_unread(void **state)
{
    (void)state;
    static const int fields[] = {OF_GRAPH_NODE, OF_GRAPH_INPUT};
    for (int i = 0; i < 2; i++) {
        assert_true(reads_body(fields[i], 256));
        assert_false(reads_body(fields[i], 257));
    }
    assert_false(reads_body(OF_GRAPH_CONSTANT, 257));
    const long before = peak_kilobytes();
    const double began = seconds();
    assert_false(reads_body(OF_GRAPH_NODE, MANY_PARTS)); /* read, they would take 30 MB */
    assert_true(seconds() - began < 1);
    assert_true(peak_kilobytes() - before < 8 << 10);
}

static void reads_so_many_bodies_alone(void **state)
{
    (void)state;
    enum { READ = 64 };
    static struct bytes graph;
    struct lk_onnx_file file;
    graph.used = 0;
    for (int i = 0; i <= READ; i++)
        put_loop(&graph, "\x0a\x00", 2);
    write_model(graph.data, graph.used);
    ASSERT_OK(lk_onnx_read(model_path(), &file));
    for (int i = 0; i <= READ; i++)
        assert_true((body_of(&file.graph, i) != NULL) == (i < READ));
    lk_onnx_clear(&file);
}

static void reads_no_body_inside_of_another(void **state)
{
    (void)state;
    static struct bytes inner, outer;
    struct lk_onnx_file file;
    inner.used = 0;
    put_field(&inner, OF_GRAPH_NODE, "", 0);
    for (int i = 0; i < 3; i++) {
        outer.used = 0;
        put_loop(&outer, inner.data, inner.used);
        inner = outer;
    }
    write_model(outer.data, outer.used);
    ASSERT_OK(lk_onnx_read(model_path(), &file));
    const struct lk_onnx_graph *body = body_of(&file.graph, 0);
    assert_non_null(body);
    assert_null(body_of(body, 0));
    lk_onnx_clear(&file);
}

/* Thousands of subgraphs, each in an attribute of the one node of the other: skipped unread. */
static void survives_deep_nesting(void **state)
{
    (void)state;
    static struct bytes deep, outer;
    deep.used = 0;
    put_field(&deep, OF_GRAPH_NODE, "", 0);
    for (int i = 0; i < 10000 && deep.used < 60000; i++) {
        outer.used = 0;
        put_field(&outer, 6, deep.data, deep.used); /* an attribute's graph */
        deep.used = 0;
        put_field(&deep, 5, outer.data, outer.used); /* a node's attribute */
        outer.used = 0;
        put_field(&outer, OF_GRAPH_NODE, deep.data, deep.used);
        deep = outer;
    }
    write_model(deep.data, deep.used);
    struct lk_onnx_file file;
    ASSERT_OK(lk_onnx_read(model_path(), &file));
    assert_int_equal(file.graph.node_count, 1);
    assert_int_equal(file.graph.nodes[0].attributes[0].kind, LK_ONNX_OTHER);
    lk_onnx_clear(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_is_written),
        cmocka_unit_test(refuses_what_is_cut),
        cmocka_unit_test(reads_narrow_numbers),
        cmocka_unit_test(refuses_sizes_that_lie),
        cmocka_unit_test(reads_data_of_its_folder_alone),
        cmocka_unit_test(bounds_time_and_memory),
        cmocka_unit_test(leaves_large_bodies_unread),
        cmocka_unit_test(reads_so_many_bodies_alone),
        cmocka_unit_test(reads_no_body_inside_of_another),
        cmocka_unit_test(survives_deep_nesting),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
