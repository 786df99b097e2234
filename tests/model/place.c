/* Dividing a model among devices: `device:` in texts, the words of `--place`, what auto
 * chooses, what every device then holds; what is refused, by name. */
#include "model/place/place.h"
#include "model/rig.h"

#include <lockstep/place.h>
#include <math.h>
#include <stdlib.h>

#define TOP "input: [8, 8, 2]\nlayers:\n"
#define CONV "conv2d: {filters: 2, kernel: 1}"
#define END "- flatten\n- {name: d, dense: {units: 3}}\n- {name: s, softmax: }\n"

/* --- words in texts ------------------------------------------------------------------------
 */

/* "name device, ..." of all nodes that have one. */
static const char *devices_of(struct lk_model *model)
{
    static char text[1024];
    size_t used = 0;
    const struct lk_node *node;
    text[0] = '\0';
    for (int i = 0; (node = lk_graph_node(lk_model_graph(model), i)) != NULL; i++)
        if (lk_node_info(node).device)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "",
                                 lk_node_info(node).name, lk_node_info(node).device);
    return text;
}

static void texts_name_devices(void **state)
{
    (void)state;
    static const struct {
        const char *text, *devices;
    } cases[] = {
        {TOP "- {" CONV "}\n" END, ""},
        {TOP "- {device: a, conv2d: {filters: 2, kernel: 1, activation: tanh}}\n" END,
         "conv2d_1 a, tanh_1 a"},
        /* blocks: all of their entries, but those that say another one */
        {TOP "- {name: x, device: a, two: }\n- {name: y, two: }\n" END
             "blocks:\n  two:\n    layers:\n    - {name: $name_1, " CONV "}\n"
             "    - {name: $name_2, device: b-2, " CONV "}\n"
             "    - {name: $name_3, one: }\n"
             "  one: {layers: [{name: $name, relu: }]}\n",
         "x_1 a, x_2 b-2, x_3 a, y_2 b-2"},
        {TOP "- {name: c$number, device: d_$number, " CONV ", repeat: 2}\n" END,
         "c1 d_1, c2 d_2"},
        {TOP "- {name: x, two: {where: 7}}\n" END
             "blocks: {two: {parameters: {where: }, layers: [{device: $where, relu: }]}}\n",
         "relu_1 7"},
        {"input: {words: {shape: [4, 3]}}\nlayers:\n- {name: r, device: a, gru: {units: 2, "
         "bidirectional: sum}}\n- {name: d, dense: {units: 3}}\n- softmax\n",
         "r_forward a, r_backward a, r a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_model *model = read_model(cases[i].text);
        assert_string_equal(devices_of(model), cases[i].devices);
        lk_model_destroy(model);
    }
}

static void refuses_odd_devices(void **state)
{
    (void)state;
    static const struct {
        const char *device, *said;
    } cases[] = {
        {"a b", "m.yaml:3: device: a word of at most 40 letters, digits, '_' and '-'"},
        {"a=0", "expected, found 'a=0'"},
        {"'a,b'", "expected, found 'a,b'"},
        {"''", "expected, found ''"},
        {"\xc3\xa9", "m.yaml:3: device: a word of"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "m.yaml:3: device: a word of"},
        {"[a]", "expected, found '[a]'"},
        {"{a: 0}", "m.yaml:3: a number or a word expected, found a map"},
        {"", "m.yaml:3: a number or a word expected, found nothing"},
        {"$where", "m.yaml:3: unknown word '$where'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        struct lk_model *model = NULL;
        snprintf(text, sizeof text, TOP "- {device: %s, " CONV "}\n" END, cases[i].device);
        assert_int_equal(lk_model_read(text, strlen(text), "m.yaml", &model), LK_E_MODEL);
        if (!strstr(lk_error_text(), cases[i].said))
            fail_msg("'%s' gave '%s'", cases[i].device, lk_error_text());
        lk_error_clear();
    }
}

/* A run may go on among other devices. */
static void devices_change_no_model(void **state)
{
    (void)state;
    bool is_same = false;
    struct lk_model *model = read_model(TOP "- {device: a, " CONV "}\n" END);
    assert_int_equal(lk_model_compare(model, TOP "- {" CONV "}\n" END, &is_same), LK_OK);
    assert_true(is_same);
    assert_non_null(strstr(lk_model_text(model), "device: a"));
    lk_model_destroy(model);
}

/* --- words of --place ----------------------------------------------------------------------
 */

static const char marked[] =
    TOP "- {name: x, device: a, two: }\n- {name: y, two: }\n"
        "- {name: z, device: b, conv2d: {filters: 2, kernel: 1, activation: tanh}}\n" END
        "blocks:\n  two:\n    layers:\n    - {name: $name_1, " CONV "}\n"
        "    - {name: $name_2, abs: }\n"
        "    - {name: $name_3, when: no, relu: }\n";
static const char plain[] =
    TOP "- {name: x, two: }\n- {name: y, two: }\n"
        "- {name: z, conv2d: {filters: 2, kernel: 1, activation: tanh}}\n"
        "- {name: gone, when: no, relu: }\n" END
        "blocks:\n  two:\n    layers:\n    - {name: $name_1, " CONV "}\n"
        "    - {name: $name_2, abs: }\n";

/* One of two entries of a name is there, before or behind the other. */
static const char either[] =
    TOP "- {name: e, " CONV "}\n- {name: e, when: no, " CONV "}\n- {name: t, abs: }\n"
        "- {name: f, when: no, " CONV "}\n- {name: f, " CONV "}\n" END;

/* The places of x_1 x_2 y_1 y_2 z tanh_1 flatten_1 d s, the loss behind them. */
static void words_place_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
        int devices;
        const char *places;
    } cases[] = {
        {marked, NULL, 2, "000011111 1"},
        {marked, "", 2, "000011111 1"},
        {marked, "", 1, "000000000 0"}, /* as if the text named none */
        {marked, "a=1,b=0", 2, "111100000 0"},
        {marked, "a=0,b=1,d=2", 3, "000011122 2"},
        {marked, "d=2,b=1,a=0", 3, "000011122 2"},
        {marked, "a=0,b=1,y=1,y_2=0", 2, "001011111 1"},
        {marked, "a=0,b=0", 1, "000000000 0"},
        {plain, "y=1", 2, "001111111 1"},
        {plain, "y=1,z=0,d=1", 2, "001100011 1"},
        {plain, "x=1,z=0", 2, "111100000 0"},
        {plain, "tanh_1=1", 2, "000001111 1"},
        {plain, "s=2,y_1=1", 3, "001111112 2"},
        {plain, "auto", 1, "000000000 0"},
        {either, "e=0,t=1", 2, "011111 1"},
        {either, "e=0,f=1", 2, "001111 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_model *model = read_model(cases[i].text);
        struct lk_node *loss = NULL, *labels = NULL;
        char places[32] = "";
        size_t used = 0;
        assert_int_equal(lk_model_add_loss(model, &labels, &loss), LK_OK);
        if (lk_model_place(model, cases[i].words, cases[i].devices, NULL) != LK_OK)
            fail_msg("'%s': %s", cases[i].words, lk_error_text());
        for (int n = 1; lk_graph_node(lk_model_graph(model), n) != labels; n++)
            used +=
                (size_t)snprintf(places + used, sizeof places - used, "%d",
                                 lk_node_info(lk_graph_node(lk_model_graph(model), n)).place);
        snprintf(places + used, sizeof places - used, " %d", lk_node_info(loss).place);
        if (strcmp(places, cases[i].places) != 0)
            fail_msg("'%s' gave %s, expected %s", cases[i].words, places, cases[i].places);
        lk_model_destroy(model);
    }
}

static void refuses_words(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
        int devices;
        const char *said;
    } cases[] = {
        {marked, "", 3,
         "model 'm' names 2 devices (a, b), the group has 3: say which is which"},
        {marked, "a=0", 2, "'a=0' does not say where 'b' is, a device that the text"},
        {marked, "a=0,b=2", 2, "place: 'b=2': the group has 2 devices, counted from 0"},
        {marked, "a=0,b=1", 1, "place: 'b=1': the group has 1 device, counted from 0"},
        {marked, "a=0,b=0", 2, "device 1 of a group of 2 has nothing to compute of model 'm'"},
        {marked, "a=0,b=1,a=1", 2, "'a' stands in 'a=0,b=1,a=1' twice"},
        {plain, "zz=1", 2, "names no device and has no entry 'zz'; did you mean 'z'?"},
        {plain, "encoder=1", 2, "names no device and has no entry 'encoder'"},
        {plain, "image=1", 2, "'image' is an input: every device gets those that it reads"},
        {plain, "gone=1", 2, "'gone' is not there: its 'when' is false"},
        {plain, "", 2, "nothing says which of 2 devices computes what of model 'm'"},
        {plain, "auto", 2, "nothing says which of 2 devices computes what of model 'm'"},
        {plain, "z", 2, "'z' is not NAME=NUMBER, as in encoder=0,decoder=1; 'auto'"},
        {plain, "auto,z=0", 2, "'auto' is not NAME=NUMBER"},
        {plain, "z=", 2, "'z=' is not NAME=NUMBER"},
        {plain, "=1", 2, "'=1' is not NAME=NUMBER"},
        {plain, "z=-1", 2, "'z=-1' is not NAME=NUMBER"},
        {plain, "z=1x", 2, "'z=1x' is not NAME=NUMBER"},
        {plain, "z= 1", 2, "'z= 1' is not NAME=NUMBER"},
        {plain, "z=1,,y=0", 2, "'' is not NAME=NUMBER"},
        {plain, "y=1 z=0", 2, "'y=1 z=0' is not NAME=NUMBER"},
        {plain, "z=99999999999999999999", 2, "the group has 2 devices, counted from 0"},
        {plain, "flatten_1=1", 2, NULL}, /* a view, but what is behind it computes */
        {plain, "auto", 0, "place: a group of 0 devices: 1 to 16"},
        {plain, "auto", 17, "place: a group of 17 devices: 1 to 16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_model *model = read_model(cases[i].text);
        const enum lk_status status =
            lk_model_place(model, cases[i].words, cases[i].devices, NULL);
        assert_int_equal(status, cases[i].said ? LK_E_ARGUMENT : LK_OK);
        if (cases[i].said && !strstr(lk_error_text(), cases[i].said))
            fail_msg("'%s' gave '%s'", cases[i].words, lk_error_text());
        lk_error_clear();
        lk_model_destroy(model);
    }
}

/* --- on devices ----------------------------------------------------------------------------
 */

static struct lk_device *open_device(size_t limit)
{
    struct lk_device *device = NULL;
    if (lk_device_open("cpu", 0, &device) != LK_OK)
        fail_msg("%s", lk_error_text());
    if (limit)
        lk_device_limit_memory(device, limit);
    return device;
}

static enum lk_status divide(struct lk_model *model, const char *place,
                             struct lk_device *device, int count, int64_t batch,
                             struct lk_division *division)
{
    struct lk_device *devices[16];
    for (int i = 0; i < count; i++)
        devices[i] = device;
    const struct lk_division_options options = {.place = place,
                                                .devices = devices,
                                                .device_count = count,
                                                .batch = batch,
                                                .use = LK_MEMORY_TRAINING};
    return lk_model_divide(model, &options, division);
}

static int place_of(struct lk_model *model, const char *name)
{
    return lk_node_info(lk_graph_find(lk_model_graph(model), name)).place;
}

/* What the graph refuses is told by the names of the text. */
static void refuses_circles(void **state)
{
    (void)state;
    struct lk_device *device = open_device(0);
    struct lk_division division;
    struct lk_model *model = read_model(plain);
    assert_int_equal(divide(model, "y=1,z=0,d=1", device, 2, 32, &division), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "devices 0 and 1 of a group wait for each other: "
                                            "'y_1' on 1 reads 'x_2' on 0"));
    lk_error_clear();
    lk_model_destroy(model);
    model = read_model(TOP "- {name: c, " CONV "}\n- {name: r, device: b, relu: }\n" END);
    assert_int_equal(divide(model, "b=1", device, 2, 32, &division), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "'c' and 'r' are computed as one"));
    lk_error_clear();
    lk_model_destroy(model);
    model = read_model(/* `side` is on 0 since it reads an input, `both` behind it */
                       "input: {u: [4], v: [4]}\nlayers:\n- {name: left, from: u, dense: "
                       "{units: 4}}\n"
                       "- {name: right, dense: {units: 4}}\n- {name: side, from: v, dense: "
                       "{units: 4}}\n"
                       "- {name: both, from: [side, right], add: }\n- {name: last, dense: "
                       "{units: 3}}\n"
                       "- softmax\n");
    assert_int_equal(divide(model, "left=0,right=1", device, 2, 32, &division), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "; 'side' names no device, so it is on 0"));
    lk_error_clear();
    assert_int_equal(divide(model, "left=0,right=1,side=0", device, 2, 32, &division),
                     LK_E_ARGUMENT);
    assert_null(strstr(lk_error_text(), "names no device"));
    lk_error_clear();
    assert_int_equal(divide(model, "left=0,right=1,side=1", device, 2, 32, &division), LK_OK);
    lk_model_destroy(model);
    lk_device_close(device);
}

