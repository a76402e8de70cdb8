/* The pickle machine, restricted to plain values and numpy's integer arrays. All values are freed
 * with the pickle, so references among them, including cycles, need no counting. */
#include "agent/data/pickle.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct owned {
    struct owned *next;
    hpct_data_pickle_value value;
    uint8_t bytes[]; /* decoded from text */
} owned;

typedef struct list {
    void **items;
    size_t count, room;
} list;

struct hpct_data_pickle {
    const uint8_t *at, *end;
    const char *path;
    owned *values;
    list stack, memo, marks; /* marks: stack heights, stored as pointers */
    size_t decoded, limit;   /* bytes decoded from text, and their limit */
};

/* ---- memory ---- */

static hpct_status append(list *to, void *item)
{
    HPCT_TRY(hpct_alloc_room(&to->items, &to->room, to->count + 1, sizeof *to->items));
    to->items[to->count++] = item;
    return HPCT_OK;
}

static owned *new_owned(hpct_data_pickle *p, hpct_data_pickle_kind kind, size_t bytes)
{
    owned *made = calloc(1, sizeof *made + bytes);
    if (made != NULL) {
        made->next = p->values;
        p->values = made;
        made->value.kind = kind;
    }
    return made;
}

static hpct_data_pickle_value *new_value(hpct_data_pickle *p, hpct_data_pickle_kind kind)
{
    owned *made = new_owned(p, kind, 0);
    return made != NULL ? &made->value : NULL;
}

void hpct_data_pickle_free(hpct_data_pickle *pickle)
{
    if (pickle == NULL)
        return;
    for (owned *value = pickle->values; value != NULL;) {
        owned *next = value->next;
        free(value->value.items);
        free(value);
        value = next;
    }
    free(pickle->stack.items);
    free(pickle->memo.items);
    free(pickle->marks.items);
    free(pickle);
}

/* ---- the stream ---- */

static hpct_status damaged(const hpct_data_pickle *p, const char *why)
{
    return hpct_fail(HPCT_ERR_DATA, "%s: not a pickle of plain values and numpy arrays: %s",
                     p->path, why);
}

static hpct_status read_bytes(hpct_data_pickle *p, uint64_t count, const uint8_t **out)
{
    if (count > (uint64_t) (p->end - p->at))
        return hpct_fail(HPCT_ERR_DATA, "%s: it is truncated", p->path);
    *out = p->at;
    p->at += count;
    return HPCT_OK;
}

/* Loads a little-endian integer of `width` bytes (negative: signed); false if it exceeds int64. */
static bool load_integer(const uint8_t *bytes, int64_t width, int64_t *out)
{
    uint64_t value = 0;
    int count = (int) llabs(width);
    for (int i = 0; i < count; i++)
        value |= (uint64_t) bytes[i] << (8 * i);
    if (width < 0 && count < 8 && (bytes[count - 1] & 0x80) != 0)
        value |= UINT64_MAX << (8 * count);
    *out = (int64_t) value;
    return width < 0 || value <= INT64_MAX;
}

/* `width` bytes (negative: signed). */
static hpct_status take_number(hpct_data_pickle *p, int width, int64_t *out)
{
    const uint8_t *bytes = NULL;
    HPCT_TRY(read_bytes(p, (uint64_t) abs(width), &bytes));
    load_integer(bytes, width, out);
    return HPCT_OK;
}

/* ---- the stack ---- */

static size_t floor_of(const hpct_data_pickle *p)
{
    return p->marks.count > 0 ? (size_t) p->marks.items[p->marks.count - 1] : 0;
}

static hpct_status push(hpct_data_pickle *p, hpct_data_pickle_value *value)
{
    return value != NULL ? append(&p->stack, value) : hpct_fail_memory(0);
}

static hpct_status top(const hpct_data_pickle *p, hpct_data_pickle_value **out)
{
    if (p->stack.count <= floor_of(p))
        return damaged(p, "its stack is empty");
    *out = p->stack.items[p->stack.count - 1];
    return HPCT_OK;
}

