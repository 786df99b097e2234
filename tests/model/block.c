/* Blocks, words, repetition and shared weights in model texts: graphs out of good ones, the
 * line and the reason out of bad ones. */
#include "model/rig.h"

#include <stdlib.h>
#include <time.h>

/* The graph in words: "name=op(options)<inputs", an entry a line, without the image. */
static char *describe(struct lk_model *model)
{
    static char text[8192];
    size_t used = 0;
    const struct lk_node *node;
    text[0] = '\0';
    for (int i = 1; (node = lk_graph_node(lk_model_graph(model), i)) != NULL; i++) {
        const struct lk_node_info info = lk_node_info(node);
        char options[256];
        lk_node_options(node, options, sizeof options);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s=%s(%s)<", info.name,
                                 info.op, options);
        for (int j = 0; j < info.inputs; j++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", j ? "," : "",
                                     lk_node_info(lk_node_input(node, j)).name);
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%s%s\n", info.weights_of ? " of " : "",
            info.weights_of ? info.weights_of : "", info.is_trainable ? "" : " frozen");
        if (info.lr_scale != 1)
            used += (size_t)snprintf(text + used - 1, sizeof text - used, " at %g\n",
                                     info.lr_scale) -
                    1;
        assert_true(used < sizeof text);
    }
    return text;
}

#define TOP "input: [8, 8, 2]\nlayers:\n"

