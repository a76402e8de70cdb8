/* Parses networks and numbers of nodes. */
#include "base/status.h"

#include <hpctrain/plan.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};
static const unit rates[] = {{"kbit", 1e3 / 8}, {"mbit", 1e6 / 8}, {"gbit", 1e9 / 8},
                             {"MB/s", 1e6},     {"GB/s", 1e9},     {NULL, 0}};

/* Digits, optionally a point and more digits, a unit, up to `end`. */
static bool read_quantity(const char *text, const char *end, const unit *units, double *value)
{
    size_t digits = strspn(text, "0123456789"), length = digits;
    if (digits > 0 && text[digits] == '.') {
        size_t more = strspn(text + digits + 1, "0123456789");
        if (more == 0)
            return false;
        length += 1 + more;
    }
    if (digits == 0 || digits > 12 || text + length >= end)
        return false;
    for (const unit *u = units; u->name != NULL; u++) {
        size_t name = strlen(u->name);
        if ((size_t) (end - text) == length + name && strncmp(text + length, u->name, name) == 0) {
            *value = strtod(text, NULL) * u->factor;
            return true;
        }
    }
    return false;
}

hpct_status hpct_plan_parse_network(const char *text, double *latency_seconds,
                                    double *bytes_per_second)
{
    const char *comma = strchr(text, ',');
    double latency, rate;
    if (comma == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "'%s' is not LATENCY,BANDWIDTH, such as 50us,1gbit", text);
    if (!read_quantity(text, comma, times, &latency))
        return hpct_fail(HPCT_ERR_USAGE, "'%.*s' is not a latency: a number with ns, us, ms or s",
                         (int) (comma - text), text);
    if (!read_quantity(comma + 1, comma + strlen(comma), rates, &rate) || rate <= 0)
        return hpct_fail(
            HPCT_ERR_USAGE,
            "'%s' is not a bandwidth: a number above 0 with kbit, mbit, gbit, MB/s or GB/s",
            comma + 1);
    *latency_seconds = latency;
    *bytes_per_second = rate;
    return HPCT_OK;
}

/* ---- nodes ---- */

typedef struct list {
    const char *text; /* the whole text, for messages */
    int *nodes, most, count;
} list;

static hpct_status append(list *l, long number)
{
    if (l->count > 0 && number <= l->nodes[l->count - 1])
        return hpct_fail(HPCT_ERR_USAGE, "'%s': the numbers of nodes must rise", l->text);
    if (l->count == l->most)
        return hpct_fail(HPCT_ERR_USAGE, "'%s': more than %d numbers of nodes", l->text, l->most);
    l->nodes[l->count++] = (int) number;
    return HPCT_OK;
}

/* Digits only, 1 to HPCT_PLAN_MOST_NODES. */
static bool read_number(const char **text, long *number)
{
    size_t digits = strspn(*text, "0123456789");
    if (digits == 0 || digits > 9)
        return false;
    *number = strtol(*text, NULL, 10);
    *text += digits;
    return *number >= 1 && *number <= HPCT_PLAN_MOST_NODES;
}

hpct_status hpct_plan_parse_nodes(const char *text, int *nodes, int most, int *count)
{
    list l = {.text = text, .nodes = nodes, .most = most};
    hpct_status status = HPCT_OK;
    for (const char *at = text; status == HPCT_OK; at++) {
        long number, last;
        bool doubles = l.count > 0 && strncmp(at, "...,", 4) == 0;
        at += doubles ? 4 : 0;
        if (!read_number(&at, &number))
            return hpct_fail(HPCT_ERR_USAGE,
                             "'%s': '%s' should begin with a number of nodes, 1 to %d", text, at,
                             HPCT_PLAN_MOST_NODES);
        for (long n = doubles ? 2L * nodes[l.count - 1] : number; n < number && status == HPCT_OK;
             n *= 2)
            status = append(&l, n);
        if (status == HPCT_OK)
            status = append(&l, number);
        last = number;
        if (status == HPCT_OK && *at == '-') {
            at++;
            if (!read_number(&at, &last) || last <= number)
                return hpct_fail(HPCT_ERR_USAGE, "'%s': a range is FIRST-LAST, and rises", text);
        }
        for (long n = number + 1; n <= last && status == HPCT_OK; n++)
            status = append(&l, n);
        if (*at == '\0')
            break;
        if (*at != ',' && status == HPCT_OK)
            return hpct_fail(HPCT_ERR_USAGE, "'%s': '%s' should begin with a comma", text, at);
    }
    if (status == HPCT_OK)
        *count = l.count;
    return status;
}