static hpct_status pop(hpct_data_pickle *p, hpct_data_pickle_value **out)
{
    HPCT_TRY(top(p, out));
    p->stack.count--;
    return HPCT_OK;
}

static hpct_status push_integer(hpct_data_pickle *p, hpct_data_pickle_kind kind, int64_t integer)
{
    hpct_data_pickle_value *value = new_value(p, kind);
    if (value != NULL)
        value->integer = integer;
    return push(p, value);
}

static hpct_status push_bytes(hpct_data_pickle *p, int length_width)
{
    int64_t count;
    const uint8_t *bytes = NULL;
    HPCT_TRY(take_number(p, length_width, &count));
    HPCT_TRY(read_bytes(p, (uint64_t) count, &bytes));
    hpct_data_pickle_value *value = new_value(p, HPCT_DATA_PICKLE_BYTES);
    if (value != NULL) {
        value->bytes = bytes;
        value->count = (size_t) count;
    }
    return push(p, value);
}

/* Appends the items from `first` to the stack's top to `to`. */
static hpct_status move_items(hpct_data_pickle *p, hpct_data_pickle_value *to, size_t first)
{
    size_t count = p->stack.count - first;
    HPCT_TRY(hpct_alloc_room(&to->items, &to->room, to->count + count, sizeof *to->items));
    for (size_t i = 0; i < count; i++)
        to->items[to->count++] = p->stack.items[first + i];
    p->stack.count = first;
    return HPCT_OK;
}

/* *first: stack index of the topmost `count` items, or (count < 0) of those above the mark, which
 * is removed. */
static hpct_status find_items(hpct_data_pickle *p, int count, size_t *first)
{
    if (count < 0) {
        if (p->marks.count == 0)
            return damaged(p, "a mark is missing");
        *first = (size_t) p->marks.items[--p->marks.count];
        return HPCT_OK;
    }
    *first = p->stack.count - (size_t) count;
    return p->stack.count - floor_of(p) >= (size_t) count ? HPCT_OK
                                                          : damaged(p, "its stack is empty");
}

static hpct_status push_tuple(hpct_data_pickle *p, int count)
{
    size_t first;
    HPCT_TRY(find_items(p, count, &first));
    hpct_data_pickle_value *tuple = new_value(p, HPCT_DATA_PICKLE_SEQUENCE);
    HPCT_TRY(tuple != NULL ? move_items(p, tuple, first) : hpct_fail_memory(0));
    return push(p, tuple);
}

/* Adds items to the list or dictionary below them. */
static hpct_status add_items(hpct_data_pickle *p, hpct_data_pickle_kind kind, int count)
{
    size_t first;
    HPCT_TRY(find_items(p, count, &first));
    if (first <= floor_of(p))
        return damaged(p, "its stack is empty");
    hpct_data_pickle_value *to = p->stack.items[first - 1];
    if (to->kind != kind || (kind == HPCT_DATA_PICKLE_DICT && (p->stack.count - first) % 2 != 0))
        return damaged(p, "a value is of the wrong kind");
    return move_items(p, to, first);
}

static hpct_status memoize(hpct_data_pickle *p, uint64_t index)
{
    hpct_data_pickle_value *value = NULL;
    HPCT_TRY(top(p, &value));
    while (p->memo.count <= index) { /* Python 2 counts from 1 */
        if (index > p->memo.count + 1)
            return damaged(p, "its memo has gaps");
        HPCT_TRY(append(&p->memo, NULL));
    }
    p->memo.items[index] = value;
    return HPCT_OK;
}

static hpct_status recall(hpct_data_pickle *p, uint64_t index)
{
    if (index >= p->memo.count || p->memo.items[index] == NULL)
        return damaged(p, "its memo has gaps");
    return push(p, p->memo.items[index]);
}

/* ---- calls ---- */

static bool is(const uint8_t *bytes, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(bytes, text, length) == 0;
}

static const hpct_data_pickle_value *item(const hpct_data_pickle_value *sequence, size_t index,
                                          hpct_data_pickle_kind kind)
{
    if (sequence->kind != HPCT_DATA_PICKLE_SEQUENCE || index >= sequence->count ||
        sequence->items[index]->kind != kind)
        return NULL;
    return sequence->items[index];
}

