/* The pickle machine, restricted to plain values and numpy's integer arrays. All values are freed
 * with the pickle, so references among them, including cycles, need no counting. */
#include "agent/data/pickle.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* The permitted names; the reader implements their calls. */
typedef enum name {
    NAME_RECONSTRUCT,
    NAME_FROMBUFFER,
    NAME_SCALAR,
    NAME_DTYPE,
    NAME_NDARRAY,
    NAME_ENCODE,
} name;

static const struct {
    const char *module, *attribute;
    name name;
} names[] = {
    {"numpy.core.multiarray", "_reconstruct", NAME_RECONSTRUCT},
    {"numpy._core.multiarray", "_reconstruct", NAME_RECONSTRUCT},
    {"numpy.core.numeric", "_frombuffer", NAME_FROMBUFFER},
    {"numpy._core.numeric", "_frombuffer", NAME_FROMBUFFER},
    {"numpy.core.multiarray", "scalar", NAME_SCALAR},
    {"numpy._core.multiarray", "scalar", NAME_SCALAR},
    {"numpy", "dtype", NAME_DTYPE},
    {"numpy", "ndarray", NAME_NDARRAY},
    {"_codecs", "encode", NAME_ENCODE},
};

typedef struct owned {
    struct owned *next;
    hpct_data_pickle_value value;
} owned;

typedef struct list {
    void **items;
    size_t count, room;
} list;

struct hpct_data_pickle {
    const uint8_t *at, *end;
    const char *path;
    owned *values;
    list stack, memo, buffers;
    list marks;            /* stack heights, stored as pointers */
    size_t decoded, limit; /* bytes decoded from text, and their limit */
};

/* ---- memory ---- */

static hpct_status append(list *to, void *item)
{
    if (to->count == to->room) {
        size_t room = to->room > 0 ? 2 * to->room : 64;
        void **grown = realloc(to->items, room * sizeof *grown);
        if (grown == NULL)
            return hpct_fail_memory(room * sizeof *grown);
        to->items = grown;
        to->room = room;
    }
    to->items[to->count++] = item;
    return HPCT_OK;
}

static hpct_data_pickle_value *new_value(hpct_data_pickle *p, hpct_data_pickle_kind kind)
{
    owned *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->next = p->values;
    p->values = made;
    made->value.kind = kind;
    return &made->value;
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
    for (size_t i = 0; i < pickle->buffers.count; i++)
        free(pickle->buffers.items[i]);
    free(pickle->buffers.items);
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

/* `width` bytes, little-endian. */
static hpct_status take_number(hpct_data_pickle *p, int width, uint64_t *out)
{
    const uint8_t *bytes = NULL;
    hpct_status status = read_bytes(p, (uint64_t) width, &bytes);
    *out = 0;
    for (int i = 0; status == HPCT_OK && i < width; i++)
        *out |= (uint64_t) bytes[i] << (8 * i);
    return status;
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

static hpct_status pop(hpct_data_pickle *p, hpct_data_pickle_value **out)
{
    if (p->stack.count <= floor_of(p))
        return damaged(p, "its stack is empty");
    *out = p->stack.items[--p->stack.count];
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
    uint64_t count;
    const uint8_t *bytes = NULL;
    HPCT_TRY(take_number(p, length_width, &count));
    HPCT_TRY(read_bytes(p, count, &bytes));
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
    if (count > to->room - to->count) {
        size_t room = 2 * to->room > to->count + count ? 2 * to->room : to->count + count;
        hpct_data_pickle_value **grown = realloc(to->items, room * sizeof(void *));
        if (grown == NULL)
            return hpct_fail_memory(room * sizeof(void *));
        to->items = grown;
        to->room = room;
    }
    for (size_t i = 0; i < count; i++)
        to->items[to->count++] = p->stack.items[first + i];
    p->stack.count = first;
    return HPCT_OK;
}

/* Pushes a tuple of the topmost `count` items, or (count < 0) of those above the mark. */
static hpct_status push_tuple(hpct_data_pickle *p, int count)
{
    size_t first;
    if (count < 0) {
        if (p->marks.count == 0)
            return damaged(p, "a mark is missing");
        first = (size_t) p->marks.items[--p->marks.count];
    } else {
        if (p->stack.count - floor_of(p) < (size_t) count)
            return damaged(p, "its stack is empty");
        first = p->stack.count - (size_t) count;
    }
    hpct_data_pickle_value *tuple = new_value(p, HPCT_DATA_PICKLE_SEQUENCE);
    HPCT_TRY(tuple != NULL ? move_items(p, tuple, first) : hpct_fail_memory(0));
    return push(p, tuple);
}

/* Adds the items above the mark, or the topmost `count`, to the list or dictionary below them. */
static hpct_status add_items(hpct_data_pickle *p, hpct_data_pickle_kind kind, int count)
{
    size_t first;
    if (count > 0) {
        if (p->stack.count - floor_of(p) <= (size_t) count)
            return damaged(p, "its stack is empty");
        first = p->stack.count - (size_t) count;
    } else {
        if (p->marks.count == 0)
            return damaged(p, "a mark is missing");
        first = (size_t) p->marks.items[--p->marks.count];
        if (first <= floor_of(p))
            return damaged(p, "its stack is empty");
    }
    hpct_data_pickle_value *to = p->stack.items[first - 1];
    if (to->kind != kind || (kind == HPCT_DATA_PICKLE_DICT && (p->stack.count - first) % 2 != 0))
        return damaged(p, "a value is of the wrong kind");
    return move_items(p, to, first);
}

static hpct_status memoize(hpct_data_pickle *p, uint64_t index)
{
    if (p->stack.count <= floor_of(p))
        return damaged(p, "its stack is empty");
    void *top = p->stack.items[p->stack.count - 1];
    while (p->memo.count <= index) { /* Python 2 counts from 1 */
        if (index > p->memo.count + 1)
            return damaged(p, "its memo has gaps");
        hpct_status status = append(&p->memo, NULL);
        if (status != HPCT_OK)
            return status;
    }
    p->memo.items[index] = top;
    return HPCT_OK;
}

static hpct_status recall(hpct_data_pickle *p, uint64_t index)
{
    if (index >= p->memo.count || p->memo.items[index] == NULL)
        return damaged(p, "its memo has gaps");
    return push(p, p->memo.items[index]);
}

/* ---- names ---- */

static hpct_status push_name(hpct_data_pickle *p, const uint8_t *module, size_t module_length,
                             const uint8_t *attribute, size_t attribute_length)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i].module) == module_length &&
            memcmp(names[i].module, module, module_length) == 0 &&
            strlen(names[i].attribute) == attribute_length &&
            memcmp(names[i].attribute, attribute, attribute_length) == 0)
            return push_integer(p, HPCT_DATA_PICKLE_NAME, names[i].name);
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

