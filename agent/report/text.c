/* Escaping, numbers and the pool. Knows no runs. */
#include "agent/report/text.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- UTF-8 ---- */

/* Bytes of the character at `text`, 0 if it is none: overlong, a surrogate, or cut. */
static int character_bytes(const unsigned char *text)
{
    int bytes = *text < 0x80 ? 1 : *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : 2;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (bytes == 1)
        return *text >= 0x20 && *text != 0x7f;
    if (*text < 0xc2 || *text > 0xf4)
        return 0;
    uint32_t code = *text & (0x7fu >> bytes);
    for (int i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    bool valid = code >= least[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) &&
                 (code & 0xfffe) != 0xfffe && (code < 0x80 || code > 0x9f);
    return valid ? bytes : 0;
}

/* Copies the next character, cleaned, to `out`; returns what follows it. */
static const char *next(const char *text, char out[5])
{
    int bytes = character_bytes((const unsigned char *) text);
    if (*text == '\n' || *text == '\r' || *text == '\t')
        strcpy(out, " ");
    else if (bytes == 0)
        strcpy(out, "\xef\xbf\xbd");
    else
        snprintf(out, 5, "%.*s", bytes, text);
    return text + (bytes > 0 ? bytes : 1);
}

int hpct_report_width(const char *text)
{
    char one[5];
    int width = 0;
    for (; *text != '\0'; width++)
        text = next(text, one);
    return width;
}

/* ---- escaping ---- */

static const char *for_xml(const char *one)
{
    switch (*one) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return one;
    }
}

void hpct_report_escape(FILE *out, const char *text)
{
    char one[5];
    while (*text != '\0') {
        text = next(text, one);
        fputs(for_xml(one), out);
    }
}

void hpct_report_clean(FILE *out, const char *text)
{
    char one[5];
    while (*text != '\0') {
        text = next(text, one);
        fputs(one, out);
    }
}

void hpct_report_escape_md(FILE *out, const char *text)
{
    char one[5];
    while (*text != '\0') {
        text = next(text, one);
        if (strchr("\\`*_[]|~#!$", *one) != NULL)
            fputc('\\', out);
        fputs(for_xml(one), out);
    }
}

void hpct_report_escape_csv(FILE *out, const char *text)
{
    char one[5], *end;
    bool quoted = strpbrk(text, "\",\n\r;") != NULL, formula = strchr("=+-@", *text) != NULL;
    if (quoted)
        fputc('"', out);
    strtod(text, &end);
    if (*text != '\0' && formula && *end != '\0') /* spreadsheets would evaluate it */
        fputc('\'', out);
    while (*text != '\0') {
        text = next(text, one);
        fputs(*one == '"' ? "\"\"" : one, out);
    }
    if (quoted)
        fputc('"', out);
}

/* ---- numbers ---- */

const char *hpct_report_metric(char text[HPCT_REPORT_NUMBER], double value)
{
    if (isnan(value))
        return "nan";
    bool tiny = value != 0 && fabs(value) <= 1e-3, huge = fabs(value) >= 1e7 && isfinite(value);
    snprintf(text, HPCT_REPORT_NUMBER, tiny || huge ? "%.4e" : "%.4f", value);
    return text;
}

const char *hpct_report_amount(char text[HPCT_REPORT_NUMBER], double value)
{
    double size = fabs(value);
    if (isnan(value))
        return "–";
    if (size >= 1e15 || size < 1)
        snprintf(text, HPCT_REPORT_NUMBER, "%#.3g", value);
    else
        snprintf(text, HPCT_REPORT_NUMBER, "%.*f", size >= 100 ? 0 : size >= 10 ? 1 : 2, value);
    return text;
}

const char *hpct_report_exact(char text[HPCT_REPORT_NUMBER], double value)
{
    if (isnan(value))
        return "";
    snprintf(text, HPCT_REPORT_NUMBER, "%.9g", value);
    return text;
}

/* ---- the pool ---- */

struct hpct_report_block {
    struct hpct_report_block *before;
    max_align_t data[];
};

void *hpct_report_take(hpct_report_pool *pool, size_t count, size_t size)
{
    size_t bytes;
    struct hpct_report_block *block = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) && bytes < SIZE_MAX / 2)
        block = calloc(1, sizeof *block + bytes);
    if (block == NULL) {
        pool->failed = true;
        return NULL;
    }
    block->before = pool->last;
    pool->last = block;
    return block->data;
}

const char *hpct_report_print_list(hpct_report_pool *pool, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = hpct_report_take(pool, (size_t) length + 1, 1);
    if (text != NULL)
        vsnprintf(text, (size_t) length + 1, format, again);
    va_end(again);
    return text != NULL ? text : "";
}

const char *hpct_report_print(hpct_report_pool *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = hpct_report_print_list(pool, format, args);
    va_end(args);
    return text;
}

/* At powers of two, from 8 on; the smaller arrays stay until the end. */
void *hpct_report_grow(hpct_report_pool *pool, void *array, size_t count, size_t size)
{
    bool full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
    if (!full)
        return array;
    void *larger = hpct_report_take(pool, count < 8 ? 8 : 2 * count, size);
    if (larger != NULL && count > 0)
        memcpy(larger, array, count * size);
    return larger;
}

void hpct_report_release(hpct_report_pool *pool)
{
    while (pool->last != NULL) {
        struct hpct_report_block *block = pool->last;
        pool->last = block->before;
        free(block);
    }
}
