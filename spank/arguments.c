/* Reads /proc/self/cmdline, whose words are NUL-terminated. */
#include "spank/arguments.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BYTES 65536
#define MAX_WORDS 1024

char **hpct_arguments_here(void)
{
    char **words = calloc(1, (MAX_WORDS + 1) * sizeof *words + MAX_BYTES + 1);
    if (words == NULL)
        return NULL;
    char *text = (char *) (words + MAX_WORDS + 1);
    int count = 0, fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, MAX_BYTES);
    for (ssize_t at = 0; at < size && count < MAX_WORDS; at += (ssize_t) strlen(text + at) + 1)
        words[count++] = text + at;
    if (fd >= 0)
        close(fd);
    if (count > 0)
        return words;
    free(words);
    return NULL;
}
