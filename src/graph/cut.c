/* Cuts a schedule in two: its frozen part, whose values of a sample never change, and the head,
 * which is trained. Each part lists its own operations; a replica has the parameters of both.
 */
#include "base/fail.h"
#include "base/text.h"
#include "graph/replica_internal.h"
#include <string.h>

/* Whether an operation gives the same for a sample in each epoch: it reads only such values, no
 * optimizer moves its parameters, and it does nothing by chance. */
static bool is_fixed(const struct lk_schedule *s, const bool *fixed, int i)
{
    const struct lk_scheduled_op *scheduled = &s->ops[i];
    for (int j = 0; j < scheduled->shapes.inputs; j++)
        if (!fixed[scheduled->x[j]])
            return false;
    const bool is_trained =
        scheduled->shapes.params > 0 && lk_node_owner(scheduled->node)->is_trainable;
    return !is_trained && !scheduled->shapes.is_loss && !scheduled->op->only_trains;
}

/* Marks the values that never change, and those of them at which the schedule is cut: which
 * operations of the frozen part make and the head reads. */
static enum lk_status find_cut(struct lk_schedule *s, bool *fixed)
{
    bool has_params = false;
    for (int v = 0; v < s->value_count; v++)
        fixed[v] = s->values[v].input != NULL;
    for (int i = 0; i < s->op_count; i++) {
        fixed[s->ops[i].y] = is_fixed(s, fixed, i);
        has_params |= fixed[s->ops[i].y] && s->ops[i].shapes.params > 0;
    }
    for (int i = 0; i < s->op_count; i++)
        for (int j = 0; j < s->ops[i].shapes.inputs && !fixed[s->ops[i].y]; j++) {
            struct lk_value *x = &s->values[s->ops[i].x[j]];
            if (fixed[s->ops[i].x[j]] && !x->input)
                x->cut = s->ops[x->producer].node;
        }
    for (int i = 0; i < s->output_count; i++)
        if (fixed[s->outputs[i]])
            return lk_fail(LK_E_ARGUMENT, "an output of the model is all frozen");
    return has_params ? LK_OK
                      : lk_fail(LK_E_ARGUMENT,
                                "no frozen parameters come before all that is trained or drawn "
                                "by chance (dropout), so there is nothing to compute once");
}

/* The frozen part is run for the values of the cut. */
static enum lk_status set_outputs(struct lk_schedule *s)
{
    s->output_count = 0;
    for (int v = 0; v < s->value_count; v++) {
        if (!s->values[v].cut)
            continue;
        if (s->output_count == LK_MOST_OUTPUTS)
            return lk_fail(LK_E_ARGUMENT,
                           "more than %d values of the frozen part are read by what is trained",
                           LK_MOST_OUTPUTS);
        s->outputs[s->output_count++] = v;
    }
    return LK_OK;
}

enum lk_status lk_replica_cut(struct lk_replica *replica)
{
    struct lk_schedule *s = &replica->schedule;
    const bool wants_frozen = replica->config.part == LK_PART_FROZEN;
    void *memory = NULL;
    int kept = 0;
    if (replica->config.part == LK_PART_ALL)
        return LK_OK;
    LK_TRY(lk_arena_allocate(&s->arena, (size_t)s->value_count * sizeof(bool), &memory));
    bool *fixed = memory;
    LK_TRY(find_cut(s, fixed));
    for (int v = 0; v < s->value_count; v++)
        s->values[v].producer = -1;
    for (int i = 0; i < s->op_count; i++) {
        if (fixed[s->ops[i].y] != wants_frozen)
            continue;
        s->values[s->ops[i].y].producer = kept;
        s->ops[kept] = s->ops[i];
        memcpy(replica->prepared[kept++].param, replica->prepared[i].param,
               sizeof replica->prepared[i].param);
    }
    s->op_count = kept;
    return wants_frozen ? set_outputs(s) : LK_OK;
}

const struct lk_node *lk_replica_cut_value(const struct lk_replica *replica, int index,
                                           struct lk_shape *shape)
{
    const struct lk_schedule *s = &replica->schedule;
    for (int v = 0; v < s->value_count; v++)
        if (s->values[v].cut && index-- == 0) {
            *shape = s->values[v].shape;
            return s->values[v].cut;
        }
    return NULL;
}

enum lk_dtype lk_replica_feature_dtype(const struct lk_replica *replica)
{
    return lk_replica_stored(replica);
}

bool lk_replica_reads(const struct lk_replica *replica, const struct lk_node *input)
{
    for (int i = 0; i < replica->input_count; i++)
        if (replica->inputs[i].node == input)
            return true;
    return false;
}

/* The algorithms of an operation's forward pass, which decide its bits; blockings do not. */
static void describe_choices(const struct lk_replica *replica, int i, struct lk_text *text)
{
    const struct lk_op *op = replica->schedule.ops[i].op;
    char name[LK_CHOICE_TEXT_BYTES];
    struct lk_choice choice;
    for (int c = 0; op->choice; c++) {
        choice = (struct lk_choice){.count = 0};
        if (!op->choice(&replica->prepared[i].setup, c, &choice))
            break;
        if (choice.is_backward || !lk_choices_find(replica->config.choices, choice.key, name))
            continue;
        lk_text_append(text, " %.*s", (int)(lk_candidate_blocking(name) - name), name);
    }
}

static enum lk_status describe(const struct lk_replica *replica, struct lk_text *text)
{
    const struct lk_schedule *s = &replica->schedule;
    lk_text_append(text, "math %s\n", lk_math_names[lk_choices_math(replica->config.choices)]);
    for (int i = 0; i < s->op_count; i++) {
        const struct lk_scheduled_op *scheduled = &s->ops[i];
        char options[1024], shape[96];
        if (!lk_options_print(scheduled->op->options, scheduled->options, true, options,
                              sizeof options))
            return lk_fail(LK_E_ARGUMENT, "%s: its options are too long",
                           scheduled->node->name);
        lk_text_append(text, "%d %s %s:", scheduled->y, scheduled->op->name, options);
        for (int j = 0; j < scheduled->shapes.inputs; j++) {
            lk_shape_print(&scheduled->shapes.x[j], shape, sizeof shape);
            lk_text_append(text, " %d %s", scheduled->x[j], shape);
        }
        for (int j = 0; j < scheduled->shapes.params; j++)
            lk_text_append(text, " %s", replica->params[replica->prepared[i].param[j]].name);
        describe_choices(replica, i, text);
        lk_text_append(text, "\n");
    }
    return LK_OK;
}

enum lk_status lk_replica_describe(const struct lk_replica_config *config, struct lk_text *text)
{
    struct lk_replica *replica = NULL;
    LK_TRY(lk_replica_make(config, &replica));
    const enum lk_status status = describe(replica, text);
    lk_replica_destroy(replica);
    return status;
}
