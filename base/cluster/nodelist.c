/* Host-list expansion. Each comma-separated item is split into literals and bracket groups, over
 * which an odometer iterates. Limits are checked before anything is expanded. */
#include "base/cluster/nodelist.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"

#define MAX_GROUPS 16
#define MAX_RANGES 100000
#define MAX_NUMBER 999999999999L
#define MAX_WIDTH 18

/* lo-hi, each printed with at least `width` digits */
typedef struct range {
    long lo, hi;
    int width;
} range;

typedef struct group {
    const char *before; /* literal text before the bracket */
    int before_size;
    int first_range, num_ranges; /* indices in item.ranges */
    long count;                  /* numbers in the group */
    int at_range;                /* current range, and number in it */
    long at_number;
} group;

typedef struct item {
    group groups[MAX_GROUPS];
    int num_groups;
    range *ranges;
    int num_ranges, max_ranges;
    const char *after; /* literal text after the last bracket */
    int after_size;
} item;

typedef struct names {
    char **list;
    int count, capacity;
} names;

void hpct_cluster_names_free(char **list, int count)
{
    if (list == NULL)
        return;
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

static hpct_status add_name(names *out, const char *text)
{
    if (out->count == out->capacity) {
        int capacity = out->capacity == 0 ? 16 : out->capacity * 2;
        char **list = realloc(out->list, (size_t) capacity * sizeof *list);
        if (list == NULL)
            return hpct_fail_memory((size_t) capacity * sizeof *list);
        out->list = list;
        out->capacity = capacity;
    }
    out->list[out->count] = strdup(text);
    if (out->list[out->count] == NULL)
        return hpct_fail_memory(strlen(text) + 1);
    out->count++;
    return HPCT_OK;
}

/* Characters allowed in host names outside brackets. Slurm is less strict, but other characters
 * would end up in host:port strings and in other programs' parsers. */
static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

static hpct_status add_range(item *it, range r)
{
    if (it->num_ranges == it->max_ranges) {
        int max = it->max_ranges == 0 ? 16 : it->max_ranges * 2;
        if (max > MAX_RANGES * 2)
            return hpct_fail(HPCT_ERR_CONFIG, "host list has too many ranges");
        range *ranges = realloc(it->ranges, (size_t) max * sizeof *ranges);
        if (ranges == NULL)
            return hpct_fail_memory((size_t) max * sizeof *ranges);
        it->ranges = ranges;
        it->max_ranges = max;
    }
    it->ranges[it->num_ranges++] = r;
    return HPCT_OK;
}

/* One "7" or "009-011"; advances *text. */
static hpct_status scan_range(const char **text, const char *whole, range *out)
{
    const char *start = *text, *p = start;
    range r = {0};
    if (!hpct_number_scan(&p, MAX_NUMBER, &r.lo) || p - start > MAX_WIDTH)
        return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s': a number is wanted at '%.40s'",
                         whole, start);
    r.width = (int) (p - start);
    r.hi = r.lo;
    if (*p == '-') {
        const char *high = ++p;
        if (!hpct_number_scan(&p, MAX_NUMBER, &r.hi) || p - high > MAX_WIDTH)
            return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s': a number is wanted at '%.40s'",
                             whole, high);
    }
    if (r.hi < r.lo)
        return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s': range %ld-%ld runs backwards", whole,
                         r.lo, r.hi);
    *text = p;
    *out = r;
    return HPCT_OK;
}

/* The contents of one bracket; *text is after '[' and advances past ']'. */
static hpct_status scan_group(const char **text, const char *whole, item *it, group *g)
{
    g->first_range = it->num_ranges;
    for (;;) {
        range r = {0};
        hpct_status status = scan_range(text, whole, &r);
        if (status == HPCT_OK)
            status = add_range(it, r);
        if (status != HPCT_OK)
            return status;
        g->num_ranges++;
        if (r.hi - r.lo >= HPCT_CLUSTER_MAX_NODES ||
            (g->count += r.hi - r.lo + 1) > HPCT_CLUSTER_MAX_NODES)
            return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s' has more than %d hosts", whole,
                             HPCT_CLUSTER_MAX_NODES);
        char c = **text;
        if (c == '\0')
            return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s': ']' is missing", whole);
        if (c != ',' && c != ']')
            return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s': ',' or ']' is wanted at '%.40s'",
                             whole, *text);
        (*text)++;
        if (c == ']')
            return HPCT_OK;
    }
}

