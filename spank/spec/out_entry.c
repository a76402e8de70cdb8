/* SRC:DST lists and their patterns. */
#include <config.h>

#include "spank/spec/out_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "spank/spec/entry.h"

#define MAX_WIDTH 10 /* digits of a number, as sbatch has it */
#define INSTEAD                                                                                    \
    "write the whole path, such as /home/me/results-%j, with %j for the job, %s the step, %n the " \
    "node's number, %N its name, %t the task, %A and %a a job array and the number in it"

/* ---- patterns -------------------------------------------------------------------------------- */

/* One pattern behind a percent sign: its letter, its width; returns what follows it. */
static const char *read_pattern(const char *p, char *letter, int *width)
{
    *width = 0;
    for (; *p >= '0' && *p <= '9' && *width <= MAX_WIDTH; p++)
        *width = *width * 10 + (*p - '0');
    *letter = *p;
    return *p == '\0' ? p : p + 1;
}

static bool has_pattern(const char *text, const char *letters)
{
    for (const char *p = text; (p = strchr(p, '%')) != NULL;) {
        char letter;
        int width;
        p = read_pattern(p + 1, &letter, &width);
        if (letter != '\0' && strchr(letters, letter) != NULL)
            return true;
    }
    return false;
}

static hpct_status check_patterns(const char *text)
{
    for (const char *p = text; (p = strchr(p, '%')) != NULL;) {
        char letter;
        int width;
        const char *start = p;
        p = read_pattern(p + 1, &letter, &width);
        if (letter == '\0' || strchr("jAasnNt%", letter) == NULL || width > MAX_WIDTH)
            return hpct_fail(HPCT_ERR_USAGE,
                             "'%.*s' in '%.200s' stands for nothing: there are %%j (job), %%A "
                             "(job array), %%a (number in the array), %%s (step), %%n (number of "
                             "the node), %%N (name of the node), %%t (task), and %%%% for a "
                             "percent sign",
                             (int) (p - start), start, text);
    }
    return HPCT_OK;
}

char *hpct_spec_out_name(const char *pattern, const hpct_spec_out_names *names)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    for (const char *p = pattern; *p != '\0';) {
        char letter;
        int width;
        if (*p != '%') {
            fputc(*p++, out);
            continue;
        }
        p = read_pattern(p + 1, &letter, &width);
        if (letter == 'j')
            fprintf(out, "%0*u", width, names->job);
        else if (letter == 'A')
            fprintf(out, "%0*u", width, names->array.job);
        else if (letter == 'a')
            fprintf(out, "%0*u", width, names->array.task);
        else if (letter == 'n')
            fprintf(out, "%0*u", width, names->node);
        else if (letter == 't')
            fprintf(out, "%0*u", width, names->task);
        else if (letter == 's' && names->step[strspn(names->step, "0123456789")] == '\0')
            fprintf(out, "%0*lu", width, strtoul(names->step, NULL, 10));
        else
            fputs(letter == 's' ? names->step : letter == 'N' ? names->host : "%", out);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *hpct_spec_out_path(const char *name, const char *cwd)
{
    char *path = NULL;
    if (*name == '/')
        return strdup(name);
    return asprintf(&path, "%s/%s", cwd == NULL ? "" : cwd, name) < 0 ? NULL : path;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* What fnmatch takes for something else than itself. */
#define WILDCARDS "*?["

/* "folder/" becomes "folder/NAME", with the name that SRC has; of several it is the folder. */
static hpct_status finish_dst(hpct_spec_out_entry *entry)
{
    size_t size = strlen(entry->dst);
    bool into =
        size > 0 && entry->dst[size - 1] == '/' && strcmp(entry->src, ".") != 0 && !entry->several;
    hpct_spec_entry_strip(entry->dst);
    if (into) {
        char *whole = NULL;
        if (asprintf(&whole, "%s/%s", strcmp(entry->dst, "/") == 0 ? "" : entry->dst,
                     hpct_spec_entry_last_part(entry->src)) < 0)
            return hpct_fail_memory(0);
        free(entry->dst);
        entry->dst = whole;
    }
    return HPCT_OK;
}

/* As scp, rsync and rclone have it: a colon before the first slash. It would be a folder of that
 * name below the step's. */
static hpct_status check_place(const hpct_spec_out_entry *entry)
{
    if (entry->dst[strcspn(entry->dst, ":/")] != ':')
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "destination '%.200s' is an address or on another machine: results are copied "
                     "to folders that the nodes see; write './%.200s' for a name with a colon",
                     entry->dst, entry->dst);
}

/* Files of several folders could have one name at the destination. */
static hpct_status check_wildcards(const hpct_spec_out_entry *entry)
{
    const char *last = hpct_spec_entry_last_part(entry->src);
    if (strcspn(entry->src, WILDCARDS) >= (size_t) (last - entry->src))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "source '%.200s': '*', '?' and '[' are for the names in one folder, so they "
                     "can only be behind the last slash: give each folder, or the one around them",
                     entry->src);
}