static const struct {
    const char *text, *graph;
} good_texts[] = {
    /* a block of its own name, numbered by itself, with a standard and without */
    {TOP "- {name: one, pair: {units: 3}}\n- pair: {units: 4, between: tanh}\n"
         "blocks:\n  pair:\n    parameters: {units: , between: relu}\n    layers:\n"
         "    - flatten\n    - {name: $name_in, dense: {units: $units, activation: $between}}\n"
         "    - {name: $name, dense: {units: $(2*units)}}\n",
     "flatten_1=flatten()<image\none_in=dense(units=3 activation=relu)<flatten_1\n"
     "one=dense(units=6)<one_in\nflatten_2=flatten()<one\n"
     "pair_2_in=dense(units=4)<flatten_2\ntanh_1=tanh()<pair_2_in\n"
     "pair_2=dense(units=8)<tanh_1\n"},
    /* repetition: the first reads `from`, each other one what is before it */
    {TOP "- {name: a, relu: }\n- {name: b, relu: }\n"
         "- {name: c$number, from: a, conv2d: {filters: $(number*channels), kernel: 1}, "
         "repeat: 3}\n",
     "a=relu()<image\nb=relu()<a\nc1=conv2d(filters=2 kernel=1,1)<a\n"
     "c2=conv2d(filters=4 kernel=1,1)<c1\nc3=conv2d(filters=12 kernel=1,1)<c2\n"},
    /* what is not there is passed by, by its readers too */
    {TOP "- {name: a, relu: }\n- {name: b, from: image, tanh: , when: no}\n- sigmoid\n"
         "- {name: c, from: [a, image], add: , when: false}\n- {name: d, from: [b, c], add: }\n"
         "- {name: e, relu: , repeat: 0}\n- flatten\n",
     "a=relu()<image\nsigmoid_1=sigmoid()<image\nd=add()<image,a\nflatten_1=flatten()<d\n"},
    /* one of two */
    {TOP "- {x: {deep: yes}}\n- {x: {deep: no}}\n- relu\n"
         "blocks:\n  x:\n    parameters: {deep: }\n    layers:\n"
         "    - {name: $name, when: $deep, tanh: }\n"
         "    - {name: $name, when: $(deep == 0), abs: }\n"
         "    - {from: [$name, $input], add: }\n",
     "x_1=tanh()<image\nadd_1=add()<x_1,image\nx_2=abs()<add_1\nadd_2=add()<x_2,add_1\n"
     "relu_1=relu()<add_2\n"},
    /* a block in a block, an argument that is a list, what a block's name gives */
    {TOP "- {name: o, outer: {size: [2, 1], n: 2}}\n- relu\n- {from: o, tanh: }\n"
         "- {from: o_1, tanh: }\n"
         "blocks:\n  outer:\n    parameters: {size: , n: }\n    layers:\n"
         "    - {name: $name_$number, inner: {size: $size}, repeat: $n}\n"
         "  inner:\n    parameters: {size: [3, 3], filters: $channels, again: $filters}\n"
         "    layers:\n    - {name: $name, conv2d: {kernel: $size, filters: $again}}\n"
         "    - {name: $name_end, relu: }\n",
     "o_1=conv2d(filters=2 kernel=2,1)<image\no_1_end=relu()<o_1\n"
     "o_2=conv2d(filters=2 kernel=2,1)<o_1_end\no_2_end=relu()<o_2\n"
     "relu_3=relu()<o_2_end\ntanh_1=tanh()<o_2_end\ntanh_2=tanh()<o_1_end\n"},
    /* blocks know the parameters of the text, where they have none of that name themselves */
    {"parameters: {n: 3, k: 2}\n" TOP "- {name: o, outer: }\n"
     "blocks:\n  outer:\n    parameters: {k: 1}\n    layers:\n    - {name: $name_i, inner: }\n"
     "    - {name: $name, conv2d: {filters: $n, kernel: $k}}\n"
     "  inner:\n    parameters: {filters: $(2*n)}\n    layers:\n"
     "    - {name: $name, conv2d: {filters: $filters, kernel: $k}}\n",
     "o_i=conv2d(filters=6 kernel=2,2)<image\no=conv2d(filters=3 kernel=1,1)<o_i\n"},
    /* a layer's name as a parameter; arithmetic */
    {"classes: 5\n" TOP "- {name: a, relu: }\n- relu\n- join: {with: a}\n- flatten\n"
     "- dense: {units: $(-1 + 2*(3 - 1) * 4 / 2 % 5 + classes)}\n"
     "- {when: $(classes >= 5), dense: {units: $((2<3) + (3>2) + (1==1) + (1!=2) + (1<=0))}}\n"
     "blocks:\n  join:\n    parameters: {with: }\n    layers:\n"
     "    - {from: [$input, $with], add: }\n",
     "a=relu()<image\nrelu_2=relu()<a\nadd_1=add()<relu_2,a\nflatten_1=flatten()<add_1\n"
     "dense_1=dense(units=7)<flatten_1\ndense_2=dense(units=4)<dense_1\n"},
    /* frozen blocks */
    {TOP
     "- {name: f, two: , trainable: false}\n- {name: g, two: }\n"
     "blocks:\n  two:\n    layers:\n    - {name: $name_1, conv2d: {filters: 2, kernel: 1}}\n"
     "    - {name: $name_2, conv2d: {filters: 2, kernel: 1}, trainable: false}\n",
     "f_1=conv2d(filters=2 kernel=1,1)<image frozen\n"
     "f_2=conv2d(filters=2 kernel=1,1)<f_1 frozen\n"
     "g_1=conv2d(filters=2 kernel=1,1)<f_2\ng_2=conv2d(filters=2 kernel=1,1)<g_1 frozen\n"},
    /* weights of one layer, and of a block, in which one layer has another one's */
    {TOP
     "- {name: a, conv2d: {filters: 2, kernel: 1}}\n"
     "- {weights: a, conv2d: {filters: 2, kernel: 1, activation: tanh}}\n"
     "- {name: t, from: image, tower: }\n- {name: u, from: a, weights: t, tower: }\n"
     "blocks:\n  tower:\n    layers:\n    - {name: $name_1, conv2d: {filters: 2, kernel: 1}}\n"
     "    - relu\n    - {name: $name_2, weights: $name_1, conv2d: {filters: 2, kernel: 1}}\n",
     "a=conv2d(filters=2 kernel=1,1)<image\nconv2d_2=conv2d(filters=2 kernel=1,1)<a of a\n"
     "tanh_1=tanh()<conv2d_2\nt_1=conv2d(filters=2 kernel=1,1)<image\nrelu_1=relu()<t_1\n"
     "t_2=conv2d(filters=2 kernel=1,1)<relu_1 of t_1\n"
     "u_1=conv2d(filters=2 kernel=1,1)<a of t_1\nrelu_2=relu()<u_1\n"
     "u_2=conv2d(filters=2 kernel=1,1)<relu_2 of t_1\n"},
    /* learning rates of their own: blocks multiply, sharers have their owner's */
    {TOP
     "- {name: f, two: , lr_scale: 0.5}\n- {name: g, two: , weights: f}\n"
     "blocks:\n  two:\n    layers:\n    - {name: $name_1, conv2d: {filters: 2, kernel: 1}}\n"
     "    - {name: $name_2, conv2d: {filters: 2, kernel: 1}, lr_scale: $(channels+1)}\n",
     "f_1=conv2d(filters=2 kernel=1,1)<image at 0.5\n"
     "f_2=conv2d(filters=2 kernel=1,1)<f_1 at 1.5\n"
     "g_1=conv2d(filters=2 kernel=1,1)<f_2 of f_1 at 0.5\n"
     "g_2=conv2d(filters=2 kernel=1,1)<g_1 of f_2 at 1.5\n"},
    /* what has frozen weights is frozen */
    {TOP "- {name: a, conv2d: {filters: 2, kernel: 1}, trainable: no}\n"
         "- {weights: a, conv2d: {filters: 2, kernel: 1}}\n"
         "- {weights: a, conv2d: {filters: 2, kernel: 1}, trainable: no}\n",
     "a=conv2d(filters=2 kernel=1,1)<image frozen\n"
     "conv2d_2=conv2d(filters=2 kernel=1,1)<a of a frozen\n"
     "conv2d_3=conv2d(filters=2 kernel=1,1)<conv2d_2 of a frozen\n"},
};