/* The sums over the places are those of one device; a value crosses with as many bytes as it
 * has. */
static void tells_what_each_holds(void **state)
{
    (void)state;
    struct lk_device *device = open_device(0);
    struct lk_division one, two;
    struct lk_model *model = read_model(plain);
    assert_int_equal(divide(model, "", device, 1, 32, &one), LK_OK);
    assert_int_equal(one.place_count, 1);
    assert_int_equal(one.crossing_count, 0);
    assert_float_equal(one.places[0].work, 1, 1e-9);
    assert_int_equal(one.places[0].parameters, 3 * (2 * 2 + 2) + 8 * 8 * 2 * 3 + 3);
    assert_int_equal(divide(model, "y=1", device, 2, 32, &two), LK_OK);
    assert_int_equal(two.place_count, 2);
    assert_int_equal(two.places[0].parameters, 2 * 2 + 2);
    assert_int_equal(two.places[0].parameters + two.places[1].parameters,
                     one.places[0].parameters);
    assert_float_equal(two.places[0].work + two.places[1].work, 1, 1e-9);
    assert_true(two.places[0].work < 0.5);
    assert_true(two.places[0].fits && two.places[1].fits);
    assert_true(two.places[0].memory.weights + two.places[1].memory.weights ==
                one.places[0].memory.weights);
    assert_int_equal(two.crossing_count, 1);
    assert_string_equal(two.crossings[0].node, "x_2");
    assert_int_equal(two.crossings[0].from, 0);
    assert_int_equal(two.crossings[0].to, 1);
    assert_int_equal(two.crossings[0].forward, 8 * 8 * 2 * sizeof(float));
    assert_int_equal(two.crossings[0].backward, 8 * 8 * 2 * sizeof(float));
    assert_false(two.crossings[0].is_weights);
    lk_model_destroy(model);
    lk_device_close(device);
}

