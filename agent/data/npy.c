/* The .npy header: a Python dictionary literal. Only the form that NumPy writes is accepted. */
#include "agent/data/npy.h"

#include "base/status.h"

#include <string.h>

#define MAX_TEXT 65536

hpct_status hpct_data_npy_read_prefix(const uint8_t prefix[HPCT_DATA_NPY_PREFIX],
                                      size_t *prefix_length, size_t *text_length, const char *name)
{
    static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    if (memcmp(prefix, magic, sizeof magic) != 0)
        return hpct_fail(HPCT_ERR_DATA, "%s: wrong magic number: not an .npy array", name);
    if (prefix[6] < 1 || prefix[6] > 3 || prefix[7] != 0)
        return hpct_fail(HPCT_ERR_DATA, "%s: version %d.%d of the .npy format is unknown", name,
                         prefix[6], prefix[7]);
    *prefix_length = prefix[6] == 1 ? 10 : 12;
    *text_length = (size_t) prefix[8] | (size_t) prefix[9] << 8;
    if (prefix[6] != 1)
        *text_length |= (size_t) prefix[10] << 16 | (size_t) prefix[11] << 24;
    if (*text_length < 2 || *text_length > MAX_TEXT)
        return hpct_fail(HPCT_ERR_DATA, "%s: its header's length of %zu cannot be right", name,
                         *text_length);
    return HPCT_OK;
}

/* ---- the dictionary ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
}

static bool skip_word(cursor *c, const char *word)
{
    size_t length = strlen(word);
    skip_space(c);
    if ((size_t) (c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

static bool take_string(cursor *c, char *out, size_t size)
{
    size_t length = 0;
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    char quote = *c->at++;
    for (; c->at < c->end && *c->at != quote; c->at++) {
        if (length + 1 >= size || *c->at == '\\')
            return false;
        out[length++] = *c->at;
    }
    if (c->at == c->end)
        return false;
    c->at++;
    out[length] = '\0';
    return true;
}

static bool take_number(cursor *c, uint64_t *out)
{
    skip_space(c);
    const char *began = c->at;
    *out = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (__builtin_mul_overflow(*out, (uint64_t) 10, out) ||
            __builtin_add_overflow(*out, (uint64_t) (*c->at - '0'), out))
            return false;
    }
    return c->at > began;
}

/* (), (5,), (5, 28, 28) */
static bool take_shape(cursor *c, hpct_data_npy *out)
{
    if (!skip_word(c, "("))
        return false;
    while (!skip_word(c, ")")) {
        if (out->rank == HPCT_DATA_NPY_MAX_RANK || !take_number(c, &out->sizes[out->rank]))
            return false;
        out->rank++;
        if (!skip_word(c, ",")) {
            if (out->rank == 1) /* (5) is a number, not a tuple */
                return false;
            return skip_word(c, ")");
        }
    }
    return true;
}

static bool take_dictionary(cursor *c, hpct_data_npy *out, char *descr, size_t size, bool *fortran)
{
    bool have_descr = false, have_order = false, have_shape = false;
    char key[16];
    if (!skip_word(c, "{"))
        return false;
    while (!skip_word(c, "}")) {
        if (!take_string(c, key, sizeof key) || !skip_word(c, ":"))
            return false;
        if (strcmp(key, "descr") == 0 && !have_descr) {
            have_descr = take_string(c, descr, size);
            if (!have_descr)
                return false;
        } else if (strcmp(key, "fortran_order") == 0 && !have_order) {
            *fortran = skip_word(c, "True");
            if (!*fortran && !skip_word(c, "False"))
                return false;
            have_order = true;
        } else if (strcmp(key, "shape") == 0 && !have_shape) {
            have_shape = take_shape(c, out);
            if (!have_shape)
                return false;
        } else {
            return false;
        }
        if (!skip_word(c, ",") && !(c->at < c->end && *c->at == '}'))
            return false;
    }
    skip_space(c);
    return c->at == c->end && have_descr && have_order && have_shape;
}

hpct_status hpct_data_npy_read_text(hpct_data_npy *out, const char *text, size_t length,
                                    const char *name)
{
    cursor c = {text, text + length};
    char descr[16] = "";
    bool fortran = false;
    memset(out, 0, sizeof *out);
    if (!take_dictionary(&c, out, descr, sizeof descr, &fortran))
        return hpct_fail(HPCT_ERR_DATA, "%s: its .npy header cannot be understood", name);
    if (fortran)
        return hpct_fail(HPCT_ERR_DATA, "%s: it is in Fortran order; save it in C order", name);
    bool byte = descr[0] == '|' && descr[2] == '1';
    bool wide = descr[0] == '<' && (descr[2] == '2' || descr[2] == '4' || descr[2] == '8');
    if (strlen(descr) != 3 || (descr[1] != 'u' && descr[1] != 'i') || !(byte || wide))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: its elements are '%s'; pictures must be '|u1' (uint8) and labels "
                         "little-endian integers",
                         name, descr);
    out->kind = descr[1];
    out->item_size = descr[2] - '0';
    out->bytes = (uint64_t) out->item_size;
    for (int i = 0; i < out->rank; i++) {
        if (__builtin_mul_overflow(out->bytes, out->sizes[i], &out->bytes) ||
            out->bytes > SIZE_MAX / 2)
            return hpct_fail(HPCT_ERR_DATA, "%s: its header's sizes cannot be right", name);
    }
    return HPCT_OK;
}
