/* From an archive to the writer. */
#include "spank/stage/taker.h"

static hpct_status add(void *context, const hpct_item *item)
{
    hpct_writer_taker *to = context;
    if (item->kind != HPCT_ITEM_FOLDER)
        to->report->files++;
    hpct_status status = hpct_writer_add(to->writer, item);
    return status == HPCT_OK ? hpct_report_tick(to->report, 0) : status;
}

static hpct_status whole(void *context, const hpct_item *item, const void *content)
{
    hpct_writer_taker *to = context;
    to->report->files++;
    hpct_status status = hpct_writer_whole(to->writer, item, content, NULL);
    return status == HPCT_OK ? hpct_report_tick(to->report, item->size) : status;
}

static hpct_status begin(void *context, const hpct_item *item)
{
    hpct_writer_taker *to = context;
    to->report->files++;
    return hpct_writer_begin(to->writer, item, &to->sink);
}

static hpct_status data(void *context, const void *bytes, size_t size)
{
    hpct_writer_taker *to = context;
    hpct_status status = hpct_sink_data(to->sink, bytes, size);
    return status == HPCT_OK ? hpct_report_tick(to->report, size) : status;
}

static hpct_status hole(void *context, uint64_t size)
{
    hpct_writer_taker *to = context;
    return hpct_sink_hole(to->sink, size);
}

static hpct_status end(void *context)
{
    hpct_writer_taker *to = context;
    hpct_sink *sink = to->sink;
    to->sink = NULL;
    return hpct_sink_end(sink, NULL);
}

hpct_taker hpct_writer_taker_begin(hpct_writer_taker *to, hpct_writer *writer, hpct_report *report)
{
    *to = (hpct_writer_taker){.writer = writer, .report = report};
    return (hpct_taker){.context = to,
                        .add = add,
                        .whole = whole,
                        .begin = begin,
                        .data = data,
                        .hole = hole,
                        .end = end};
}

void hpct_writer_taker_end(hpct_writer_taker *to)
{
    hpct_sink_drop(to->sink);
    to->sink = NULL;
}
