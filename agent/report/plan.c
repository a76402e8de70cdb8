/* The predictions in a file of `hpc-train plan --json`: of each number of nodes the best strategy.
 */
#include "agent/report/content.h"
#include "agent/report/read_json.h"
#include "base/file.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

#define MOST_BYTES ((size_t) 1 << 26)

static void read_rows(hpct_report_plan *plan, hpct_report_pool *pool, int network,
                      const json_t *rows)
{
    size_t count = json_array_size(rows), i;
    const json_t *row;
    double *workers = hpct_report_take(pool, count, sizeof *workers);
    double *rates = hpct_report_take(pool, count, sizeof *rates);
    double *ups = hpct_report_take(pool, count, sizeof *ups);
    if (workers == NULL || rates == NULL || ups == NULL)
        return;
    size_t used = 0;
    json_array_foreach(rows, i, row)
    {
        int64_t nodes = hpct_report_json_integer(row, "nodes", 0);
        if (!json_is_true(json_object_get(row, "best")) || nodes < 1)
            continue;
        workers[used] = (double) nodes;
        rates[used] = hpct_report_json_number(row, "images_per_second");
        ups[used++] = hpct_report_json_number(row, "speed_up");
    }
    plan->networks[network].workers = workers;
    plan->networks[network].images_per_second = rates;
    plan->networks[network].speed_up = ups;
    plan->networks[network].count = used;
}

static bool read_network(hpct_report_plan *plan, hpct_report_pool *pool, const json_t *object,
                         bool alone)
{
    char text[HPCT_REPORT_NUMBER];
    const json_t *rows = json_object_get(object, "rows");
    double bytes = hpct_report_json_number(json_object_get(object, "network"), "bytes_per_second");
    if (!json_is_array(rows) || plan->num_networks == 2)
        return false;
    plan->model = hpct_report_json_text(pool, object, "model");
    plan->networks[plan->num_networks].name =
        alone ? "predicted"
              : hpct_report_print(pool, "predicted, %s Gbit/s",
                                  hpct_report_amount(text, bytes * 8e-9));
    read_rows(plan, pool, plan->num_networks++, rows);
    return true;
}

bool hpct_report_plan_parse(hpct_report_plan *plan, hpct_report_pool *pool, const char *text,
                            size_t size)
{
    size_t i;
    const json_t *object;
    json_t *root = json_loadb(text, size, 0, NULL);
    bool good = json_is_object(root) && read_network(plan, pool, root, true);
    json_array_foreach(root, i, object) good = read_network(plan, pool, object, false);
    json_decref(root);
    return good;
}

hpct_status hpct_report_plan_read(hpct_report_plan *plan, hpct_report_pool *pool, const char *path)
{
    char *text;
    size_t size;
    *plan = (hpct_report_plan){.path = path};
    HPCT_TRY(hpct_file_read(&text, &size, path, MOST_BYTES));
    bool good = hpct_report_plan_parse(plan, pool, text, size);
    free(text);
    if (!good)
        return hpct_fail(HPCT_ERR_DATA, "--plan: %s is not a file of hpc-train plan --json", path);
    return HPCT_OK;
}
