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

void lk_page_tell_model(const struct lk_version *version, struct lk_text *text)
{
    const struct lk_signature *s = &version->signature;
    const bool takes_image = s->input_count == 1 && s->inputs[0].dtype == LK_U8;
    lk_text_append(text, "{\"name\": ");
    lk_answer_text(text, version->served->name);
    lk_text_append(text, ", \"version\": \"%lld\", ", (long long)version->number);
    lk_call_tell_versions(version->served, text);
    lk_text_append(text, ", \"takes\": \"%s\", ",
                   takes_image     ? "image"
                   : s->takes_text ? "text"
                                   : "numbers");
    lk_kserve_tell_ports(s, true, text);
    lk_text_append(text, "}\n");
}