static void makes_graphs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good_texts / sizeof good_texts[0]; i++) {
        struct lk_model *model = read_model(good_texts[i].text);
        assert_string_equal(describe(model), good_texts[i].graph);
        lk_model_destroy(model);
    }
}

/* Layers of blocks that nothing needs are named with the block's line, unused blocks too. */
static void warns(void **state)
{
    (void)state;
    lk_model_destroy(read_model("input: [8, 8, 2]\n"
                                "blocks:\n"
                                "  b:\n"
                                "    layers:\n"
                                "    - {name: $name_lost, tanh: }\n"
                                "    - {from: $input, relu: }\n"
                                "  never:\n"
                                "    layers: [relu]\n"
                                "layers:\n"
                                "- b\n"));
    assert_string_equal(warnings, "m.yaml:7: no layer uses the block 'never'\n"
                                  "m.yaml:5: the output 'relu_1' does not need layer "
                                  "'b_1_lost'\n");
}

#define BLOCK                                                                                  \
    "input: [8, 8, 2]\nblocks:\n  b:\n    parameters: {n: , k: 1}\n    layers:\n    - "
#define USE "\nlayers:\n- b: {n: 3}\n"
#define CONV "conv2d: {filters: 2, kernel: 1}"

static const struct {
    const char *text, *said;
} bad_texts[] = {
    /* definitions */
    {TOP "- relu\nblocks: [a]\n", "m.yaml:4: 'blocks' is a map of names and blocks"},
    {TOP "- relu\nblocks: {a: [relu]}\n", "m.yaml:4: expected a map, found a list"},
    {TOP "- relu\nblocks: {relu: {layers: [tanh]}}\n",
     "m.yaml:4: a block 'relu': there is an operation of that name"},
    {TOP "- relu\nblocks: {when: {layers: [tanh]}}\n", "a block 'when': that word is a key"},
    {TOP "- relu\nblocks: {a: {}}\n", "m.yaml:4: a block has 'layers:', a list of at least"},
    {TOP "- relu\nblocks: {a: {layers: []}}\n", "m.yaml:4: a block has 'layers:'"},
    {TOP "- relu\nblocks: {a: {layer: [relu]}}\n",
     "m.yaml:4: unknown key 'layer'; did you mean 'layers'?"},
    {TOP "- relu\nblocks: {a: {parameters: [n], layers: [relu]}}\n",
     "m.yaml:4: 'parameters' is a map of names and their standards"},
    {TOP "- relu\nblocks: {a: {parameters: {to_do: 1}, layers: [relu]}}\n",
     "m.yaml:4: a parameter 'to_do': its name is letters and digits"},
    {TOP "- relu\nblocks: {a: {parameters: {input: 1}, layers: [relu]}}\n",
     "none of classes, channels, name, input, number"},
    {TOP "- relu\nblocks: {a: {parameters: {2x: 1}, layers: [relu]}}\n", "a letter first"},
    /* uses */
    {TOP "- a: 3\nblocks: {a: {layers: [relu]}}\n",
     "m.yaml:3: a takes {parameter: value, ...}, found '3'"},
    {TOP "- {a: , relu: }\nblocks: {a: {layers: [relu]}}\n",
     "m.yaml:3: two operations in one layer: a and relu"},
    {TOP "- towr\nblocks: {tower: {layers: [relu]}}\n",
     "m.yaml:3: unknown operation or block 'towr'; did you mean 'tower'?"},
    {TOP "- {towr: }\nblocks: {tower: {layers: [relu]}}\n",
     "'towr' is no operation, no block and no key of a layer; did you mean 'tower'?"},
    {BLOCK "relu\nlayers:\n- b\n", "m.yaml:8: b: parameter 'n' is missing"},
    {BLOCK "relu\nlayers:\n- b: {nn: 3}\n",
     "m.yaml:8: b: unknown parameter 'nn'; did you mean 'n'?"},
    {BLOCK "relu\nlayers:\n- b: {far: 3}\n", "m.yaml:8: b: unknown parameter 'far'"},
    {BLOCK "relu\nlayers:\n- b: {n: }\n", "m.yaml:8: b: parameter 'n' stands here without"},
    {BLOCK "relu\nlayers:\n- {name: x, tanh: }\n- {name: x, b: {n: 1}}\n",
     "m.yaml:9: two layers are named 'x'"},
    {BLOCK "relu\nlayers:\n- {name: x, b: {n: 1}}\n- {name: x, tanh: }\n",
     "m.yaml:9: two layers are named 'x'"},
    {BLOCK "relu\nlayers:\n- {name: , b: {n: 1}}\n",
     "m.yaml:8: a name expected, found nothing"},
    {BLOCK "relu\nlayers:\n- {name: x, tanh: }\n- {from: [x, image], b: {n: 1}}\n",
     "m.yaml:9: b: a block reads one layer, not 2"},
    {BLOCK "{b: {n: 1}}" USE,
     "m.yaml:6: blocks within blocks deeper than 16: is 'b' one of its own layers? (in block "
     "'b' of line 6) (in block"},
    {TOP "- {a: , when: no}\nblocks: {a: {layers: [relu]}}\n",
     "m.yaml:2: none of the layers is there"},
    /* errors within: the block's line, and that of its use */
    {BLOCK "dense: {units: $n}" USE, "m.yaml:6: dense_1: dense takes a vector [c] or a "
                                     "sequence [t, c], not [8, 8, 2]: flatten first (in "
                                     "block 'b' of line 8)"},
    {BLOCK "{name: x, relu: }\n    - {name: x, tanh: }" USE,
     "m.yaml:7: two nodes are named 'x' (in block 'b' of line 9)"},
    {BLOCK "max_pool: {size: $n, stide: 1}" USE,
     "m.yaml:6: max_pool: unknown option 'stide'; did you mean 'stride'? (in block 'b' of line "
     "8)"},
    {BLOCK "{from: nowhere, relu: }" USE,
     "m.yaml:6: no layer or input before this one is named 'nowhere' (in block 'b' of line 8)"},
    {BLOCK
     "c: {n: $n}\n  c:\n    parameters: {n: }\n    layers: [max_pool: {size: $(4*n)}]" USE,
     "m.yaml:9: max_pool_1: max_pool: a kernel of height 12 does not fit an image of height 8 "
     "(with padding 8) (in block 'c' of line 6) (in block 'b' of line 11)"},
    /* words */
    {BLOCK "max_pool: {size: $m}" USE, "m.yaml:6: unknown word '$m'; there are $n, $k, "
                                       "$classes, $vocabulary, $channels, $number, $name, "
                                       "$input (in block"},
    {TOP "- max_pool: {size: $m}\n",
     "m.yaml:3: unknown word '$m'; there are $classes, $vocabulary, $channels, $number"},
    {TOP "- {name: $name, relu: }\n", "m.yaml:3: $name stands in blocks alone"},
    {TOP "- {from: $input, relu: }\n", "m.yaml:3: $input stands in blocks alone"},
    {TOP "- {name: r$number, relu: }\n",
     "m.yaml:3: $number stands in an entry with 'repeat:' alone"},
    {TOP "- {relu: , repeat: $channels}\n", "$channels stands here, but nothing that has"},
    {TOP "- max_pool: {size: $classes}\n", "m.yaml:3: $classes stands here, but 'classes:' is"},
    {TOP "- {name: $, relu: }\n",
     "m.yaml:3: '$': a word, or arithmetic in ( ), expected behind"},
    {TOP "- {name: a$_b, relu: }\n",
     "'a$_b': a word, or arithmetic in ( ), expected behind '$'"},
    {BLOCK "max_pool: {size: $n*2}" USE,
     "m.yaml:6: '$n*2': arithmetic stands in ( ), as in $(n*2)"},
    {BLOCK "{name: x$k, relu: }\nlayers:\n- b: {n: 1, k: [2, 3]}\n",
     "m.yaml:6: 'x$k': '$k' is a list, no word that could be put there"},
    /* arithmetic */
    {TOP "- max_pool: {size: $(2}\n", "m.yaml:3: '$(2': an operator or ')' expected"},
    {TOP "- max_pool: {size: $(2 2)}\n", "'$(2 2)': an operator or ')' expected"},
    {TOP "- max_pool: {size: $(2*)}\n", "'$(2*)': a whole number or a word expected"},
    {TOP "- max_pool: {size: $((2)}\n", "'$((2)': an operator or ')' expected"},
    {TOP "- max_pool: {size: $((2 3))}\n", "'$((2 3))': ')' expected"},
    {TOP "- max_pool: {size: $(7/2)}\n", "m.yaml:3: '$(7/2)': 7 / 2 is no whole number"},
    {TOP "- max_pool: {size: $(7/0)}\n", "'$(7/0)': a division by 0"},
    {TOP "- max_pool: {size: $(7%(1-1))}\n", "a division by 0"},
    {TOP "- max_pool: {size: $(65536*65536)}\n", "a number beyond 2147483647"},
    {TOP "- max_pool: {size: $(2147483647+1)}\n", "a number beyond 2147483647"},
    {TOP "- max_pool: {size: $(99999999999999999999)}\n", "a number beyond 2147483647"},
    {TOP "- max_pool: {size: $(1.5*2)}\n", "an operator or ')' expected"},
    {TOP "- max_pool: {size: $(------------------2)}\n", "nested too deep"},
    {BLOCK "max_pool: {size: $(2*k)}\nlayers:\n- b: {n: 1, k: same}\n",
     "m.yaml:6: '$(2*k)': 'k' is 'same', no whole number"},
    {BLOCK "max_pool: {size: $(2*k)}\nlayers:\n- b: {n: 1, k: [1, 2]}\n", "'k' is a list, no"},
    {BLOCK "max_pool: {size: $(2*k)}\nlayers:\n- b: {n: 1, k: 1x}\n", "'k' is '1x', no whole"},
    {BLOCK "max_pool: {size: $(2*m)}" USE, "m.yaml:6: unknown word '$m'"},
    /* repeat and when */
    {TOP "- {relu: , repeat: -1}\n", "m.yaml:3: option 'repeat': -1 is not in 0..2000"},
    {TOP "- {relu: , repeat: 2001}\n", "m.yaml:3: option 'repeat': 2001 is not in 0..2000"},
    {TOP "- {relu: , repeat: }\n", "m.yaml:3: a number or a word expected, found nothing"},
    {TOP "- {relu: , repeat: often}\n", "'often' is not a whole number"},
    {TOP "- {name: x, relu: , repeat: 2}\n",
     "m.yaml:3: 2 layers of one name; with $number in it, as in 'x$number', they differ"},
    {TOP "- {relu: , when: perhaps}\n", "m.yaml:3: option 'when': 'perhaps'"},
    {TOP "- {relu: , when: }\n", "m.yaml:3: a number or a word expected, found nothing"},
    /* weights */
    {TOP "- {name: a, " CONV "}\n- {weights: b, " CONV "}\n",
     "m.yaml:4: no layer or input before this one is named 'b'"},
    {TOP "- {name: a, when: no, " CONV "}\n- {weights: a, " CONV "}\n",
     "m.yaml:4: 'a' is not there: its 'when' is false"},
    {TOP "- {weights: later, " CONV "}\n- {name: later, " CONV "}\n",
     "m.yaml:3: no layer or input before this one is named 'later'"},
    {TOP "- {name: a, weights: a, " CONV "}\n",
     "m.yaml:3: no layer or input before this one is named 'a'"},
    {TOP "- {name: a, " CONV "}\n- {weights: [a], " CONV "}\n",
     "m.yaml:4: 'weights' names one layer, found a list"},
    {TOP "- {name: a, " CONV "}\n- {weights: a, max_pool: }\n",
     "m.yaml:4: 'max_pool_1' is max_pool, 'a', whose weights it is to have, is conv2d"},
    {TOP "- {name: a, " CONV "}\n- {name: b, weights: a, conv2d: {filters: 2, kernel: 2}}\n",
     "m.yaml:4: 'b.weight' is [2, 2, 2, 2], 'a.weight' is [2, 1, 1, 2]; to be shared"},
    {TOP "- {name: a, relu: }\n- {weights: a, relu: }\n",
     "m.yaml:4: 'a' has no weights that could be shared"},
    {TOP "- {name: a, batch_norm: }\n- {weights: a, batch_norm: }\n",
     "m.yaml:4: 'a' has moving averages"},
    {TOP "- {name: a, " CONV "}\n- {name: b, weights: a, " CONV "}\n- {weights: b, " CONV "}\n",
     "m.yaml:5: 'b' has itself the weights of 'a': 'conv2d_3' can have them of that one"},
    {TOP "- {name: a, " CONV "}\n- {name: b, weights: a, trainable: no, " CONV "}\n",
     "m.yaml:4: 'b' is frozen, but 'a', whose weights it has, is trainable"},
    {TOP "- {name: a, trainable: no, " CONV "}\n- {name: b, weights: a, trainable: yes, " CONV
         "}\n",
     "m.yaml:4: 'b' is trainable, but 'a', whose weights it has, is frozen"},
    {TOP "- {name: a, " CONV "}\n- {name: b, weights: a, lr_scale: 2, " CONV "}\n",
     "m.yaml:4: 'b' has the weights of 'a', where lr_scale is to stand"},
    {TOP "- {lr_scale: -1, " CONV "}\n", "m.yaml:3: option 'lr_scale': -1 is not in 0..1e"},
    {TOP "- {lr_scale: fast, " CONV "}\n", "m.yaml:3: option 'lr_scale': 'fast' is"},
    {TOP "- {l2: -1, " CONV "}\n", "m.yaml:3: option 'l2': -1 is not in 0..1e"},
    {TOP "- {l1: 0.1, relu: }\n", "relu has no weights for l1 and l2"},
    {TOP "- {name: a, " CONV "}\n- {name: b, weights: a, l1: 2, " CONV "}\n",
     "m.yaml:4: 'b' has the weights of 'a', where l1 is to stand"},
    {TOP "- conv2d: {filters: 2, kernel: 1, lr_scale: 2}\n",
     "m.yaml:3: 'lr_scale' is no option of conv2d but a key of its entry"},
    {BLOCK CONV "\nlayers:\n- {name: x, b: {n: 1}}\n- {weights: x, " CONV "}\n",
     "m.yaml:9: 'x' is a block 'b'; conv2d can have the weights of a layer alone"},
    {BLOCK CONV "\nlayers:\n- {name: x, " CONV "}\n- {weights: x, b: {n: 1}}\n",
     "m.yaml:9: 'x' is the layer 'x'; another block 'b' is expected"},
    {BLOCK CONV
     "\n  c:\n    layers: [relu]\nlayers:\n- {name: x, c: }\n- {weights: x, b: {n: 1}}\n",
     "m.yaml:11: 'x' is a block 'c'; another block 'b' is expected"},
    {BLOCK "{" CONV ", repeat: $n}\nlayers:\n- {name: x, b: {n: 1}}\n"
           "- {name: y, weights: x, b: {n: 2}}\n",
     "m.yaml:9: 'y' has 2 layers with weights, 'x' has 1; the same is expected"},
    {BLOCK "conv2d: {filters: $n}\nlayers:\n- {name: x, b: {n: 2}}\n"
           "- {name: y, weights: x, b: {n: 3}}\n",
     "m.yaml:9: 'conv2d_2.weight' is [2, 3, 3, 3], 'conv2d_1.weight' is [2, 3, 3, 2]"},
    {BLOCK CONV "\nlayers:\n- {name: x, b: {n: 1}}\n- {weights: z, b: {n: 1}}\n",
     "m.yaml:9: no layer or input before this one is named 'z'"},
};

