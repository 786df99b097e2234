/* The page, and the model's card that it shows. */
#include "serve/rest/page.h"

#include "base/embedded.h"
#include "serve/rest/call.h"

extern const struct lk_embedded lk_serve_files[];

const char *lk_page(size_t *bytes)
{
    const struct lk_embedded *page = lk_embedded_find(lk_serve_files, "page.html");
    *bytes = page->bytes;
    return page->text;
}

static void tell_classes(const struct lk_predictor_port *port, struct lk_text *text)
{
    lk_text_append(text, ", \"classes\": [");
    for (int64_t i = 0; i < port->named_classes; i++) {
        lk_text_append(text, i ? ", " : "");
        lk_answer_text(text, port->class_names[i]);
    }
    lk_text_append(text, "]");
}

void lk_page_tell_model(const struct lk_version *version, struct lk_text *text)
{
    const struct lk_signature *s = &version->signature;
    const bool takes_image = s->input_count == 1 && s->inputs[0].dtype == LK_U8;
    lk_text_append(text, "{\"name\": ");
    lk_answer_text(text, version->served->name);
    lk_text_append(text, ", \"version\": \"%lld\", \"takes\": \"%s\", \"inputs\": [",
                   (long long)version->number,
                   takes_image     ? "image"
                   : s->takes_text ? "text"
                                   : "numbers");
    for (int i = 0; i < s->input_count; i++) {
        lk_text_append(text, "%s{\"name\": ", i ? ", " : "");
        lk_answer_text(text, s->inputs[i].name);
        lk_text_append(text,
                       ", \"type\": \"%s\", \"shape\": ", lk_kserve_type(s->inputs[i].dtype));
        lk_answer_shape(text, &s->inputs[i].shape);
        lk_text_append(text, "}");
    }
    lk_text_append(text, "], \"outputs\": [");
    for (int o = 0; o < s->output_count; o++) {
        lk_text_append(text, "%s{\"name\": ", o ? ", " : "");
        lk_answer_text(text, s->outputs[o].name);
        lk_text_append(
            text, ", \"is_class\": %s, \"shape\": ", s->outputs[o].is_class ? "true" : "false");
        lk_answer_shape(text, &s->outputs[o].shape);
        tell_classes(&s->outputs[o], text);
        lk_text_append(text, "}");
    }
    lk_text_append(text, "]}\n");
}
