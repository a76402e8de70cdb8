/* The request line and headers, RFC 9112: lines end with CR LF, no folding, no body. */
#include "agent/report/request.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct line {
    const char *at;
    size_t length;
} line;

/* The line that begins at data[*from]; false if it is not complete. */
static bool next_line(line *out, const char *data, size_t size, size_t *from)
{
    const char *begin = data + *from, *end = memchr(begin, '\n', size - *from);
    if (end == NULL)
        return false;
    *out = (line){begin, (size_t) (end - begin)};
    *from += out->length + 1;
    return true;
}

/* Without its CR; false if it has none, or another control character. */
static bool strip(line *one)
{
    if (one->length == 0 || one->at[one->length - 1] != '\r')
        return false;
    one->length--;
    for (size_t i = 0; i < one->length; i++) {
        unsigned char c = (unsigned char) one->at[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is(line text, const char *word)
{
    return text.length == strlen(word) && memcmp(text.at, word, text.length) == 0;
}

/* Splits the text before the first blank off. */
static line word_of(line *rest)
{
    const char *blank = memchr(rest->at, ' ', rest->length);
    size_t length = blank != NULL ? (size_t) (blank - rest->at) : rest->length;
    line word = {rest->at, length};
    size_t skip = blank != NULL ? length + 1 : length;
    *rest = (line){rest->at + skip, rest->length - skip};
    return word;
}

static int look_at_request_line(line text)
{
    line method = word_of(&text), target = word_of(&text);
    if (method.length == 0 || target.length == 0 ||
        (!is(text, "HTTP/1.1") && !is(text, "HTTP/1.0")))
        return 400;
    if (!is(method, "GET"))
        return 405;
    return is(target, "/") ? 200 : 404;
}

static bool has_name(line header, const char *name)
{
    size_t length = strlen(name);
    return header.length > length && header.at[length] == ':' &&
           strncasecmp(header.at, name, length) == 0;
}

static bool is_loopback(line value, int port)
{
    char wanted[64], text[64];
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    while (value.length > 0 && (*value.at == ' ' || *value.at == '\t'))
        value = (line){value.at + 1, value.length - 1};
    while (value.length > 0 &&
           (value.at[value.length - 1] == ' ' || value.at[value.length - 1] == '\t'))
        value.length--;
    if (value.length >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", (int) value.length, value.at);
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        snprintf(wanted, sizeof wanted, "%s:%d", hosts[i], port);
        if (strcasecmp(text, wanted) == 0 || (port == 80 && strcasecmp(text, hosts[i]) == 0))
            return true;
    }
    return false;
}

/* A header's name is not empty and has no blanks, also none before the colon. */
static bool is_header(line text)
{
    const char *colon = memchr(text.at, ':', text.length);
    size_t length = colon != NULL ? (size_t) (colon - text.at) : 0;
    return length > 0 && memchr(text.at, ' ', length) == NULL &&
           memchr(text.at, '\t', length) == NULL;
}

static int look_at_headers(const char *data, size_t size, size_t from, int port)
{
    int hosts = 0;
    bool loopback = false;
    line one;
    while (next_line(&one, data, size, &from)) {
        if (!strip(&one))
            return 400;
        if (one.length == 0)
            return hosts != 1 ? 400 : loopback ? 200 : 403;
        if (!is_header(one) || has_name(one, "Transfer-Encoding") ||
            has_name(one, "Content-Length"))
            return 400;
        if (has_name(one, "Host")) {
            hosts++;
            loopback = is_loopback((line){one.at + 5, one.length - 5}, port);
        }
    }
    return size < HPCT_REPORT_REQUEST_BYTES ? 0 : 431;
}

int hpct_report_request(const char *data, size_t size, int port)
{
    line first;
    size_t from = 0;
    if (!next_line(&first, data, size, &from))
        return size < HPCT_REPORT_REQUEST_BYTES ? 0 : 431;
    if (!strip(&first))
        return 400;
    int request = look_at_request_line(first);
    int headers = look_at_headers(data, size, from, port);
    return headers != 200 ? headers : request;
}
