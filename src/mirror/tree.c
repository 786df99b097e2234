/* Cuts runs of shards into subtrees of the fixed tree. */
#include "mirror/tree.h"

int lk_subtrees_of(int first, int count, struct lk_subtree subtrees[LK_MOST_SUBTREES])
{
    int made = 0;
    while (count > 0) {
        int size = 1;
        while (2 * size <= count && first % (2 * size) == 0)
            size *= 2;
        subtrees[made++] = (struct lk_subtree){first, size};
        first += size;
        count -= size;
    }
    return made;
}

bool lk_subtrees_join(struct lk_subtree a, struct lk_subtree b)
{
    return a.count == b.count && a.first + a.count == b.first && a.first % (2 * a.count) == 0;
}
