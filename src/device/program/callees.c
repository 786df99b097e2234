/* The kernels of a chain as functions of one program. See cl/device/chain.cl. */
#include "device/program/callees.h"

#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the arguments of a kernel of a chain end in: cl/lib/real.cl, range.cl. */
#define GROUP "GROUP_ARGS"
#define RANGE "RANGE_ARGS"

/* Behind the bracket that opens the kernel's arguments, the last of which has that name; NULL:
 * it has not. */
static const char *params_of(const struct lk_kernel *kernel, const char *last)
{
    char head[80];
    snprintf(head, sizeof head, "void %s(", kernel->name);
    const char *found = strstr(kernel->program->source->text, head);
    const char *params = found ? found + strlen(head) : NULL;
    const char *end = params ? strchr(params, ')') : NULL;
    const size_t length = strlen(last);
    const bool takes =
        end && end - params > (ptrdiff_t)length && strncmp(end - length, last, length) == 0;
    return takes ? params : NULL;
}

static void print_arg(struct lk_text *text, const struct lk_arg *arg, const char *param, int at)
{
    const char *type = param + strspn(param, " \n");
    switch (arg->kind) {
    case LK_ARG_BUFFER:
        lk_text_append(text, "CHAIN_BUFFER(%d)", at);
        break;
    case LK_ARG_REAL:
        lk_text_append(text, "as_float(a[%d])", at);
        break;
    case LK_ARG_LOCAL:
        lk_text_append(text, "scratch");
        break;
    case LK_ARG_STRUCT: /* "struct NAME argument" */
        lk_text_append(text, "*(__global const struct %.*s *)(a + %d)",
                       (int)strcspn(type + strlen("struct "), " "), type + strlen("struct "),
                       at);
        break;
    default:
        lk_text_append(text, "a[%d]", at);
    }
}

/* How many numbers it takes in the table. */
static int numbers_of(const struct lk_arg *arg)
{
    return arg->kind == LK_ARG_BUFFER   ? 2
           : arg->kind == LK_ARG_LOCAL  ? 0
           : arg->kind == LK_ARG_STRUCT ? (int)arg->number
                                        : 1;
}

/* The function that calls a kernel for group[3] groups, whose ids in dimension 0 follow on one
 * another: at once, or one by one. */
static char *print_call(const struct lk_kernel *kernel, const char *params, int number,
                        const struct lk_arg *args, int count)
{
    struct lk_text text = {0};
    int at = 0;
    lk_text_append(&text,
                   "INLINE void chain_call_%d(__global const int *a, __global char *const "
                   "*base, __local void *scratch, const int *group, const int *groups)\n{\n",
                   number);
    lk_text_append(&text, params_of(kernel, RANGE)
                              ? "    const int *of = group;\n"
                              : "    int of[4] = {group[0], group[1], group[2], 1};\n"
                                "    for (; of[0] < group[0] + group[3]; of[0]++)\n    ");
    lk_text_append(&text, "    %s(", kernel->name);
    for (int i = 0; i < count; i++) {
        print_arg(&text, &args[i], params, at);
        lk_text_append(&text, ", ");
        at += numbers_of(&args[i]);
        params = strchr(params, ',');
        params = params ? params + 1 : "";
    }
    lk_text_append(&text, "of, groups);\n}\n");
    if (text.failed) {
        free(text.bytes);
        return NULL;
    }
    return text.bytes;
}

int lk_callees_find(const struct lk_callees *callees, const struct lk_kernel *kernel)
{
    for (int i = 0; i < callees->count; i++)
        if (callees->each[i].program == kernel->program &&
            strcmp(callees->each[i].name, kernel->name) == 0)
            return i;
    return -1;
}

void lk_callees_note(struct lk_callees *callees, const struct lk_kernel *kernel,
                     const struct lk_arg *args, int count)
{
    const char *range = params_of(kernel, RANGE);
    const char *params = range ? range : params_of(kernel, GROUP);
    struct lk_callee *callee = &callees->each[callees->count];
    if (!params || kernel->real_bytes != 4 || callees->count == LK_MOST_CALLEES ||
        lk_callees_find(callees, kernel) >= 0)
        return;
    callee->call = print_call(kernel, params, callees->count, args, count);
    if (!callee->call)
        return;
    callee->program = kernel->program;
    snprintf(callee->name, sizeof callee->name, "%s", kernel->name);
    callees->count++;
}

void lk_callees_clear(struct lk_callees *callees)
{
    for (int i = 0; i < callees->count; i++)
        free(callees->each[i].call);
    callees->count = 0;
}

/* The unit of a program, with a function that calls each callee in it, unless one before has
 * printed it. */
static void print_unit(struct lk_text *text, const struct lk_callees *callees, int first)
{
    const struct lk_program *program = callees->each[first].program;
    struct lk_text calls = {0};
    for (int i = 0; i < first; i++)
        if (callees->each[i].program == program)
            return;
    for (int i = first; i < callees->count; i++)
        if (callees->each[i].program == program)
            lk_text_append(&calls, "%s", callees->each[i].call);
    lk_unity_print(text, program, first + 1, calls.bytes ? calls.bytes : "");
    text->failed |= calls.failed;
    free(calls.bytes);
}

void lk_callees_print(const struct lk_callees *callees, const struct lk_program *loop,
                      struct lk_text *text)
{
    lk_text_append(text, "#define CHAINED\n"
                         "#define CHAIN_BUFFER(i) (a[i] < 0 ? (__global void *)0 : "
                         "(__global void *)(base[a[i]] + 4 * (size_t)a[(i) + 1]))\n");
    for (int i = 0; i < callees->count; i++)
        print_unit(text, callees, i);
    lk_text_append(text, "#define CHAIN_CALL(kernel, a, base, scratch, group, groups) switch "
                         "(kernel) {");
    for (int i = 0; i < callees->count; i++)
        lk_text_append(text, " case %d: chain_call_%d(a, base, scratch, group, groups); break;",
                       i, i);
    lk_text_append(text, " }\n");
    lk_unity_print(text, loop, 0, "");
}
