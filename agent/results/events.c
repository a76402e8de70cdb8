/* Field numbers are those of tensorflow/core/util/event.proto, core/framework/summary.proto and
 * tensor.proto, and of tensorboard/plugins/hparams/plugin_data.proto and api.proto. */
#include "agent/results/events.h"

#include <stdlib.h>

enum { EVENT_TIME = 1, EVENT_STEP, EVENT_VERSION, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4, CLASS_TENSOR = 2 };
enum { PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_STRING = 8 };
enum { TYPE_FLOAT = 1, TYPE_DOUBLE = 2, TYPE_STRING = 7 };
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { HPARAMS_START = 3, HPARAMS_END = 4 };
enum { START_HPARAMS = 1, START_SECONDS = 5, END_STATUS = 1, END_SECONDS = 2, SUCCESS = 1 };
enum { MAP_KEY = 1, MAP_VALUE = 2, NUMBER_VALUE = 2, STRING_VALUE = 3 };
enum { SESSION_STATUS = 1, STATUS_START = 1 };

/* ---- framing ---- */

uint32_t hpct_results_events_crc(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* A CRC of data with a CRC in it would be a poor one. */
static uint32_t masked_crc(const void *data, size_t size)
{
    uint32_t crc = hpct_results_events_crc(data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_record(hpct_protobuf *to, const hpct_protobuf *event)
{
    size_t begin = to->size;
    to->failed |= event->failed;
    hpct_protobuf_put_u64(to, event->size);
    if (to->failed)
        return;
    hpct_protobuf_put_u32(to, masked_crc(to->data + begin, sizeof(uint64_t)));
    hpct_protobuf_put(to, event->data, event->size);
    hpct_protobuf_put_u32(to, masked_crc(event->data, event->size));
}

static hpct_protobuf begin_event(const hpct_results_event *at)
{
    hpct_protobuf event = {0};
    hpct_protobuf_double(&event, EVENT_TIME, at->time);
    if (at->step != 0) /* which is the default */
        hpct_protobuf_integer(&event, EVENT_STEP, at->step);
    return event;
}

static void end_event(hpct_protobuf *to, hpct_protobuf *event)
{
    put_record(to, event);
    free(event->data);
}

void hpct_results_events_version(hpct_protobuf *to, double time)
{
    hpct_protobuf event = begin_event(&(hpct_results_event){.time = time});
    hpct_protobuf_text(&event, EVENT_VERSION, "brain.Event:2");
    end_event(to, &event);
}

void hpct_results_events_start(hpct_protobuf *to, const hpct_results_event *at)
{
    hpct_protobuf event = begin_event(at);
    size_t log = hpct_protobuf_begin(&event, EVENT_SESSION_LOG);
    hpct_protobuf_integer(&event, SESSION_STATUS, STATUS_START);
    hpct_protobuf_end(&event, log);
    end_event(to, &event);
}

/* ---- summaries ---- */

/* An event with one value, which is open. */
typedef struct summary {
    hpct_protobuf event;
    size_t summary, value;
} summary;

static summary begin_summary(const hpct_results_event *at, const char *tag)
{
    summary s = {.event = begin_event(at)};
    s.summary = hpct_protobuf_begin(&s.event, EVENT_SUMMARY);
    s.value = hpct_protobuf_begin(&s.event, SUMMARY_VALUE);
    hpct_protobuf_text(&s.event, VALUE_TAG, tag);
    return s;
}

static void end_summary(hpct_protobuf *to, summary *s)
{
    hpct_protobuf_end(&s->event, s->value);
    hpct_protobuf_end(&s->event, s->summary);
    end_event(to, &s->event);
}

/* The plugin that shows the value's tensor. */
static void put_plugin(hpct_protobuf *to, const char *name, const hpct_protobuf *content)
{
    size_t metadata = hpct_protobuf_begin(to, VALUE_METADATA);
    size_t plugin = hpct_protobuf_begin(to, METADATA_PLUGIN);
    hpct_protobuf_text(to, PLUGIN_NAME, name);
    if (content != NULL) {
        size_t begin = hpct_protobuf_begin(to, PLUGIN_CONTENT);
        hpct_protobuf_put(to, content->data, content->size);
        hpct_protobuf_end(to, begin);
        to->failed |= content->failed;
    }
    hpct_protobuf_end(to, plugin);
    hpct_protobuf_integer(to, METADATA_CLASS, CLASS_TENSOR);
    hpct_protobuf_end(to, metadata);
}

static void put_shape(hpct_protobuf *to, const int64_t *sizes, int rank)
{
    size_t shape = hpct_protobuf_begin(to, TENSOR_SHAPE);
    for (int i = 0; i < rank; i++) {
        size_t dim = hpct_protobuf_begin(to, SHAPE_DIM);
        if (sizes[i] != 0)
            hpct_protobuf_integer(to, DIM_SIZE, sizes[i]);
        hpct_protobuf_end(to, dim);
    }
    hpct_protobuf_end(to, shape);
}

/* In the form of the first writers, which every reader knows. */
void hpct_results_events_scalar(hpct_protobuf *to, const hpct_results_event *at, const char *tag,
                                double value)
{
    summary s = begin_summary(at, tag);
    hpct_protobuf_float(&s.event, VALUE_SIMPLE, (float) value);
    end_summary(to, &s);
}

void hpct_results_events_text(hpct_protobuf *to, const hpct_results_event *at, const char *tag,
                              const char *markdown)
{
    summary s = begin_summary(at, tag);
    size_t tensor = hpct_protobuf_begin(&s.event, VALUE_TENSOR);
    hpct_protobuf_integer(&s.event, TENSOR_TYPE, TYPE_STRING);
    put_shape(&s.event, NULL, 0);
    hpct_protobuf_text(&s.event, TENSOR_STRING, markdown);
    hpct_protobuf_end(&s.event, tensor);
    put_plugin(&s.event, "text", NULL);
    end_summary(to, &s);
}

void hpct_results_events_histogram(hpct_protobuf *to, const hpct_results_event *at, const char *tag,
                                   const hpct_results_histogram *histogram)
{
    summary s = begin_summary(at, tag);
    size_t tensor = hpct_protobuf_begin(&s.event, VALUE_TENSOR);
    hpct_protobuf_integer(&s.event, TENSOR_TYPE, TYPE_DOUBLE);
    put_shape(&s.event, (const int64_t[]){HPCT_RESULTS_HISTOGRAM_BUCKETS, 3}, 2);
    size_t content = hpct_protobuf_begin(&s.event, TENSOR_CONTENT);
    for (int i = 0; i < HPCT_RESULTS_HISTOGRAM_BUCKETS; i++) {
        hpct_protobuf_put_double(&s.event, histogram->left[i]);
        hpct_protobuf_put_double(&s.event, histogram->right[i]);
        hpct_protobuf_put_double(&s.event, histogram->count[i]);
    }
    hpct_protobuf_end(&s.event, content);
    hpct_protobuf_end(&s.event, tensor);
    put_plugin(&s.event, "histograms", NULL);
    end_summary(to, &s);
}

/* ---- hparams ---- */

/* The plugin reads the metadata alone; the tensor is empty. */
static void put_hparams(hpct_protobuf *to, const hpct_results_event *at, const char *tag,
                        hpct_protobuf *content)
{
    summary s = begin_summary(at, tag);
    size_t tensor = hpct_protobuf_begin(&s.event, VALUE_TENSOR);
    hpct_protobuf_integer(&s.event, TENSOR_TYPE, TYPE_FLOAT);
    put_shape(&s.event, (const int64_t[]){0}, 1);
    hpct_protobuf_end(&s.event, tensor);
    put_plugin(&s.event, "hparams", content);
    end_summary(to, &s);
    free(content->data);
}

static void put_hparam(hpct_protobuf *to, const hpct_results_hparam *hparam)
{
    size_t entry = hpct_protobuf_begin(to, START_HPARAMS);
    hpct_protobuf_text(to, MAP_KEY, hparam->name);
    size_t value = hpct_protobuf_begin(to, MAP_VALUE);
    if (hparam->text != NULL)
        hpct_protobuf_text(to, STRING_VALUE, hparam->text);
    else
        hpct_protobuf_double(to, NUMBER_VALUE, hparam->number);
    hpct_protobuf_end(to, value);
    hpct_protobuf_end(to, entry);
}

void hpct_results_events_hparams(hpct_protobuf *to, const hpct_results_event *at,
                                 const hpct_results_hparam *hparams, int count)
{
    hpct_protobuf content = {0};
    size_t start = hpct_protobuf_begin(&content, HPARAMS_START);
    for (int i = 0; i < count; i++)
        put_hparam(&content, &hparams[i]);
    hpct_protobuf_double(&content, START_SECONDS, at->time);
    hpct_protobuf_end(&content, start);
    put_hparams(to, at, "_hparams_/session_start_info", &content);
}

void hpct_results_events_succeeded(hpct_protobuf *to, const hpct_results_event *at)
{
    hpct_protobuf content = {0};
    size_t end = hpct_protobuf_begin(&content, HPARAMS_END);
    hpct_protobuf_integer(&content, END_STATUS, SUCCESS);
    hpct_protobuf_double(&content, END_SECONDS, at->time);
    hpct_protobuf_end(&content, end);
    put_hparams(to, at, "_hparams_/session_end_info", &content);
}
