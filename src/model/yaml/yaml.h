/* YAML documents as a small tree with line numbers. Floor 6. Knows no model.
 *
 * The text may come from anyone: aliases, anchors, tags, second documents, keys twice, and
 * trees deeper or larger than people write are refused. libyaml is known to yaml.c alone. */
#ifndef LK_MODEL_YAML_YAML_H
#define LK_MODEL_YAML_YAML_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    LK_YAML_MOST_BYTES = 1 << 20,
    LK_YAML_MOST_DEPTH = 16,
    LK_YAML_MOST_VALUES = 100000,
    LK_YAML_MOST_KEYS = 1000 /* of one map */
};

enum lk_yaml_kind { LK_YAML_SCALAR, LK_YAML_LIST, LK_YAML_MAP };

/* A value. The entries of a list or map, in the order of the text:
 * for (const struct lk_yaml *entry = map->first; entry; entry = entry->next) */
struct lk_yaml {
    enum lk_yaml_kind kind;
    const char *where; /* names the text in messages */
    int line;          /* from 1; of the key where there is one */
    const char *key;   /* of an entry of a map; else NULL */
    const char *text;  /* of a scalar; else NULL */
    bool is_null;      /* a scalar that stands for nothing: absent, ~ or null */
    int count;         /* entries */
    const struct lk_yaml *first, *next;
    size_t start, end; /* its place in the text, in characters: lk_yaml_span() */
};

struct lk_yaml_document;

/* Reads one document. fails: LK_E_MODEL, "WHERE:LINE: what"; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_yaml_read(const char *text, size_t bytes, const char *where,
                                          struct lk_yaml_document **document);
void lk_yaml_destroy(struct lk_yaml_document *document);

/* The whole; lives as long as the document, as do all its values. */
const struct lk_yaml *lk_yaml_root(const struct lk_yaml_document *document);

/* The entry of a map with that key; NULL: absent, or no map. */
const struct lk_yaml *lk_yaml_find(const struct lk_yaml *map, const char *key);

/* Entry `index` of a list or map; NULL past the last. */
const struct lk_yaml *lk_yaml_item(const struct lk_yaml *list, int index);

/* Whether all keys of the map are in `known` (ends with NULL). fails: LK_E_MODEL, with the
 * nearest one; also where it is no map */
LK_MUST_CHECK enum lk_status lk_yaml_check_keys(const struct lk_yaml *map,
                                                const char *const *known);

/* "a list", "a map", "'text'" or "nothing", for messages. */
const char *lk_yaml_found(const struct lk_yaml *value, char *text, size_t bytes);

/* Returns LK_E_MODEL with the text "WHERE:LINE: ...". */
enum lk_status lk_yaml_fail(const struct lk_yaml *value, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for a call that has said why: puts "WHERE:LINE: " before. LK_OK stays LK_OK and
 * LK_E_MEMORY stays; all else becomes LK_E_MODEL. */
LK_MUST_CHECK enum lk_status lk_yaml_at(const struct lk_yaml *value, enum lk_status status);

/* The bytes of `text`, which was read, that make up the value, space behind it left out. */
void lk_yaml_span(const char *text, const struct lk_yaml *value, size_t *start, size_t *bytes);

/* The value as a document of its own, on the same lines as in `text`, which was read. The
 * caller frees `cut`. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_yaml_cut(const char *text, const struct lk_yaml *value,
                                         char **cut);

#endif