/* ---- calls ---- */

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
    return value != NULL && value->kind == HPCT_DATA_PICKLE_BYTES && value->count == strlen(text) &&
           memcmp(value->bytes, text, value->count) == 0;
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
    uint8_t *bytes = malloc(text->count + 1);
    if (bytes == NULL)
        return hpct_fail_memory(text->count);
    hpct_status status = append(&p->buffers, bytes);
    if (status != HPCT_OK) {
        free(bytes);
        return status;
    }
    size_t count = 0;
    for (size_t i = 0; i < text->count; i++) {
        uint8_t c = text->bytes[i];
        if (c >= 0x80) {
            if ((c != 0xc2 && c != 0xc3) || i + 1 == text->count ||
                (text->bytes[i + 1] & 0xc0) != 0x80)
                return damaged(p, "text is not latin1");
            c = (uint8_t) ((c << 6) | (text->bytes[++i] & 0x3f));
        }
        bytes[count++] = c;
    }
    hpct_data_pickle_value *value = new_value(p, HPCT_DATA_PICKLE_BYTES);
    if (value != NULL) {
        value->bytes = bytes;
        value->count = count;
    }
    return push(p, value);
}

/* "u1", "i8": the width in bytes, negative if signed. */
static hpct_status make_dtype(hpct_data_pickle *p, const hpct_data_pickle_value *arguments)
{
    const hpct_data_pickle_value *text = item(arguments, 0, HPCT_DATA_PICKLE_BYTES);
    if (text == NULL || text->count != 2 || (text->bytes[0] != 'u' && text->bytes[0] != 'i') ||
        strchr("1248", text->bytes[1]) == NULL || text->bytes[1] == '\0')
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

static hpct_status from_buffer(hpct_data_pickle *p, const hpct_data_pickle_value *arguments)
{
    const hpct_data_pickle_value *order = item(arguments, 3, HPCT_DATA_PICKLE_BYTES);
    hpct_data_pickle_value *array = new_value(p, HPCT_DATA_PICKLE_ARRAY);
    if (array == NULL)
        return hpct_fail_memory(0);
    HPCT_TRY(fill_array(p, array, item(arguments, 2, HPCT_DATA_PICKLE_SEQUENCE),
                        item(arguments, 1, HPCT_DATA_PICKLE_DTYPE),
                        item(arguments, 0, HPCT_DATA_PICKLE_BYTES), !is_text(order, "C")));
    return push(p, array);
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

static hpct_status do_reduce(hpct_data_pickle *p)
{
    hpct_data_pickle_value *arguments = NULL, *called = NULL;
    HPCT_TRY(pop(p, &arguments));
    HPCT_TRY(pop(p, &called));
    if (called->kind != HPCT_DATA_PICKLE_NAME)
        return damaged(p, "something is called that cannot be");
    switch ((name) called->integer) {
    case NAME_RECONSTRUCT:
        return push(p, new_value(p, HPCT_DATA_PICKLE_ARRAY)); /* BUILD sets its state */
    case NAME_FROMBUFFER:
        return from_buffer(p, arguments);
    case NAME_SCALAR:
        return make_scalar(p, arguments);
    case NAME_DTYPE:
        return make_dtype(p, arguments);
    case NAME_ENCODE:
        return encode_latin1(p, arguments);
    case NAME_NDARRAY:
        break;
    }
    return damaged(p, "something is called that cannot be");
}

/* The state of an array, (version, shape, dtype, Fortran order, bytes), or of a dtype, (version,
 * byte order, …). */
static hpct_status do_build(hpct_data_pickle *p)
{
    hpct_data_pickle_value *state = NULL, *of;
    HPCT_TRY(pop(p, &state));
    if (p->stack.count > floor_of(p)) {
        of = p->stack.items[p->stack.count - 1];
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
    }
    return damaged(p, "a state is not of the form that numpy writes");
}

/* ---- opcodes ---- */

static hpct_status do_long(hpct_data_pickle *p)
{
    uint64_t width;
    const uint8_t *bytes = NULL;
    int64_t value = 0;
    HPCT_TRY(take_number(p, 1, &width));
    if (width > 8)
        return damaged(p, "a number is too large");
    HPCT_TRY(read_bytes(p, width, &bytes));
    if (width > 0)
        load_integer(bytes, -(int64_t) width, &value);
    return push_integer(p, HPCT_DATA_PICKLE_INT, value);
}

/* Pushes a number of `width` bytes as an integer; four bytes are signed. */
static hpct_status do_integer(hpct_data_pickle *p, int width)
{
    uint64_t value;
    HPCT_TRY(take_number(p, width, &value));
    return push_integer(p, HPCT_DATA_PICKLE_INT,
                        width == 4 ? (int32_t) (uint32_t) value : (int64_t) value);
}

static hpct_status do_memo(hpct_data_pickle *p, int width,
                           hpct_status (*with)(hpct_data_pickle *p, uint64_t index))
{
    uint64_t index;
    HPCT_TRY(take_number(p, width, &index));
    return with(p, index);
}

static hpct_status check_protocol(hpct_data_pickle *p)
{
    uint64_t version;
    HPCT_TRY(take_number(p, 1, &version));
    if (version < 2 || version > 5)
        return damaged(p, "its protocol is not 2 to 5");
    return HPCT_OK;
}

static hpct_status step(hpct_data_pickle *p, uint8_t opcode)
{
    uint64_t ignored;
    switch (opcode) {
    case 0x80: /* PROTO */
        return check_protocol(p);
    case 0x95: /* FRAME */
        return take_number(p, 8, &ignored);
    case '(': /* MARK */
        return append(&p->marks, (void *) p->stack.count);
    case 'N':
        return push(p, new_value(p, HPCT_DATA_PICKLE_NONE));
    case 0x88: /* NEWTRUE, NEWFALSE */
    case 0x89:
        return push_integer(p, HPCT_DATA_PICKLE_BOOL, opcode == 0x88);
    case 'K': /* BININT1, BININT2, BININT */
        return do_integer(p, 1);
    case 'M':
        return do_integer(p, 2);
    case 'J':
        return do_integer(p, 4);
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
    case 0x8e: /* BINBYTES8, BINUNICODE8, BYTEARRAY8 */
    case 0x8d:
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
    case 0x85: /* TUPLE1 to TUPLE3 */
    case 0x86:
    case 0x87:
        return push_tuple(p, opcode - 0x84);
    case 'a': /* APPEND, APPENDS */
        return add_items(p, HPCT_DATA_PICKLE_SEQUENCE, 1);
    case 'e':
        return add_items(p, HPCT_DATA_PICKLE_SEQUENCE, 0);
    case 's': /* SETITEM, SETITEMS */
        return add_items(p, HPCT_DATA_PICKLE_DICT, 2);
    case 'u':
        return add_items(p, HPCT_DATA_PICKLE_DICT, 0);
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
    for (;;) {
        const uint8_t *opcode = NULL;
        hpct_status status = read_bytes(p, 1, &opcode);
        if (status == HPCT_OK && *opcode == '.') {
            status = pop(p, &result);
            *value = result;
            return status;
        }
        if (status == HPCT_OK)
            status = step(p, *opcode);
        if (status != HPCT_OK)
            return status;
    }
}

hpct_status hpct_data_pickle_read(hpct_data_pickle **out, const hpct_data_pickle_value **value,
                                  const uint8_t *bytes, size_t num_bytes, const char *path)
{
    hpct_data_pickle *p = calloc(1, sizeof *p);
    if (p == NULL)
        return hpct_fail_memory(sizeof *p);
    p->at = bytes;
    p->end = bytes + num_bytes;
    p->limit = num_bytes;
    p->path = path;
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
        if (value->rank != 1 || index >= value->sizes[0])
            return false;
        size_t width = (size_t) llabs(value->integer);
        return load_integer(value->bytes + index * width, value->integer, out);
    }
    const hpct_data_pickle_value *number = item(value, index, HPCT_DATA_PICKLE_INT);
    if (number != NULL)
        *out = number->integer;
    return number != NULL;
}