/* A million weights in a small batch take longer than twice as many operations: they are read,
 * and so are their gradients. */
static void weights_are_work(void **state)
{
    (void)state;
    struct lk_device *device = open_device(0);
    struct lk_division division;
    struct lk_model *model = read_model(
        "input: [32, 32, 16]\nlayers:\n- conv2d: {filters: 16, kernel: 3, padding: same}\n"
        "- flatten\n- {name: wide, dense: {units: 64}}\n- dense: {units: 3}\n- softmax\n");
    assert_int_equal(divide(model, "wide=1", device, 2, 8, &division), LK_OK);
    const double of_conv = lk_node_info(lk_graph_node(lk_model_graph(model), 1)).flops;
    assert_true(of_conv > 2 * lk_node_info(lk_graph_find(lk_model_graph(model), "wide")).flops);
    assert_true(division.places[1].work > 0.6);
    lk_model_destroy(model);
    lk_device_close(device);
}

/* Zoo models: places in the order of the text, about as much work at each. */
static void auto_balances(void **state)
{
    (void)state;
    static const struct {
        const char *name, *parameters;
        int devices;
        double least, most; /* of the work of a place */
    } cases[] = {
        {"fashion-convnet", NULL, 2, 0.02, 0.95},
        {"vgg16", NULL, 2, 0.4, 0.6},
        {"vgg16", NULL, 3, 0.2, 0.45},
        {"inception-v3", NULL, 2, 0.4, 0.6},
    };
    struct lk_device *device = open_device(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_model *model = NULL;
        struct lk_division division;
        assert_int_equal(lk_model_open(cases[i].name, NULL, &model), LK_OK);
        if (divide(model, "auto", device, cases[i].devices, 32, &division) != LK_OK)
            fail_msg("%s: %s", cases[i].name, lk_error_text());
        for (int p = 0; p < cases[i].devices; p++)
            if (division.places[p].work < cases[i].least ||
                division.places[p].work > cases[i].most)
                fail_msg("%s: place %d of %d does %g of the work", cases[i].name, p,
                         cases[i].devices, division.places[p].work);
        assert_true(division.crossing_count > 0);
        for (int c = 0; c < division.crossing_count; c++)
            assert_true(division.crossings[c].from < division.crossings[c].to);
        lk_model_destroy(model);
    }
    lk_device_close(device);
}

