/* Strict decimal numbers: blanks, signs and overflow, which strtol accepts, are errors. */
#include "base/number.h"

bool hpct_number_scan(const char **text, long max, long *value)
{
    const char *p = *text;
    long number = 0;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        long digit = *p - '0';
        if (digit > max || number > (max - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *text = p;
    *value = number;
    return true;
}

bool hpct_number_parse(const char *text, long min, long max, long *value)
{
    long number = 0;
    if (!hpct_number_scan(&text, max, &number) || *text != '\0' || number < min)
        return false;
    *value = number;
    return true;
}
