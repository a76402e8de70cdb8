/* Commands in messages. */
#include "base/hint.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool hpct_hint_lasts(const char *path)
{
    const char *folder = getenv("SLURM_TMPDIR");
    char *full = path != NULL ? realpath(path, NULL) : NULL,
         *gone = folder != NULL ? realpath(folder, NULL) : NULL;
    size_t length = gone != NULL ? strlen(gone) : 0;
    bool below = gone != NULL && full != NULL && strncmp(full, gone, length) == 0 &&
                 (full[length] == '/' || full[length] == '\0');
    bool lasts = path == NULL || (full != NULL && !below);
    free(full);
    free(gone);
    return lasts;
}

static bool is_plain(const char *word)
{
    return word[0] != '\0' && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789_@%+=:,./-") == strlen(word);
}

void hpct_print_word(FILE *out, const char *word)
{
    if (is_plain(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word != '\0'; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, out);
    fputc('\'', out);
}

void hpct_hint_word(FILE *stream, const char *option, const char *word)
{
    if (word == NULL)
        return;
    fprintf(stream, option != NULL ? " %s " : " ", option);
    hpct_print_word(stream, word);
}
