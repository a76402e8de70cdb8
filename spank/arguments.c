/* Reads /proc/self/cmdline, whose words are NUL-terminated, and scripts. */
#include <config.h>

#include "spank/arguments.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES 65536
#define MAX_WORDS 1024
#define MAX_SCRIPT (64 << 20) /* a self-extracting script may be a single long line */

char *const *hpct_spank_arguments_here(void)
{
    static char text[MAX_BYTES + 1], *words[MAX_WORDS + 1];
    int count = 0, fd = words[0] != NULL ? -1 : open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, MAX_BYTES);
    for (ssize_t at = 0; at < size && count < MAX_WORDS; at += (ssize_t) strlen(text + at) + 1)
        words[count++] = text + at;
    if (fd >= 0)
        close(fd);
    return words;
}

bool hpct_spank_arguments_call(char *const *arguments, const char *program)
{
    const char *slash = arguments[0] == NULL ? NULL : strrchr(arguments[0], '/');
    return arguments[0] != NULL && strcmp(slash == NULL ? arguments[0] : slash + 1, program) == 0;
}

hpct_spank_word hpct_spank_word_scan(const char *text, const char *alone)
{
    hpct_spank_word word = {0};
    if (text[0] != '-' || text[1] == '\0' || strcmp(text, "--") == 0)
        return word;
    word.is_option = true;
    if (text[1] == '-') {
        word.name = text + 2;
        word.size = strcspn(word.name, "=");
        word.value = word.name[word.size] == '=' ? word.name + word.size + 1 : NULL;
    } else {
        const char *letter = text + 1 + strspn(text + 1, alone);
        word.letter = *letter;
        word.value = *letter != '\0' && letter[1] != '\0' ? letter + 1 : NULL;
    }
    return word;
}

bool hpct_spank_word_is(const hpct_spank_word *word, char letter, const char *name)
{
    if (word->name != NULL)
        return strlen(name) == word->size && strncmp(word->name, name, word->size) == 0;
    return letter != '\0' && word->letter == letter;
}

/* A FIFO is not opened, as that would wake its writer. */
FILE *hpct_spank_script_open(const char *path)
{
    struct stat info;
    char start[2] = "";
    int fd = stat(path, &info) == 0 && S_ISREG(info.st_mode)
                 ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                 : -1;
    bool is = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
              info.st_size <= MAX_SCRIPT && pread(fd, start, 2, 0) == 2 &&
              memcmp(start, "#!", 2) == 0;
    FILE *script = is ? fdopen(fd, "r") : NULL;
    if (script == NULL && fd >= 0)
        close(fd);
    return script;
}

const char *hpct_spank_script_options(const char *line)
{
    const size_t size = strlen("#SBATCH");
    bool is = strncmp(line, "#SBATCH", size) == 0 && isspace((unsigned char) line[size]);
    return is ? line + size : NULL;
}

bool hpct_spank_script_is_command(const char *line)
{
    line += strspn(line, " \t\r\n");
    return *line != '\0' && *line != '#';
}
