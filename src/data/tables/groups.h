/* Which columns of a table form which field: the options fields= and label= of a SPEC,
 * "a,b" or "size:a+b,colour:c". Floor 4. Knows no table. */
#ifndef LK_DATA_TABLES_GROUPS_H
#define LK_DATA_TABLES_GROUPS_H

#include "data/sources/names.h"
#include <lockstep/field.h>
#include <stdbool.h>

struct lk_group {
    const char *name; /* of the field; "numbers" or "label" where the SPEC says none */
    bool is_named;    /* by the SPEC */
    enum lk_field_role role;
    int first, count; /* its members */
};

/* {0} is empty. */
struct lk_groups {
    struct lk_arena arena;
    struct lk_group items[LK_MOST_FIELDS];
    int count;
    struct lk_names members; /* columns, or keys; those of a group lie together */
};

/* Adds the groups of one option's text. Those without a name are one group.
 * fails: LK_E_ARGUMENT a name that does not fit or is there twice, an empty member, more than
 * LK_MOST_FIELDS groups; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_groups_add(struct lk_groups *groups, enum lk_field_role role,
                                           const char *text);
void lk_groups_clear(struct lk_groups *groups);

#endif
