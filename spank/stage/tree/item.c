/* Rules for paths and for the text of symbolic links. */
#include "spank/stage/tree/item.h"

#include <limits.h>
#include <string.h>

static bool is_dots(const char *part, size_t size)
{
    return (size == 1 && part[0] == '.') || (size == 2 && part[0] == '.' && part[1] == '.');
}

bool hpct_item_path_ok(const char *path)
{
    const char *p = path;
    if (*path == '\0')
        return true;
    for (int depth = 1; depth <= HPCT_ITEM_DEPTH; depth++) {
        size_t size = strcspn(p, "/");
        if (size == 0 || size > NAME_MAX || is_dots(p, size))
            return false;
        p += size;
        if (*p++ == '\0')
            return p - path <= PATH_MAX;
    }
    return false;
}

bool hpct_item_link_stays(const char *path, const char *text)
{
    int depth = 0;
    bool names = false; /* a name before ".." may be a link, and ".." leave its target */
    if (*text == '\0' || *text == '/' || strlen(text) >= PATH_MAX || *path == '\0')
        return false;
    for (const char *p = path; *p != '\0'; p++)
        depth += *p == '/';
    for (const char *p = text; *p != '\0';) {
        size_t size = strcspn(p, "/");
        if (size == 2 && p[0] == '.' && p[1] == '.') {
            if (names || --depth < 0)
                return false;
        } else if (!is_dots(p, size)) {
            names = true;
        }
        p += size;
        p += strspn(p, "/");
    }
    return true;
}
