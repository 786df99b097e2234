/* Tells how far a conversion is, and which samples are broken. */
#include "base/fail.h"
#include "base/log.h"
#include "data/convert/convert.h"

/* Broken samples that are named in warnings of their own. */
enum { MOST_NAMED = 20 };

void lk_convert_report(struct lk_conversion *c, const char *what, const char *part,
                       int64_t done, int64_t total)
{
    const struct lk_conversion_progress progress = {what, part, done, total};
    if (c->options.progress)
        c->options.progress(c->options.context, &progress);
}

enum lk_status lk_convert_note_bad(struct lk_conversion *c, struct lk_convert_part *part,
                                   const char *why)
{
    part->bad++;
    lk_text_append(&c->skipped, "%s: %s\n", part->name, why);
    if (c->skipped.failed)
        return lk_fail_memory("names of broken samples", c->skipped.used);
    if (part->bad > part->most_bad)
        return lk_fail(LK_E_DATA,
                       "%s: %lld of %lld samples are broken, at most %lld may be (max_bad); "
                       "the last is %s",
                       part->name, (long long)part->bad, (long long)part->count,
                       (long long)part->most_bad, why);
    if (part->bad <= MOST_NAMED)
        lk_log(LK_LOG_WARNING, "%s: a broken sample is left out: %s%s", part->name, why,
               part->bad == MOST_NAMED ? " (others are named in skipped.txt at the end)" : "");
    return LK_OK;
}
