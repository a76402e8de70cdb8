/* Words of a command line, in one struct without allocation. */
#include "spank/argv.h"

#include <stdarg.h>
#include <stdio.h>

/* execve does not change what it is given; its type is older than const. */
void hpct_spank_argv_add(hpct_spank_argv *argv, const char *word)
{
    union {
        const char *in;
        char *out;
    } both = {.in = word};
    if (argv->count < HPCT_SPANK_ARGV_WORDS)
        argv->words[argv->count++] = both.out;
}

void hpct_spank_argv_add_option(hpct_spank_argv *argv, const char *option, const char *value)
{
    if (value == NULL)
        return;
    hpct_spank_argv_add(argv, option);
    hpct_spank_argv_add(argv, value);
}

void hpct_spank_argv_add_printed(hpct_spank_argv *argv, const char *option, const char *format, ...)
{
    char *text = argv->text + argv->used;
    size_t room = sizeof argv->text - argv->used;
    va_list values;
    va_start(values, format);
    int size = vsnprintf(text, room, format, values);
    va_end(values);
    if (size < 0 || (size_t) size >= room)
        return;
    argv->used += (size_t) size + 1;
    hpct_spank_argv_add_option(argv, option, text);
}
