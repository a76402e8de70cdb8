/* Memory plan by live ranges. Quadratic to cubic in the number of buffers, which is some
 * hundreds. */
#include "nn/plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

#define UNPLACED SIZE_MAX

static size_t rounded(size_t bytes)
{
    return (bytes + 63) & ~(size_t) 63;
}

static bool collides(const hpct_run_plan_item *a, const hpct_run_plan_item *b, size_t offset)
{
    return b->offset != UNPLACED && a->first <= b->last && b->first <= a->last &&
           offset < b->offset + rounded(b->bytes) && b->offset < offset + rounded(a->bytes);
}

/* Moves up past each collision until there is none; offsets only grow, so it ends. */
static size_t lowest_free(const hpct_run_plan_item *items, int count,
                          const hpct_run_plan_item *item)
{
    size_t offset = 0;
    for (int i = 0; i < count; i++) {
        if (collides(item, &items[i], offset)) {
            offset = items[i].offset + rounded(items[i].bytes);
            i = -1;
        }
    }
    return offset;
}

size_t hpct_plan(hpct_run_plan_item *items, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        items[i].offset = items[i].bytes == 0 ? 0 : UNPLACED;
    for (;;) {
        hpct_run_plan_item *next = NULL;
        for (int i = 0; i < count; i++) {
            if (items[i].offset == UNPLACED && (next == NULL || items[i].bytes > next->bytes))
                next = &items[i];
        }
        if (next == NULL)
            return total;
        next->offset = lowest_free(items, count, next);
        if (next->offset + rounded(next->bytes) > total)
            total = next->offset + rounded(next->bytes);
    }
}
