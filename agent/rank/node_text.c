/* Parsers that accept only complete numbers, as files are read up to a limit. */
#include "agent/rank/node_text.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define CPU_FIELDS 8 /* user nice system idle iowait irq softirq steal; guests are in user */
#define STEAL 7

/* Reads a number and moves *text behind it; false, without moving, if there is none or it is too
 * large. */
static bool take_number(const char **text, uint64_t *out)
{
    char *end;
    const char *from = *text + strspn(*text, " \t");
    if (!isdigit((unsigned char) *from))
        return false;
    errno = 0;
    unsigned long long value = strtoull(from, &end, 10);
    if (errno != 0)
        return false;
    *out = value;
    *text = end;
    return true;
}

bool hpct_rank_node_text_number(const char *text, uint64_t *out)
{
    uint64_t value;
    if (!take_number(&text, &value) || text[strspn(text, " \t\n")] != '\0')
        return false;
    *out = value;
    return true;
}

/* ---- /proc/stat ---- */

/* One line: "cpu3 1 2 3 …\n". */
static bool take_cpu(const char *line, const cpu_set_t *mask, size_t bytes,
                     hpct_rank_cpu_ticks *sum)
{
    uint64_t cpu, values[CPU_FIELDS];
    const char *at = line + strlen("cpu");
    if (!isdigit((unsigned char) *at) || !take_number(&at, &cpu) || cpu >= 8 * bytes ||
        !CPU_ISSET_S((size_t) cpu, bytes, mask))
        return false;
    for (int i = 0; i < CPU_FIELDS; i++) {
        if (!take_number(&at, &values[i]))
            return false;
    }
    for (int i = 0; i < CPU_FIELDS; i++)
        sum->all += values[i];
    sum->stolen += values[STEAL];
    return true;
}

bool hpct_rank_node_text_cpus(const char *text, const cpu_set_t *mask, size_t bytes,
                              hpct_rank_cpu_ticks *out)
{
    bool any = false;
    *out = (hpct_rank_cpu_ticks){0};
    while (strncmp(text, "cpu", 3) == 0) {
        const char *end = strchr(text, '\n');
        if (end == NULL) /* cut */
            break;
        any |= take_cpu(text, mask, bytes, out);
        text = end + 1;
    }
    return any;
}

/* ---- /proc/PID/stat ---- */

static void copy_name(char *to, size_t size, const char *from, size_t length)
{
    length = length < size ? length : size - 1;
    for (size_t i = 0; i < length; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[length] = '\0';
}

static bool take_int(const char **text, int *out)
{
    uint64_t value;
    if (!take_number(text, &value) || value > INT_MAX)
        return false;
    *out = (int) value;
    return true;
}

/* Moves behind `count` fields, whatever they are. */
static const char *skip_fields(const char *at, int count)
{
    for (; count > 0 && *at != '\0'; count--) {
        at += strspn(at, " ");
        at += strcspn(at, " ");
    }
    return at;
}

/* The name may have blanks and parentheses: it ends at the last one. */
bool hpct_rank_node_text_process(const char *text, hpct_rank_process_text *out)
{
    const char *at = text, *open = strchr(text, '('), *close = strrchr(text, ')');
    hpct_rank_process_text p = {0};
    uint64_t user, kernel;
    if (open == NULL || close == NULL || close < open || !take_int(&at, &p.pid))
        return false;
    copy_name(p.name, sizeof p.name, open + 1, (size_t) (close - open - 1));
    at = skip_fields(close + 1, 1); /* state */
    if (!take_int(&at, &p.parent))
        return false;
    at = skip_fields(at, 9);
    if (!take_number(&at, &user) || !take_number(&at, &kernel))
        return false;
    at = skip_fields(at, 6);
    if (!take_number(&at, &p.started))
        return false;
    at = skip_fields(at, 16);
    if (!take_int(&at, &p.cpu))
        return false;
    p.ticks = user + kernel;
    *out = p;
    return true;
}

/* ---- cgroups ---- */

bool hpct_rank_node_text_quota(const char *text, hpct_rank_quota_text *out)
{
    bool periods = false, throttled = false;
    for (; text != NULL && *text != '\0'; text = strchr(text, '\n')) {
        text += *text == '\n';
        const char *value = text + strcspn(text, " \n");
        size_t length = (size_t) (value - text);
        if (length == 10 && strncmp(text, "nr_periods", length) == 0)
            periods = take_number(&value, &out->periods);
        else if (length == 12 && strncmp(text, "nr_throttled", length) == 0)
            throttled = take_number(&value, &out->throttled);
    }
    return periods && throttled;
}

static bool has_word(const char *list, const char *end, const char *word)
{
    size_t length = strlen(word);
    while (list < end) {
        size_t here = strcspn(list, ",:");
        if (here == length && strncmp(list, word, length) == 0)
            return true;
        list += here + 1;
    }
    return false;
}

/* "0::/path" (version 2), "4:cpu,cpuacct:/path" (version 1). */
const char *hpct_rank_node_text_cgroup(const char *line, bool *unified)
{
    const char *list = strchr(line, ':'), *path = list != NULL ? strchr(list + 1, ':') : NULL;
    if (path == NULL || path[1] != '/' || strstr(path, "..") != NULL)
        return NULL;
    *unified = path == list + 1;
    return *unified || has_word(list + 1, path, "cpu") ? path + 1 : NULL;
}

/* ---- /proc/PID/environ ---- */

const char *hpct_rank_node_text_variable(const char *block, size_t size, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = block; at < block + size; at += strlen(at) + 1) {
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    }
    return NULL;
}
