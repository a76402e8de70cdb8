/* The initializers of Keras' JSON draw from their distributions. */
#include "nn/run/run.h"
#include "tests/unit/unit.h"

#include <math.h>

#define DENSE_MODEL                                                                                \
    "{\"class_name\":\"Sequential\",\"config\":{\"layers\":["                                      \
    "{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,200]}},"                     \
    "{\"class_name\":\"Dense\",\"config\":{\"units\":200,\"use_bias\":false,"                      \
    "\"kernel_initializer\":%s}}]}}"
#define DRAWN 40000

/* A Dense layer of 200 x 200 with this initializer: mean, standard deviation, extremes. */
static void draw(const char *initializer, double *mean, double *deviation, double *largest)
{
    char text[1024];
    float values[DRAWN];
    double sum = 0, squares = 0;
    const hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
    hpct_model *model = NULL;
    int length = snprintf(text, sizeof text, DENSE_MODEL, initializer);
    if (hpct_model_from_json(&model, text, (size_t) length) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, &sgd),
                     HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
    assert_int_equal(hpct_run_param_get(model, 0, values), HPCT_OK);
    *largest = 0;
    for (int i = 0; i < DRAWN; i++) {
        sum += values[i];
        squares += (double) values[i] * values[i];
        *largest = fmax(*largest, fabs(values[i]));
    }
    *mean = sum / DRAWN;
    *deviation = sqrt(squares / DRAWN - *mean * *mean);
    hpct_model_free(model);
}

#define INITIALIZER(name, config) "{\"class_name\":\"" name "\",\"config\":{" config "}}"

TEST(initializers_have_their_distribution)
{
    static const struct {
        const char *text;
        double mean, deviation, largest; /* largest: the bound; 0 for none */
    } cases[] = {
        {INITIALIZER("GlorotUniform", ""), 0, 0.0707107, 0.122475},
        {INITIALIZER("GlorotNormal", ""), 0, 0.0707107, 0.160773},
        {INITIALIZER("HeNormal", "\"seed\":7"), 0, 0.1, 0.227368},
        {"\"he_uniform\"", 0, 0.1, 0.173206},
        {INITIALIZER("LecunNormal", ""), 0, 0.0707107, 0.160773},
        {INITIALIZER("VarianceScaling", "\"scale\":2,\"mode\":\"fan_out\",\"distribution\":"
                                        "\"untruncated_normal\""),
         0, 0.1, 0},
        {INITIALIZER("VarianceScaling", "\"scale\":2.0,\"mode\":\"fan_in\",\"distribution\":"
                                        "\"normal\""), /* HeNormal in Keras 2.2 and before */
         0, 0.1, 0.227368},
        {INITIALIZER("RandomNormal", "\"mean\":1.0,\"stddev\":0.5"), 1, 0.5, 0},
        {INITIALIZER("TruncatedNormal", "\"mean\":0.0,\"stddev\":1.0"), 0, 0.8796, 2},
        {INITIALIZER("RandomUniform", "\"minval\":-1,\"maxval\":3"), 1, 1.154700, 3},
        {INITIALIZER("Constant", "\"value\":0.5"), 0.5, 0, 0.5},
        {INITIALIZER("Ones", ""), 1, 0, 1},
        {"\"zeros\"", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double mean, deviation, largest;
        draw(cases[i].text, &mean, &deviation, &largest);
        /* 40,000 draws: both are within 1 % of the deviation in nearly all seeds; this is one */
        double near = 0.02 * cases[i].deviation + 1e-6;
        if (fabs(mean - cases[i].mean) > near || fabs(deviation - cases[i].deviation) > near)
            fail_msg("%s: mean %g, deviation %g", cases[i].text, mean, deviation);
        if (cases[i].largest > 0 && largest > cases[i].largest)
            fail_msg("%s: largest %g", cases[i].text, largest);
    }
}