static bool is_text(const hpct_data_pickle_value *value, const char *text)
{
    return value != NULL && value->kind == HPCT_DATA_PICKLE_BYTES &&
           is(value->bytes, value->count, text);
}

/* With protocol 2 Python 3 writes bytes as text of characters 0 … 255, encoded as UTF-8. */
static hpct_status encode_latin1(hpct_data_pickle *p, const hpct_data_pickle_value *arguments)
{
    const hpct_data_pickle_value *text = item(arguments, 0, HPCT_DATA_PICKLE_BYTES);
    const hpct_data_pickle_value *codec = item(arguments, 1, HPCT_DATA_PICKLE_BYTES);
    if (text == NULL || !(is_text(codec, "latin1") || is_text(codec, "latin-1")))
        return damaged(p, "text is to be encoded otherwise than as latin1");
    if (text->count > p->limit - p->decoded)
        return damaged(p, "the same text is encoded again and again");
    p->decoded += text->count;
    owned *made = new_owned(p, HPCT_DATA_PICKLE_BYTES, text->count);
    if (made == NULL)
        return hpct_fail_memory(text->count);
    hpct_data_pickle_value *value = &made->value;
    value->bytes = made->bytes;
    for (size_t i = 0; i < text->count; i++) {
        uint8_t c = text->bytes[i];
        if (c >= 0x80) {
            if ((c != 0xc2 && c != 0xc3) || i + 1 == text->count ||
                (text->bytes[i + 1] & 0xc0) != 0x80)
                return damaged(p, "text is not latin1");
            c = (uint8_t) ((c << 6) | (text->bytes[++i] & 0x3f));
        }
        made->bytes[value->count++] = c;
    }
    return push(p, value);
}

/* "u1", "i8": the width in bytes, negative if signed. */
static hpct_status make_dtype(hpct_data_pickle *p, const hpct_data_pickle_value *arguments)
{
    const hpct_data_pickle_value *text = item(arguments, 0, HPCT_DATA_PICKLE_BYTES);
    if (text == NULL || text->count != 2 || (text->bytes[0] != 'u' && text->bytes[0] != 'i') ||
        memchr("1248", text->bytes[1], 4) == NULL)
        return damaged(p, "an array is not of integers");
    int width = text->bytes[1] - '0';
    return push_integer(p, HPCT_DATA_PICKLE_DTYPE, text->bytes[0] == 'i' ? -width : width);
}

/* Fills an array; the number of bytes must match its shape. */
static hpct_status fill_array(hpct_data_pickle *p, hpct_data_pickle_value *array,
                              const hpct_data_pickle_value *shape,
                              const hpct_data_pickle_value *dtype,
                              const hpct_data_pickle_value *bytes, bool fortran)
{
    if (shape == NULL || dtype == NULL || bytes == NULL || shape->count > HPCT_DATA_PICKLE_MAX_RANK)
        return damaged(p, "an array is not of the form that numpy writes");
    if (fortran && shape->count > 1)
        return damaged(p, "an array is in Fortran order");
    uint64_t count = (uint64_t) llabs(dtype->integer);
    for (size_t i = 0; i < shape->count; i++) {
        const hpct_data_pickle_value *size = item(shape, i, HPCT_DATA_PICKLE_INT);
        if (size == NULL || size->integer < 0 ||
            __builtin_mul_overflow(count, (uint64_t) size->integer, &count))
            return damaged(p, "an array's shape cannot be right");
        array->sizes[i] = (uint64_t) size->integer;
    }
    if (count != bytes->count)
        return damaged(p, "an array has not as many elements as its shape says");
    array->rank = (int) shape->count;
    array->integer = dtype->integer;
    array->bytes = bytes->bytes;
    array->count = bytes->count;
    return HPCT_OK;
}

/* BUILD sets its state. */
static hpct_status make_array(hpct_data_pickle *p, const hpct_data_pickle_value *arguments)
{
    (void) arguments;
    return push(p, new_value(p, HPCT_DATA_PICKLE_ARRAY));
}

