/* Sizes. */
#include "spank/spec/bytes.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

bool hpct_spec_bytes_parse(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    const char *p = text, *unit = NULL;
    long number = 0;
    int shift = 0;
    if (!hpct_number_scan(&p, LONG_MAX, &number))
        return false;
    if (*p != '\0') {
        unit = strchr(units, *p);
        if (unit == NULL || p[1] != '\0')
            return false;
        shift = 10 * (int) (unit - units + 1);
    }
    if (number > LONG_MAX >> shift)
        return false;
    *bytes = (uint64_t) number << shift;
    return true;
}

const char *hpct_spec_bytes_show(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double) bytes;
    int unit = 0;
    for (; value >= 999.5 && unit < 6; unit++)
        value /= 1000;
    snprintf(text, size, unit > 0 && value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}