static hpct_status check(const hpct_spec_out_list *list, const hpct_spec_out_entry *entry)
{
    const char *last = hpct_spec_entry_last_part(entry->dst);
    HPCT_TRY(hpct_spec_entry_check_address(entry->src, entry->dst));
    if (!(strcmp(entry->src, ".") == 0 || hpct_spec_entry_is_below(entry->src)) ||
        hpct_spec_entry_is_within(entry->src, HPCT_SPEC_PRIVATE_FOLDER))
        return hpct_fail(HPCT_ERR_USAGE,
                         "source '%.200s' must be a path below $SLURM_TMPDIR, without '..': write "
                         "SRC:DST with SRC such as results",
                         entry->src);
    if (*last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "destination '%.200s' has no name: write SRC:DST with DST such as "
                         "/home/me/results-%%j-%%n",
                         entry->dst);
    HPCT_TRY(hpct_spec_entry_check_shell(entry->src, INSTEAD));
    HPCT_TRY(hpct_spec_entry_check_shell(entry->dst, INSTEAD));
    HPCT_TRY(check_place(entry));
    HPCT_TRY(check_wildcards(entry));
    HPCT_TRY(check_patterns(entry->src));
    HPCT_TRY(check_patterns(entry->dst));
    if (has_pattern(entry->src, "t") != has_pattern(entry->dst, "t"))
        return hpct_fail(HPCT_ERR_USAGE,
                         "%%t in '%.200s:%.200s' must be on both sides, as it stands for a copy "
                         "for each task: write for example out.%%t:/home/me/out.%%t",
                         entry->src, entry->dst);
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->entries[i].dst, entry->dst) == 0)
            return hpct_fail(HPCT_ERR_USAGE,
                             "'%.200s' and '%.200s' would both be copied to '%.200s': give them "
                             "destinations of their own",
                             list->entries[i].src, entry->src, entry->dst);
    }
    return HPCT_OK;
}

static void free_entry(hpct_spec_out_entry *entry)
{
    free(entry->src);
    free(entry->dst);
}

/* Of the parts as they are written. */
static hpct_status check_parts(const hpct_spec_out_entry *entry)
{
    const bool has_dst = entry->dst != NULL && *entry->dst != '\0';
    if (*entry->src != '\0' && has_dst)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "'%.200s' has no %s: write SRC:DST[,SRC:DST...], such as "
                     "results:/home/me/results-%%j-%%n",
                     *entry->src != '\0' ? entry->src
                     : has_dst           ? entry->dst
                                         : "",
                     *entry->src == '\0' ? "source" : "destination");
}

static hpct_status finish(hpct_spec_out_entry *entry, hpct_spec_out_list *list)
{
    hpct_spec_out_entry *entries =
        realloc(list->entries, (size_t) (list->count + 1) * sizeof *list->entries);
    if (entries == NULL)
        return hpct_fail_memory(0);
    list->entries = entries;
    hpct_spec_entry_strip(entry->src);
    HPCT_TRY(check_parts(entry));
    entry->several = strpbrk(entry->src, WILDCARDS) != NULL;
    HPCT_TRY(finish_dst(entry));
    entry->per_task = has_pattern(entry->dst, "t");
    return check(list, entry);
}

static hpct_status add(hpct_spec_out_list *list, const char **text)
{
    hpct_spec_out_entry entry = {0};
    if (list->count == HPCT_SPEC_OUT_ENTRIES)
        return hpct_fail(
            HPCT_ERR_USAGE,
            "there are more than %d entries: put what belongs together into one folder",
            HPCT_SPEC_OUT_ENTRIES);
    hpct_status status = hpct_spec_entry_split(text, ",", &entry.src, &entry.dst);
    if (status == HPCT_OK)
        status = finish(&entry, list);
    if (status == HPCT_OK)
        list->entries[list->count++] = entry;
    else
        free_entry(&entry);
    return status;
}

hpct_status hpct_spec_out_list_parse(const char *text, hpct_spec_out_list *out)
{
    hpct_status status = HPCT_OK;
    *out = (hpct_spec_out_list){0};
    do {
        status = add(out, &text);
    } while (status == HPCT_OK && *text++ == ',');
    if (status != HPCT_OK)
        hpct_spec_out_list_free(out);
    return status;
}