#define TOWERS                                                                                 \
    "input: {left: [24, 24, 3], right: [24, 24, 3]}\nlayers:\n"                                \
    "- {name: l1, from: left, conv2d: {filters: 16, kernel: 3}}\n"                             \
    "- {name: r1, from: right, conv2d: {filters: 16, kernel: 3}}\n"                            \
    "- {name: l2, from: l1, conv2d: {filters: 16, kernel: 3, stride: 4}}\n"                    \
    "- {name: r2, from: r1, conv2d: {filters: 16, kernel: 3, stride: 4}}\n"                    \
    "- {name: both, from: [l2, r2], concat: }\n" END

/* However the text mixes them, each tower is at a place of its own, and only what one of them
 * gives in the end crosses. */
static void auto_parts_branches(void **state)
{
    (void)state;
    struct lk_device *device = open_device(0);
    struct lk_model *model = read_model(TOWERS);
    struct lk_division division;
    if (divide(model, "auto", device, 2, 32, &division) != LK_OK)
        fail_msg("%s", lk_error_text());
    assert_int_equal(place_of(model, "l1"), place_of(model, "l2"));
    assert_int_equal(place_of(model, "r1"), place_of(model, "r2"));
    assert_int_not_equal(place_of(model, "l1"), place_of(model, "r1"));
    assert_int_equal(division.crossing_count, 1);
    lk_model_destroy(model);
    lk_device_close(device);
}

