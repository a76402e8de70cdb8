/* Parses role lists. */
#include "base/cluster/roles.h"

#include <string.h>

#include "base/cluster/tasks.h"
#include "base/number.h"
#include "base/status.h"

static const struct {
    const char *name;
    int most;
} known[HPCT_CLUSTER_MAX_ROLES] = {
    {"worker", HPCT_CLUSTER_MAX_TASKS},
    {"ps", HPCT_CLUSTER_MAX_TASKS},
    {"chief", 1},
    {"evaluator", 1},
};

static bool is_worker(const hpct_cluster_role *role)
{
    return role->name == known[0].name;
}

/* Adds one role, "ps:2", of length `size`. */
static hpct_status add(const char *text, size_t size, hpct_cluster_roles *out)
{
    const char *colon = memchr(text, ':', size);
    size_t length = colon == NULL ? size : (size_t) (colon - text), i = 0;
    int shown = size > 100 ? 100 : (int) size;
    long count = 1;
    while (i < HPCT_CLUSTER_MAX_ROLES &&
           (strlen(known[i].name) != length || strncmp(known[i].name, text, length) != 0))
        i++;
    if (i == HPCT_CLUSTER_MAX_ROLES)
        return hpct_fail(
            HPCT_ERR_USAGE,
            "'%.*s' is not a role: write a list of worker, ps, chief and evaluator, such "
            "as ps:2,worker:6,chief",
            shown, text);
    if (colon != NULL) {
        const char *digits = colon + 1;
        if (!hpct_number_scan(&digits, HPCT_CLUSTER_MAX_TASKS, &count) || digits != text + size ||
            count == 0)
            return hpct_fail(HPCT_ERR_USAGE, "'%.*s': a number of tasks from 1 on must follow ':'",
                             shown, text);
    } else if (i == 0) {
        count = 0;
    }
    if (count > known[i].most)
        return hpct_fail(HPCT_ERR_USAGE, "'%.*s': there can be at most one %s", shown, text,
                         known[i].name);
    for (int n = 0; n < out->count; n++) {
        if (out->list[n].name == known[i].name)
            return hpct_fail(HPCT_ERR_USAGE, "%s is there twice", known[i].name);
    }
    out->list[out->count++] = (hpct_cluster_role){.name = known[i].name, .count = (int) count};
    return HPCT_OK;
}

hpct_status hpct_cluster_roles_parse(const char *text, hpct_cluster_roles *out)
{
    hpct_cluster_roles roles = {.count = 0};
    for (const char *p = text;; p++) {
        size_t size = strcspn(p, ",");
        HPCT_TRY(add(p, size, &roles));
        p += size;
        if (*p == '\0')
            break;
    }
    *out = roles;
    return HPCT_OK;
}

hpct_status hpct_cluster_roles_fit(const hpct_cluster_roles *roles, int size,
                                   hpct_cluster_roles *out)
{
    hpct_cluster_roles fit = *roles;
    hpct_cluster_role *open = NULL;
    long sum = 0;
    if (fit.count == 0) {
        *out = (hpct_cluster_roles){.list = {{.name = known[0].name, .count = size}}, .count = 1};
        return HPCT_OK;
    }
    for (int i = 0; i < fit.count; i++) {
        sum += fit.list[i].count;
        if (is_worker(&fit.list[i]) && fit.list[i].count == 0)
            open = &fit.list[i];
    }
    if (open != NULL ? sum >= size : sum != size)
        return hpct_fail(
            HPCT_ERR_CONFIG,
            "--hpc-train-roles: the roles are %s%ld tasks, but the step has %d: change "
            "the list, or the number of tasks (-n)",
            open == NULL ? "" : "at least ", open == NULL ? sum : sum + 1, size);
    if (open != NULL)
        open->count = size - (int) sum;
    *out = fit;
    return HPCT_OK;
}

int hpct_cluster_roles_of(const hpct_cluster_roles *roles, int rank, int *index)
{
    int role = 0;
    while (role < roles->count - 1 && rank >= roles->list[role].count)
        rank -= roles->list[role++].count;
    *index = rank;
    return role;
}