static void refuses(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++) {
        struct lk_model *model = NULL;
        const enum lk_status status =
            lk_model_read(bad_texts[i].text, strlen(bad_texts[i].text), "m.yaml", &model);
        assert_null(model);
        if (status != LK_E_MODEL || !strstr(lk_error_text(), bad_texts[i].said)) {
            print_error("'%s' gave %d '%s', expected '%s'\n", bad_texts[i].text, status,
                        lk_error_text(), bad_texts[i].said);
            wrong++;
        }
        lk_error_clear();
    }
    assert_int_equal(wrong, 0);
}

/* A short text that asks for very much is refused at once, whatever it asks for. */
static void refuses_to_grow(void **state)
{
    (void)state;
    static const struct {
        const char *each, *last, *said;
    } cases[] = {
        {"- {b%d: , repeat: 2000}", "- relu", "more than 2000 layers"},
        {"- {b%d: , repeat: 2000}", "- {relu: , when: no}", "more than 10000 entries"},
        {"- {b%d: , repeat: 2000}", "- {relu: , repeat: 0}", "more than 10000 entries"},
        {"- b%d: {x: $x$x}", "- {name: $x, relu: }", "becomes too long"},
        {"- b%d: {x: [$x, $x, $x, $x]}", "- reshape: {shape: $x}", "grows beyond 32 MiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[4096];
        struct lk_model *model = NULL;
        size_t used = (size_t)snprintf(text, sizeof text,
                                       "input: [8, 8, 2]\nlayers: [b0]\n"
                                       "blocks:\n");
        for (int b = 0; b < 16; b++) {
            used +=
                (size_t)snprintf(text + used, sizeof text - used,
                                 "  b%d:\n    parameters: {x: laughs}\n    layers:\n    ", b);
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     b < 15 ? cases[i].each : cases[i].last, b + 1);
            used += (size_t)snprintf(text + used, sizeof text - used, "\n");
        }
        const clock_t start = clock();
        assert_int_equal(lk_model_read(text, used, "m.yaml", &model), LK_E_MODEL);
        if (!strstr(lk_error_text(), cases[i].said))
            fail_msg("case %zu gave '%s'", i, lk_error_text());
        assert_true(clock() - start < 10 * CLOCKS_PER_SEC);
        lk_error_clear();
    }
}