/* First much memory and little work, then the other way round: so a division by work alone puts
 * all that is large to one place. */
static const char top_heavy[] =
    "input: [64, 64, 4]\nlayers:\n"
    "- {name: a, conv2d: {filters: 8, kernel: 1}}\n- {name: b, tanh: }\n"
    "- {name: c, conv2d: {filters: 8, kernel: 1}}\n- {name: e, tanh: }\n"
    "- {name: f, conv2d: {filters: 8, kernel: 1}}\n- {name: g, tanh: }\n"
    "- max_pool: {size: 8}\n"
    "- {name: h, conv2d: {filters: 128, kernel: 5, padding: same}}\n"
    "- {name: i, conv2d: {filters: 128, kernel: 5, padding: same}}\n" END;

static void auto_fits_memory(void **state)
{
    (void)state;
    struct lk_device *device = open_device(0);
    struct lk_model *model = read_model(top_heavy);
    struct lk_division ample, tight;
    struct lk_memory memory;
    assert_int_equal(divide(model, "auto", device, 2, 64, &ample), LK_OK);
    assert_true(place_of(model, "g") == 0);
    size_t most = 0;
    for (int p = 0; p < 2; p++)
        if (ample.places[p].memory.total > most)
            most = ample.places[p].memory.total;
    lk_device_close(device);

    device = open_device((size_t)((double)most * 0.9));
    assert_int_equal(lk_model_memory_recomputing(model, device, 64, 1, LK_MEMORY_TRAINING,
                                                 LK_RECOMPUTE_OFF, &memory),
                     LK_E_DEVICE_MEMORY);
    lk_error_clear();
    if (divide(model, "auto", device, 2, 64, &tight) != LK_OK)
        fail_msg("%s", lk_error_text());
    for (int p = 0; p < 2; p++) {
        assert_true(tight.places[p].fits);
        assert_true((double)tight.places[p].memory.total < (double)most * 0.9);
    }
    assert_true(place_of(model, "g") == 1);
    lk_device_close(device);

    device = open_device(1 << 20); /* too small for any */
    assert_int_equal(divide(model, "auto", device, 2, 64, &tight), LK_E_DEVICE_MEMORY);
    assert_non_null(strstr(lk_error_text(), "place: auto: of the divisions among 2 devices"));
    assert_non_null(strstr(lk_error_text(), "batch size"));
    lk_error_clear();
    assert_int_equal(place_of(model, "i"), 0); /* nothing is left half done */
    assert_int_equal(divide(model, "h=1", device, 2, 64, &tight), LK_OK);
    assert_false(tight.places[0].fits);
    lk_device_close(device);
    lk_model_destroy(model);
}

