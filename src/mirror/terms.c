/* Runs of shards, and the sums over subtrees of them that are there at a time. */
#include "mirror/terms.h"

#include "mirror/shards.h"

struct lk_shard_run lk_shard_run_at_once(struct lk_shard_run run, int first, int most)
{
    const int end = run.first + run.count, stop = (first / most + 1) * most;
    return (struct lk_shard_run){first, (stop < end ? stop : end) - first};
}

int lk_terms_push(struct lk_subtree *open, int *count, struct lk_subtree next)
{
    int joins = 0;
    while (*count > 0 && lk_subtrees_join(open[*count - 1], next)) {
        next = open[--*count];
        next.count *= 2;
        joins++;
    }
    open[(*count)++] = next;
    return joins;
}

int lk_terms_held(struct lk_shard_run run, int most)
{
    struct lk_subtree open[LK_MOST_SUBTREES + 1], added[LK_MOST_SUBTREES];
    int count = 0, found = 0;
    for (int first = run.first; first < run.first + run.count;) {
        const struct lk_shard_run at_once = lk_shard_run_at_once(run, first, most);
        const int added_count = lk_subtrees_of(at_once.first, at_once.count, added);
        for (int i = 0; i < added_count; i++) {
            const int before = count, joins = lk_terms_push(open, &count, added[i]);
            const int held = joins > 0 ? before : before + 1;
            found = held > found ? held : found;
        }
        first += at_once.count;
    }
    return found;
}

int lk_terms_held_most(int shards, int most)
{
    int found = 1;
    for (int first = 0; first < shards; first++)
        for (int end = first + 1; end <= shards; end++) {
            const struct lk_shard_run run = {first, end - first};
            const int count = lk_terms_held(run, most);
            found = count > found ? count : found;
        }
    return found;
}