static hpct_status from_buffer(hpct_data_pickle *p, const hpct_data_pickle_value *arguments)
{
    const hpct_data_pickle_value *order = item(arguments, 3, HPCT_DATA_PICKLE_BYTES);
    HPCT_TRY(make_array(p, arguments));
    return fill_array(p, p->stack.items[p->stack.count - 1],
                      item(arguments, 2, HPCT_DATA_PICKLE_SEQUENCE),
                      item(arguments, 1, HPCT_DATA_PICKLE_DTYPE),
                      item(arguments, 0, HPCT_DATA_PICKLE_BYTES), !is_text(order, "C"));
}

static hpct_status make_scalar(hpct_data_pickle *p, const hpct_data_pickle_value *arguments)
{
    const hpct_data_pickle_value *dtype = item(arguments, 0, HPCT_DATA_PICKLE_DTYPE);
    const hpct_data_pickle_value *bytes = item(arguments, 1, HPCT_DATA_PICKLE_BYTES);
    int64_t value;
    if (dtype == NULL || bytes == NULL || bytes->count != (size_t) llabs(dtype->integer) ||
        !load_integer(bytes->bytes, dtype->integer, &value))
        return damaged(p, "a number is not of the form that numpy writes");
    return push_integer(p, HPCT_DATA_PICKLE_INT, value);
}

/* ---- names ---- */

/* The permitted ones. */
static const struct {
    const char *module, *attribute;
    hpct_status (*call)(hpct_data_pickle *p, const hpct_data_pickle_value *arguments);
} names[] = {
    {"numpy.core.multiarray", "_reconstruct", make_array},
    {"numpy._core.multiarray", "_reconstruct", make_array},
    {"numpy.core.numeric", "_frombuffer", from_buffer},
    {"numpy._core.numeric", "_frombuffer", from_buffer},
    {"numpy.core.multiarray", "scalar", make_scalar},
    {"numpy._core.multiarray", "scalar", make_scalar},
    {"numpy", "dtype", make_dtype},
    {"numpy", "ndarray", NULL}, /* an argument of _reconstruct */
    {"_codecs", "encode", encode_latin1},
};

static hpct_status push_name(hpct_data_pickle *p, const uint8_t *module, size_t module_length,
                             const uint8_t *attribute, size_t attribute_length)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is(module, module_length, names[i].module) &&
            is(attribute, attribute_length, names[i].attribute))
            return push_integer(p, HPCT_DATA_PICKLE_NAME, (int64_t) i);
    }
    return hpct_fail(HPCT_ERR_DATA, "%s: it refers to %.*s.%.*s, which is not allowed", p->path,
                     (int) (module_length < 100 ? module_length : 100), (const char *) module,
                     (int) (attribute_length < 100 ? attribute_length : 100),
                     (const char *) attribute);
}

static hpct_status read_line(hpct_data_pickle *p, const uint8_t **line, size_t *length)
{
    const uint8_t *newline = memchr(p->at, '\n', (size_t) (p->end - p->at));
    if (newline == NULL)
        return hpct_fail(HPCT_ERR_DATA, "%s: it is truncated", p->path);
    *line = p->at;
    *length = (size_t) (newline - p->at);
    p->at = newline + 1;
    return HPCT_OK;
}

static hpct_status do_global(hpct_data_pickle *p)
{
    const uint8_t *module = NULL, *attribute = NULL;
    size_t m = 0, a = 0;
    HPCT_TRY(read_line(p, &module, &m));
    HPCT_TRY(read_line(p, &attribute, &a));
    return push_name(p, module, m, attribute, a);
}

static hpct_status do_stack_global(hpct_data_pickle *p)
{
    hpct_data_pickle_value *module = NULL, *attribute = NULL;
    HPCT_TRY(pop(p, &attribute));
    HPCT_TRY(pop(p, &module));
    if (module->kind != HPCT_DATA_PICKLE_BYTES || attribute->kind != HPCT_DATA_PICKLE_BYTES)
        return damaged(p, "a value is of the wrong kind");
    return push_name(p, module->bytes, module->count, attribute->bytes, attribute->count);
}

