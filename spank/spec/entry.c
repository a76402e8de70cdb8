/* SRC[:DST] lists. */
#include "spank/spec/entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define INSTEAD "write the whole path, such as /home/me/data"

/* Up to an unescaped byte of `ends`, where *text is left; NULL if out of memory. */
static char *cut(const char **text, const char *ends)
{
    const char *p = *text;
    char *part = malloc(strlen(p) + 1), *out = part;
    if (part == NULL)
        return NULL;
    while (*p != '\0' && strchr(ends, *p) == NULL) {
        if (*p == '\\' && (p[1] == ',' || p[1] == ':' || p[1] == '\\'))
            p++;
        *out++ = *p++;
    }
    *out = '\0';
    *text = p;
    return part;
}

hpct_status hpct_spec_entry_split(const char **text, const char *ends, char **src, char **dst)
{
    char both[8] = ":";
    strcat(both, ends);
    *src = cut(text, both);
    const bool has_dst = **text == ':';
    *text += has_dst;
    *dst = has_dst ? cut(text, ends) : NULL;
    return *src == NULL || (has_dst && *dst == NULL) ? hpct_fail_memory(0) : HPCT_OK;
}

void hpct_spec_entry_strip(char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        path[--size] = '\0';
}

const char *hpct_spec_entry_last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

bool hpct_spec_entry_is_below(const char *path)
{
    if (*path == '\0')
        return false;
    for (const char *p = path;; p++) {
        size_t size = strcspn(p, "/");
        if (size == 0 || size > 255 || (size == 1 && p[0] == '.') ||
            (size == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += size;
        if (*p == '\0')
            return true;
    }
}

bool hpct_spec_entry_is_within(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    return strncmp(path, folder, size) == 0 && (path[size] == '\0' || path[size] == '/');
}

/* The place of the first character that a shell would have replaced, or NULL. */
static const char *for_a_shell(const char *path)
{
    if (path[0] == '~')
        return path;
    for (const char *p = path; *p != '\0'; p++) {
        bool named = (p[1] >= 'a' && p[1] <= 'z') || (p[1] >= 'A' && p[1] <= 'Z') ||
                     (p[1] >= '0' && p[1] <= '9') ||
                     (p[1] != '\0' && strchr("_{(@*#?$!-", p[1]) != NULL);
        if (*p == '`' || (*p == '$' && named))
            return p;
    }
    return NULL;
}

hpct_status hpct_spec_entry_check_shell(const char *path, const char *instead)
{
    size_t size = strlen(path);
    if (size > 0 && path[size - 1] == '\r')
        return hpct_fail(HPCT_ERR_USAGE,
                         "'%.*s' ends with a carriage return, as lines of a text from Windows do: "
                         "take it away, as dos2unix does",
                         (int) (size > 200 ? 200 : size - 1), path);
    const char *at = for_a_shell(path);
    if (at == NULL)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE, "'%.200s': no shell replaces '%c' there: %s", path, *at,
                     instead);
}

hpct_status hpct_spec_entry_check_address(const char *src, const char *dst)
{
    size_t size = strspn(src, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    if (size == 0 || src[size] != '\0' || strncmp(dst, "//", 2) != 0)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "'%.100s:%.300s' is an address: only files and folders that the nodes see can "
                     "be given; what is elsewhere is to be fetched, or sent, by a command of its "
                     "own, such as curl, aws or rclone",
                     src, dst);
}

static hpct_status check(const hpct_spec_stage_list *list, const hpct_spec_stage_entry *entry)
{
    if (*entry->src == '\0')
        return hpct_fail(HPCT_ERR_USAGE, "there is an entry without a source: write "
                                         "SRC[:DST][,SRC[:DST]...]");
    HPCT_TRY(hpct_spec_entry_check_shell(entry->src, INSTEAD));
    HPCT_TRY(hpct_spec_entry_check_shell(entry->dst, INSTEAD));
    HPCT_TRY(hpct_spec_entry_check_address(entry->src, entry->dst));
    if (!hpct_spec_entry_is_below(entry->dst))
        return hpct_fail(HPCT_ERR_USAGE,
                         "destination '%s' must be a path below $SLURM_TMPDIR, without '..': write "
                         "SRC:DST with DST such as data/train",
                         entry->dst);
    if (hpct_spec_entry_is_within(entry->dst, HPCT_SPEC_PRIVATE_FOLDER))
        return hpct_fail(HPCT_ERR_USAGE, "destination '%s' is kept for hpc-train itself",
                         entry->dst);
    for (int i = 0; i < list->count; i++) {
        const char *other = list->entries[i].dst;
        if (hpct_spec_entry_is_within(entry->dst, other) ||
            hpct_spec_entry_is_within(other, entry->dst))
            return hpct_fail(HPCT_ERR_USAGE,
                             "'%s' and '%s' would both be put at '%s': give them destinations of "
                             "their own with SRC:DST",
                             list->entries[i].src, entry->src,
                             strlen(other) < strlen(entry->dst) ? other : entry->dst);
    }
    return HPCT_OK;
}

static hpct_status add(hpct_spec_stage_list *list, const char **text, const char *ends)
{
    hpct_spec_stage_entry entry, *entries;
    hpct_status status = hpct_spec_entry_split(text, ends, &entry.src, &entry.dst);
    if (status == HPCT_OK) {
        hpct_spec_entry_strip(entry.src);
        if (entry.dst == NULL)
            entry.dst = strdup(hpct_spec_entry_last_part(entry.src));
        entries = realloc(list->entries, (size_t) (list->count + 1) * sizeof *list->entries);
        if (entries != NULL)
            list->entries = entries;
        status = entry.dst == NULL || entries == NULL ? hpct_fail_memory(0) : HPCT_OK;
    }
    if (status == HPCT_OK) {
        hpct_spec_entry_strip(entry.dst);
        status = check(list, &entry);
    }
    if (status == HPCT_OK) {
        list->entries[list->count++] = entry;
        return HPCT_OK;
    }
    free(entry.src);
    free(entry.dst);
    return status;
}

hpct_status hpct_spec_stage_list_add(hpct_spec_stage_list *list, const char *text)
{
    return add(list, &text, "");
}

hpct_status hpct_spec_stage_list_parse(const char *text, hpct_spec_stage_list *out)
{
    hpct_status status;
    *out = (hpct_spec_stage_list){0};
    do {
        status = add(out, &text, ",");
    } while (status == HPCT_OK && *text++ == ',');
    if (status != HPCT_OK)
        hpct_spec_stage_list_free(out);
    return status;
}

void hpct_spec_stage_list_free(hpct_spec_stage_list *list)
{
    for (int i = 0; i < list->count; i++) {
        free(list->entries[i].src);
        free(list->entries[i].dst);
    }
    free(list->entries);
    *list = (hpct_spec_stage_list){0};
}
