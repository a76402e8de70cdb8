/* Optimal string alignment distance (restricted Damerau-Levenshtein). */
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 48     /* letters; longer words are not matched */
#define ABBREVIATED 60 /* worse than any typo */
#define CONTAINED 100  /* worse than those */

static char plain(char c)
{
    return c == '_' ? '-' : (char) tolower((unsigned char) c);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Number of insertions, deletions, substitutions and transpositions of neighbours. */
static int distance_between(const char *a, int a_length, const char *b, int b_length)
{
    int rows[3][LONGEST + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    for (int j = 0; j <= b_length; j++)
        last[j] = j;
    for (int i = 1; i <= a_length; i++) {
        row[0] = i;
        for (int j = 1; j <= b_length; j++) {
            bool same = plain(a[i - 1]) == plain(b[j - 1]);
            row[j] = least(least(last[j] + 1, row[j - 1] + 1), last[j - 1] + !same);
            if (i > 1 && j > 1 && plain(a[i - 1]) == plain(b[j - 2]) &&
                plain(a[i - 2]) == plain(b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
        int *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[b_length];
}

/* val-data for validation-data: word by word. */
static bool abbreviates(const char *word, const char *name)
{
    for (; *word != '\0'; word++, name++) {
        while (plain(*word) == '-' && *name != '\0' && *name != '-')
            name++;
        if (plain(*word) != *name)
            return false;
    }
    return strchr(name, '-') == NULL;
}

/* bs for batch-size */
static bool is_initials(const char *word, const char *name)
{
    for (; *word != '\0'; word++) {
        if (name == NULL || plain(*word) != *name)
            return false;
        name = strchr(name, '-');
        name = name != NULL ? name + 1 : NULL;
    }
    return name == NULL;
}

/* MultiWorkerMirroredStrategy for multi-worker-mirrored: the longer starts with the shorter,
 * ignoring dashes. */
static bool begins_without_dashes(const char *whole, const char *part)
{
    int letters = 0;
    for (; *part != '\0'; part++) {
        if (plain(*part) == '-')
            continue;
        while (plain(*whole) == '-')
            whole++;
        if (plain(*whole++) != plain(*part))
            return false;
        letters++;
    }
    return letters > 2;
}

static bool begins(const char *text, const char *with, int length)
{
    int i = 0;
    while (i < length && plain(text[i]) == plain(with[i]))
        i++;
    return i == length;
}

/* Whether `part` occurs in `whole` as whole words between dashes, or is its prefix; singular
 * matches plural. */
static bool has_words(const char *whole, int length, const char *part, int part_length)
{
    if (part_length > 2 && plain(part[part_length - 1]) == 's')
        part_length--;
    if (part_length > 2 && begins(whole, part, part_length))
        return true;
    for (int at = 1; part_length > 1 && at + part_length <= length; at++) {
        int end = at + part_length;
        if (plain(whole[at - 1]) != '-' || !begins(whole + at, part, part_length))
            continue;
        if (end < length && plain(whole[end]) == 's')
            end++;
        if (end == length || plain(whole[end]) == '-')
            return true;
    }
    return false;
}

void hpct_nearest_try(hpct_nearest *best, const char *word, const char *name)
{
    int a = (int) strnlen(word, LONGEST + 1), b = (int) strnlen(name, LONGEST + 1);
    if (a == 0 || b == 0 || a > LONGEST || b > LONGEST)
        return;
    int longer = a > b ? a : b, distance = distance_between(word, a, name, b);
    if (distance > longer / 3) {
        bool short_form = a > 1 && (abbreviates(word, name) || is_initials(word, name));
        distance = short_form ? ABBREVIATED : CONTAINED;
        if (!short_form && !begins_without_dashes(word, name) && !has_words(word, a, name, b) &&
            !has_words(name, b, word, a))
            return;
        distance += a > b ? a - b : b - a;
    } else { /* of two equally near, the one with the word as prefix */
        distance = 2 * distance - (a < b && begins(name, word, a));
    }
    if (best->name == NULL || distance < best->distance)
        *best = (hpct_nearest){name, distance};
}

const char *hpct_nearest_hint(const hpct_nearest *best, char text[HPCT_NEAREST_HINT])
{
    text[0] = '\0';
    if (best->name != NULL)
        snprintf(text, HPCT_NEAREST_HINT, " (did you mean %s?)", best->name);
    return text;
}
