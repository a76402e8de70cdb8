/* A field is unquoted where it stands: it never grows. */
#include "agent/data/csv.h"

#include "base/alloc.h"
#include "base/kind.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

hpct_status hpct_data_csv_open(hpct_data_csv *csv, char *text, size_t size, const char *path)
{
    size_t mark = strlen(BYTE_ORDER_MARK), line = 1;
    const hpct_kind kind = hpct_kind_of(text, size);
    const char *zero = size > 0 ? memchr(text, '\0', size) : NULL;
    *csv = (hpct_data_csv){.path = path, .text = text, .size = size, .next = 1};
    text[size] = '\0';
    if (size >= mark && memcmp(text, BYTE_ORDER_MARK, mark) == 0)
        csv->at = mark;
    if (kind == HPCT_KIND_UTF16)
        return hpct_fail(HPCT_ERR_DATA, "%s is %s", path, hpct_kind_says(kind));
    if (zero == NULL)
        return HPCT_OK;
    for (const char *c = text; c < zero; c++)
        line += *c == '\n';
    return hpct_fail(HPCT_ERR_DATA,
                     "%s, line %zu: there is a zero byte: it must be text in UTF-8, not in UTF-16",
                     path, line);
}

void hpct_data_csv_close(hpct_data_csv *csv)
{
    free(csv->fields);
    *csv = (hpct_data_csv){0};
}

static hpct_status refuse(const hpct_data_csv *csv, const char *what)
{
    return hpct_fail(HPCT_ERR_DATA, "%s, line %zu, column %zu: %s", csv->path, csv->next,
                     csv->num_fields, what);
}

static hpct_status add_field(hpct_data_csv *csv, char *begin)
{
    HPCT_TRY(hpct_alloc_room(&csv->fields, &csv->room, csv->num_fields + 1, sizeof *csv->fields));
    csv->fields[csv->num_fields++] = begin;
    return HPCT_OK;
}

/* What other programs put between columns; NULL: not this character. */
static const char *separator_name(char c)
{
    return c == ';' ? "semicolons" : c == '\t' ? "tabs" : c == '|' ? "bars" : NULL;
}

static hpct_status refuse_separator(const hpct_data_csv *csv, size_t line, const char *name)
{
    return hpct_fail(HPCT_ERR_DATA,
                     "%s, line %zu: %s separate the columns: write it with commas (and numbers "
                     "with a decimal point)",
                     csv->path, line, name);
}

hpct_status hpct_data_csv_check_commas(const hpct_data_csv *csv)
{
    size_t found = csv->num_fields == 1 ? strcspn(csv->fields[0], ";\t|") : 0;
    const char *name = csv->num_fields == 1 ? separator_name(csv->fields[0][found]) : NULL;
    return name == NULL ? HPCT_OK : refuse_separator(csv, csv->line, name);
}

/* Takes the comma or line end after a field; *last: the record ends here. */
static hpct_status end_field(hpct_data_csv *csv, bool *last)
{
    const char *text = csv->text;
    if (csv->at < csv->size && text[csv->at] == ',') {
        csv->at++;
        *last = false;
        return HPCT_OK;
    }
    *last = true;
    if (csv->at < csv->size && text[csv->at] == '\r') {
        csv->at++;
        if (csv->at < csv->size && text[csv->at] != '\n')
            return refuse(csv, "there is a carriage return without a line feed");
    }
    if (csv->at < csv->size && separator_name(text[csv->at]) != NULL)
        return refuse_separator(csv, csv->next, separator_name(text[csv->at]));
    if (csv->at < csv->size && text[csv->at] != '\n')
        return refuse(csv, "there is text after the closing quote");
    csv->at += csv->at < csv->size;
    return HPCT_OK;
}

/* Between quotes; two quotes are one. `line` counts those that the field goes on for. */
static hpct_status read_quoted(hpct_data_csv *csv, char **end, size_t *line)
{
    char *to = csv->text + csv->at++; /* from where the quote was */
    for (; csv->at < csv->size; csv->at++) {
        char c = csv->text[csv->at];
        if (c == '"' && csv->text[csv->at + 1] != '"')
            break;
        csv->at += c == '"';
        *line += c == '\n';
        *to++ = c;
    }
    if (csv->at == csv->size)
        return refuse(csv, "its quote is not closed");
    csv->at++;
    *end = to;
    return HPCT_OK;
}

static hpct_status read_plain(hpct_data_csv *csv, char **end)
{
    csv->at += strcspn(csv->text + csv->at, ",\"\r\n");
    *end = csv->text + csv->at;
    return csv->text[csv->at] == '"' ? refuse(csv, "there is a quote within text: the whole field "
                                                   "must be quoted, and the quote doubled")
                                     : HPCT_OK;
}

static hpct_status read_field(hpct_data_csv *csv, size_t *line, bool *last)
{
    char *end = csv->text + csv->at;
    HPCT_TRY(add_field(csv, end));
    HPCT_TRY(csv->text[csv->at] == '"' ? read_quoted(csv, &end, line) : read_plain(csv, &end));
    hpct_status status = end_field(csv, last);
    *end = '\0'; /* the comma or line end, which has been looked at */
    return status;
}

static void skip_empty_lines(hpct_data_csv *csv)
{
    for (;;) {
        size_t end = csv->at + (csv->text[csv->at] == '\r');
        if (end >= csv->size || csv->text[end] != '\n')
            return;
        csv->at = end + 1;
        csv->next++;
    }
}

hpct_status hpct_data_csv_next(hpct_data_csv *csv, bool *any)
{
    bool last = false;
    size_t line;
    skip_empty_lines(csv);
    csv->num_fields = 0;
    *any = csv->at < csv->size;
    line = csv->next;
    while (*any && !last)
        HPCT_TRY(read_field(csv, &line, &last));
    csv->line = csv->next;
    csv->next = line + 1;
    return HPCT_OK;
}