static bool is_same(const struct lk_model *model, const char *text)
{
    bool found = false;
    if (lk_model_compare(model, text, &found) != LK_OK)
        fail_msg("'%s' gave '%s'", text, lk_error_text());
    return found;
}

/* By what texts mean, not by their letters: each change of one word makes another model. */
static void compares_models(void **state)
{
    (void)state;
    static const char as_blocks[] =
        "name: other\nblocks: {a: {layers: [{name: $name_1, conv2d: {kernel: [1, 1], filters: "
        "2}}, "
        "{name: $name_2, trainable: no, relu: }]}}\n" TOP
        "- {name: a, a: }\n- {name: b, conv2d: {filters: 2, kernel: 1, stride: 1}}\n"
        "- {name: c, from: [a, b], add: }\n";
    static const char plain[] = TOP
        "- {name: a_1, conv2d: {filters: 2, kernel: 1}}\n- {name: a_2, relu: }\n"
        "- {name: b, conv2d: {filters: 2, kernel: 1}}\n- {name: c, from: [a_2, b], add: }\n";
    static const struct {
        const char *word, *with;
    } changes[] = {
        {"relu", "tanh"},
        {"a_1", "a_3"},
        {"filters: 2", "filters: 2, bias: no"},
        {"name: b", "name: b, trainable: no"},
        {"name: b", "name: b, weights: a_1"},
        {"name: b", "name: b, from: a_1"},
        {"[a_2, b]", "[b, a_2]"},
        {"[8, 8, 2]", "[8, 9, 2]"},
        {"[8, 8, 2]", "{image: {shape: [8, 8, 2], scale: 1}}"},
        {"[8, 8, 2]", "{picture: [8, 8, 2]}"},
        {"layers:", "output: b\nlayers:"},
        {"- {name: c, from: [a_2, b], add: }\n", ""},
    };
    struct lk_model *model = read_model(plain);
    struct lk_node *labels = NULL, *loss = NULL;
    assert_true(is_same(model, plain));
    assert_true(is_same(model, as_blocks));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char text[1024];
        const char *at = strstr(plain, changes[i].word);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - plain), plain, changes[i].with,
                 at + strlen(changes[i].word));
        if (is_same(model, text))
            fail_msg("'%s' is said to be the same", text);
    }
    bool found = false;
    assert_int_equal(lk_model_compare(model, "layers: [", &found), LK_E_MODEL);
    assert_non_null(strstr(lk_error_text(), "the model compared with:"));
    lk_error_clear();
    lk_model_destroy(model);
    model = read_model(TOP "- flatten\n- dense: {units: 3}\n- softmax\n");
    assert_int_equal(lk_model_add_loss(model, &labels, &loss), LK_OK);
    assert_true(is_same(model, TOP "- flatten\n- {dense: {units: 3}}\n- softmax\n"));
    lk_model_destroy(model);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, catch_warnings, release_warnings)
    const struct CMUnitTest tests[] = {
        TEST(makes_graphs),    TEST(warns),           TEST(refuses),
        TEST(refuses_to_grow), TEST(compares_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