/* More devices than operations. */
static void auto_refuses(void **state)
{
    (void)state;
    struct lk_device *device = open_device(0);
    struct lk_division division;
    struct lk_model *model = read_model(TOP END);
    assert_int_equal(divide(model, "auto", device, 9, 32, &division), LK_E_UNSUPPORTED);
    assert_non_null(strstr(lk_error_text(), "operations can be divided among 9 devices in no"));
    lk_error_clear();
    lk_model_destroy(model);
    lk_device_close(device);
}

/* Weights with three uses cross to those that are elsewhere. */
static void auto_parts_shared_weights(void **state)
{
    (void)state;
    struct lk_device *device = open_device(0);
    struct lk_division division;
    struct lk_model *model =
        read_model(TOP "- {name: c, " CONV "}\n- {name: t, tanh: }\n- {weights: c, " CONV
                       "}\n- tanh\n- {name: last, weights: c, " CONV "}\n" END);
    assert_int_equal(divide(model, "auto", device, 2, 32, &division), LK_OK);
    assert_int_equal(place_of(model, "c"), 0);
    assert_int_equal(place_of(model, "last"), 1);
    lk_model_destroy(model);
    lk_device_close(device);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, catch_warnings, release_warnings)
    const struct CMUnitTest tests[] = {
        TEST(texts_name_devices),
        TEST(refuses_odd_devices),
        TEST(devices_change_no_model),
        TEST(words_place_nodes),
        TEST(refuses_words),
        TEST(refuses_circles),
        TEST(tells_what_each_holds),
        TEST(weights_are_work),
        TEST(auto_balances),
        TEST(auto_parts_branches),
        TEST(auto_fits_memory),
        TEST(auto_refuses),
        TEST(auto_parts_shared_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
