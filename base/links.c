/* Follows symbolic links one at a time. */
#include "base/links.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINKS 40

/* The target of `link`, relative to `path`. */
static char *join(const char *path, const char *link)
{
    const char *slash = strrchr(path, '/');
    size_t above = link[0] == '/' || slash == NULL ? 0 : (size_t) (slash + 1 - path);
    char *whole = malloc(above + strlen(link) + 1);
    if (whole == NULL)
        return NULL;
    memcpy(whole, path, above);
    strcpy(whole + above, link);
    return whole;
}

char *hpct_links_follow(const char *path)
{
    char link[PATH_MAX], *at = strdup(path);
    for (int i = 0; at != NULL && i < MAX_LINKS; i++) {
        ssize_t length = readlink(at, link, sizeof link - 1);
        if (length < 0)
            break;
        link[length] = '\0';
        char *next = join(at, link);
        free(at);
        at = next;
    }
    return at;
}