static hpct_status do_reduce(hpct_data_pickle *p)
{
    hpct_data_pickle_value *arguments = NULL, *called = NULL;
    HPCT_TRY(pop(p, &arguments));
    HPCT_TRY(pop(p, &called));
    if (called->kind != HPCT_DATA_PICKLE_NAME || names[called->integer].call == NULL)
        return damaged(p, "something is called that cannot be");
    return names[called->integer].call(p, arguments);
}

/* The state of an array, (version, shape, dtype, Fortran order, bytes), or of a dtype, (version,
 * byte order, …). */
static hpct_status do_build(hpct_data_pickle *p)
{
    hpct_data_pickle_value *state = NULL, *of = NULL;
    HPCT_TRY(pop(p, &state));
    HPCT_TRY(top(p, &of));
    const hpct_data_pickle_value *order = item(state, 1, HPCT_DATA_PICKLE_BYTES);
    const hpct_data_pickle_value *fortran = item(state, 3, HPCT_DATA_PICKLE_BOOL);
    if (of->kind == HPCT_DATA_PICKLE_ARRAY && fortran != NULL)
        return fill_array(p, of, item(state, 1, HPCT_DATA_PICKLE_SEQUENCE),
                          item(state, 2, HPCT_DATA_PICKLE_DTYPE),
                          item(state, 4, HPCT_DATA_PICKLE_BYTES), fortran->integer != 0);
    if (of->kind == HPCT_DATA_PICKLE_DTYPE && is_text(order, ">"))
        return damaged(p, "an array is big-endian");
    if (of->kind == HPCT_DATA_PICKLE_DTYPE && (is_text(order, "|") || is_text(order, "<")))
        return HPCT_OK;
    return damaged(p, "a state is not of the form that numpy writes");
}

/* ---- opcodes ---- */

/* `width`: as of take_number. */
static hpct_status do_integer(hpct_data_pickle *p, int width)
{
    int64_t value;
    HPCT_TRY(take_number(p, width, &value));
    return push_integer(p, HPCT_DATA_PICKLE_INT, value);
}

static hpct_status do_long(hpct_data_pickle *p)
{
    int64_t width;
    HPCT_TRY(take_number(p, 1, &width));
    return width <= 8 ? do_integer(p, -(int) width) : damaged(p, "a number is too large");
}

static hpct_status do_memo(hpct_data_pickle *p, int width,
                           hpct_status (*with)(hpct_data_pickle *p, uint64_t index))
{
    int64_t index;
    HPCT_TRY(take_number(p, width, &index));
    return with(p, (uint64_t) index);
}

static hpct_status check_protocol(hpct_data_pickle *p)
{
    int64_t version;
    HPCT_TRY(take_number(p, 1, &version));
    if (version < 2 || version > 5)
        return damaged(p, "its protocol is not 2 to 5");
    return HPCT_OK;
}