/* Parses the item at *text; *text advances to a top-level comma or the end. */
static hpct_status scan_item(const char **text, const char *whole, item *it)
{
    it->num_groups = 0;
    it->num_ranges = 0;
    const char *p = *text, *literal = p;
    for (;;) {
        while (is_name_byte(*p))
            p++;
        if (p - literal > HPCT_CLUSTER_MAX_NODE_NAME)
            return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s': a name is too long", whole);
        if (*p != '[')
            break;
        if (it->num_groups == MAX_GROUPS)
            return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s': more than %d bracket groups",
                             whole, MAX_GROUPS);
        group *g = &it->groups[it->num_groups++];
        *g = (group){.before = literal, .before_size = (int) (p - literal)};
        p++;
        HPCT_TRY(scan_group(&p, whole, it, g));
        literal = p;
    }
    if (*p != ',' && *p != '\0')
        return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s': '%c' cannot stand in a host's name",
                         whole, *p);
    it->after = literal;
    it->after_size = (int) (p - literal);
    *text = p;
    return HPCT_OK;
}

static hpct_status write_name(const item *it, const char *whole, names *out)
{
    char name[HPCT_CLUSTER_MAX_NODE_NAME + 1];
    size_t used = 0;
    for (int i = 0; i <= it->num_groups; i++) {
        size_t left = sizeof name - used;
        const group *g = i < it->num_groups ? &it->groups[i] : NULL;
        int wrote = g == NULL
                        ? snprintf(name + used, left, "%.*s", it->after_size, it->after)
                        : snprintf(name + used, left, "%.*s%0*ld", g->before_size, g->before,
                                   it->ranges[g->first_range + g->at_range].width, g->at_number);
        if (wrote < 0 || (size_t) wrote >= left)
            return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s': a name is too long", whole);
        used += (size_t) wrote;
    }
    return add_name(out, name);
}

/* Advances a group to its next number; false on wrap-around. */
static bool turn(const item *it, group *g)
{
    const range *r = &it->ranges[g->first_range + g->at_range];
    if (g->at_number < r->hi) {
        g->at_number++;
        return true;
    }
    bool more = g->at_range + 1 < g->num_ranges;
    g->at_range = more ? g->at_range + 1 : 0;
    g->at_number = it->ranges[g->first_range + g->at_range].lo;
    return more;
}

static hpct_status expand_item(item *it, const char *whole, names *out)
{
    long total = 1;
    for (int i = 0; i < it->num_groups; i++) {
        group *g = &it->groups[i];
        g->at_number = it->ranges[g->first_range].lo;
        if (g->count > HPCT_CLUSTER_MAX_NODES / total ||
            total * g->count > HPCT_CLUSTER_MAX_NODES - out->count)
            return hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s' has more than %d hosts", whole,
                             HPCT_CLUSTER_MAX_NODES);
        total *= g->count;
    }
    for (long n = 0; n < total; n++) {
        HPCT_TRY(write_name(it, whole, out));
        int last = it->num_groups - 1;
        if (last < 0 || turn(it, &it->groups[last]))
            continue;
        for (int i = 0; i < last && !turn(it, &it->groups[i]); i++)
            ;
    }
    return HPCT_OK;
}

hpct_status hpct_cluster_nodelist_expand(const char *text, char ***list, int *count)
{
    hpct_status status = HPCT_OK;
    names out = {0};
    item it = {0};
    const char *p = text;
    for (;;) {
        if (*p != ',' && *p != '\0') {
            status = scan_item(&p, text, &it);
            if (status == HPCT_OK && out.count >= HPCT_CLUSTER_MAX_NODES)
                status = hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s' has more than %d hosts",
                                   text, HPCT_CLUSTER_MAX_NODES);
            if (status == HPCT_OK)
                status = expand_item(&it, text, &out);
            if (status != HPCT_OK)
                goto fail;
        }
        if (*p == '\0')
            break;
        p++; /* the comma; empty items are skipped, as by scontrol */
    }
    if (out.count == 0) {
        status = hpct_fail(HPCT_ERR_CONFIG, "host list '%.200s' is empty", text);
        goto fail;
    }
    free(it.ranges);
    *list = out.list;
    *count = out.count;
    return HPCT_OK;
fail:
    free(it.ranges);
    hpct_cluster_names_free(out.list, out.count);
    return status;
}