void hpct_spec_out_list_free(hpct_spec_out_list *list)
{
    for (int i = 0; i < list->count; i++)
        free_entry(&list->entries[i]);
    free(list->entries);
    *list = (hpct_spec_out_list){0};
}

hpct_status hpct_spec_out_list_check_nodes(const hpct_spec_out_list *list)
{
    for (int i = 0; i < list->count; i++) {
        const hpct_spec_out_entry *entry = &list->entries[i];
        if (!entry->per_task && !has_pattern(entry->dst, "nN"))
            return hpct_fail(HPCT_ERR_USAGE,
                             "each node would write to '%.200s', one over the other: add %%n (the "
                             "node's number) or %%N (its name) to it, such as '%.200s-%%n'",
                             entry->dst, entry->dst);
    }
    return HPCT_OK;
}

/* The next number in a text, and what follows it; NULL when there is none. */
static const char *next_number(const char *text, unsigned long *number)
{
    char *end;
    text += strcspn(text, "0123456789");
    if (*text == '\0')
        return NULL;
    *number = strtoul(text, &end, 10);
    return end;
}

static bool has_number(const char *text, uint32_t wanted)
{
    unsigned long number = 0;
    while ((text = next_number(text, &number)) != NULL) {
        if (number == wanted)
            return true;
    }
    return false;
}

static bool ends_with_number(const char *text, uint32_t wanted)
{
    unsigned long number = 0;
    bool any = false;
    while ((text = next_number(text, &number)) != NULL)
        any = true;
    return any && number == wanted;
}

/* "2024-01-02" for the array 1-2: it is the same for both, and belongs to one of them at most. */
static bool has_all_numbers(const char *text, const hpct_spec_out_array *array)
{
    unsigned long number = 0, before = 0;
    uint32_t count = 0;
    for (const char *at = text; (at = next_number(at, &number)) != NULL;) {
        bool counts = number >= array->first && number <= array->last;
        for (const char *p = text; counts && (p = next_number(p, &before)) != at;)
            counts = before != number;
        count += counts;
    }
    return array->count > 1 && count >= array->count;
}

/* Whether the script's shell has made a path one of this job's own. */
static bool is_written_out(const char *path, const hpct_spec_out_array *array, uint32_t job)
{
    return has_number(path, job) || ends_with_number(path, array->task) ||
           (has_number(path, array->task) && !has_all_numbers(path, array));
}

hpct_status hpct_spec_out_list_check_array(const hpct_spec_out_list *list,
                                           const hpct_spec_out_array *array, uint32_t job,
                                           const char *cwd)
{
    for (int i = 0; i < list->count; i++) {
        const hpct_spec_out_entry *entry = &list->entries[i];
        bool apart = has_pattern(entry->dst, "ja");
        if (array->is && !apart && job != 0) {
            char *path = hpct_spec_out_path(entry->dst, cwd);
            if (path == NULL)
                return hpct_fail_memory(0);
            apart = is_written_out(path, array, job);
            free(path);
        }
        if (array->is && !apart)
            return hpct_fail(HPCT_ERR_USAGE,
                             "each job of the array would write to '%.200s', one over the other: "
                             "add %%a (the number in the array) or %%j (the job) to it, such as "
                             "'%.200s-%%A_%%a'",
                             entry->dst, entry->dst);
        if (!array->is && (has_pattern(entry->src, "Aa") || has_pattern(entry->dst, "Aa")))
            return hpct_fail(HPCT_ERR_USAGE,
                             "%%A and %%a in '%.200s:%.200s' are for job arrays, and this job is "
                             "not in one: write %%j for the job, or submit it with --array",
                             entry->src, entry->dst);
    }
    return HPCT_OK;
}

hpct_status hpct_spec_out_list_check_place(const hpct_spec_out_list *list,
                                           const hpct_spec_out_names *names, const char *cwd,
                                           const char *tmpdir)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < list->count && status == HPCT_OK; i++) {
        char *name = hpct_spec_out_name(list->entries[i].dst, names);
        char *path = name == NULL ? NULL : hpct_spec_out_path(name, cwd);
        if (path == NULL)
            status = hpct_fail_memory(0);
        else if (hpct_spec_entry_is_within(path, tmpdir))
            status = hpct_fail(HPCT_ERR_USAGE,
                               "destination '%.300s' lies in the job directory, which is removed "
                               "with all that is in it when the job ends: write the whole path, "
                               "such as /home/me/results-%%j, or start the step in another folder",
                               path);
        free(path);
        free(name);
    }
    return status;
}