static hpct_status step(hpct_data_pickle *p, uint8_t opcode)
{
    int64_t ignored;
    switch (opcode) {
    case 0x80: /* PROTO */
        return check_protocol(p);
    case 0x95: /* FRAME */
        return take_number(p, 8, &ignored);
    case '(': /* MARK */
        return append(&p->marks, (void *) p->stack.count);
    case 'N':
        return push(p, new_value(p, HPCT_DATA_PICKLE_NONE));
    case 0x88 ... 0x89: /* NEWTRUE, NEWFALSE */
        return push_integer(p, HPCT_DATA_PICKLE_BOOL, opcode == 0x88);
    case 'K': /* BININT1, BININT2, BININT */
        return do_integer(p, 1);
    case 'M':
        return do_integer(p, 2);
    case 'J':
        return do_integer(p, -4);
    case 0x8a: /* LONG1 */
        return do_long(p);
    case 'U': /* SHORT_BINSTRING, SHORT_BINBYTES, SHORT_BINUNICODE */
    case 'C':
    case 0x8c:
        return push_bytes(p, 1);
    case 'T': /* BINSTRING, BINBYTES, BINUNICODE */
    case 'B':
    case 'X':
        return push_bytes(p, 4);
    case 0x8d ... 0x8e: /* BINUNICODE8, BINBYTES8, BYTEARRAY8 */
    case 0x96:
        return push_bytes(p, 8);
    case '}':
        return push(p, new_value(p, HPCT_DATA_PICKLE_DICT));
    case ']':
        return push(p, new_value(p, HPCT_DATA_PICKLE_SEQUENCE));
    case ')':
        return push_tuple(p, 0);
    case 't':
        return push_tuple(p, -1);
    case 0x85 ... 0x87: /* TUPLE1 to TUPLE3 */
        return push_tuple(p, opcode - 0x84);
    case 'a': /* APPEND, APPENDS */
        return add_items(p, HPCT_DATA_PICKLE_SEQUENCE, 1);
    case 'e':
        return add_items(p, HPCT_DATA_PICKLE_SEQUENCE, -1);
    case 's': /* SETITEM, SETITEMS */
        return add_items(p, HPCT_DATA_PICKLE_DICT, 2);
    case 'u':
        return add_items(p, HPCT_DATA_PICKLE_DICT, -1);
    case 'q': /* BINPUT, LONG_BINPUT, MEMOIZE */
        return do_memo(p, 1, memoize);
    case 'r':
        return do_memo(p, 4, memoize);
    case 0x94:
        return memoize(p, p->memo.count);
    case 'h': /* BINGET, LONG_BINGET */
        return do_memo(p, 1, recall);
    case 'j':
        return do_memo(p, 4, recall);
    case 'c':
        return do_global(p);
    case 0x93:
        return do_stack_global(p);
    case 'R':
        return do_reduce(p);
    case 'b':
        return do_build(p);
    default:
        return hpct_fail(HPCT_ERR_DATA, "%s: opcode 0x%02x of a pickle is not allowed", p->path,
                         opcode);
    }
}

static hpct_status run(hpct_data_pickle *p, const hpct_data_pickle_value **value)
{
    hpct_data_pickle_value *result = NULL;
    const uint8_t *opcode = NULL;
    HPCT_TRY(read_bytes(p, 1, &opcode));
    while (*opcode != '.') {
        HPCT_TRY(step(p, *opcode));
        HPCT_TRY(read_bytes(p, 1, &opcode));
    }
    HPCT_TRY(pop(p, &result));
    *value = result;
    return HPCT_OK;
}

hpct_status hpct_data_pickle_read(hpct_data_pickle **out, const hpct_data_pickle_value **value,
                                  const uint8_t *bytes, size_t num_bytes, const char *path)
{
    hpct_data_pickle *p = calloc(1, sizeof *p);
    if (p == NULL)
        return hpct_fail_memory(sizeof *p);
    *p =
        (hpct_data_pickle){.at = bytes, .end = bytes + num_bytes, .limit = num_bytes, .path = path};
    hpct_status status = num_bytes > 0 && bytes[0] == 0x80
                             ? run(p, value)
                             : damaged(p, "its protocol is not 2 to 5");
    if (status == HPCT_OK)
        *out = p;
    else
        hpct_data_pickle_free(p);
    return status;
}

const hpct_data_pickle_value *hpct_data_pickle_get(const hpct_data_pickle_value *dict,
                                                   const char *key)
{
    if (dict->kind != HPCT_DATA_PICKLE_DICT)
        return NULL;
    for (size_t i = 0; i + 1 < dict->count; i += 2) {
        if (is_text(dict->items[i], key))
            return dict->items[i + 1];
    }
    return NULL;
}

bool hpct_data_pickle_integer(const hpct_data_pickle_value *value, size_t index, int64_t *out)
{
    if (value->kind == HPCT_DATA_PICKLE_ARRAY) {
        size_t width = (size_t) llabs(value->integer);
        return value->rank == 1 && index < value->sizes[0] &&
               load_integer(value->bytes + index * width, value->integer, out);
    }
    const hpct_data_pickle_value *number = item(value, index, HPCT_DATA_PICKLE_INT);
    if (number != NULL)
        *out = number->integer;
    return number != NULL;
}
