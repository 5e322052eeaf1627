/* The loops of loops.h, over the lanes that the including file has defined. */

/* Bits of `a` where mask's are set, of `b` elsewhere. */
static AI V choose(I mask, V a, V b) {
    return (V)(((I)a & mask) | ((I)b & ~mask));
}

static AI float lane_sum(V a) {
    typedef float Q __attribute__((vector_size(16)));
    Q quarters[LOOP_LANES / 4];
    memcpy(quarters, &a, sizeof quarters);
    for (size_t i = 1; i < LOOP_LANES / 4; i++)
        quarters[0] += quarters[i];
    return (quarters[0][0] + quarters[0][1]) + (quarters[0][2] + quarters[0][3]);
}

static AI V lane_abs(V a) {
    return (V)((I)a & 0x7fffffff);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Activations
 * ------------------------------------------------------------------------------------------------------------- */

/* e^x for x <= 0, within 2 ulp; below -87 it is e^-87. With x = n ln 2 + r, |r| <= ln 2 / 2, e^r is a polynomial and
 * 2^n goes into the exponent. NaN gives NaN. */
static AI V lane_exp(V x) {
    V low = choose(x < -87.0f, splat(-87.0f), x);
    const float round = 12582912.0f; /* 1.5 * 2^23: sums with it are whole numbers, in the lowest bits */
    V shifted = lane_fma(low, splat(1.44269504f), splat(round));
    V n = shifted - round;
    V r = lane_fma(n, splat(-0.693145752f), low);
    r = lane_fma(n, splat(-1.42860677e-6f), r);
    V p = splat(1.0f / 720);
    p = lane_fma(p, r, splat(1.0f / 120));
    p = lane_fma(p, r, splat(1.0f / 24));
    p = lane_fma(p, r, splat(1.0f / 6));
    p = lane_fma(p, r, splat(0.5f));
    p = lane_fma(p, r, splat(1.0f));
    p = lane_fma(p, r, splat(1.0f));
    V scaled = (V)((I)p + ((I)shifted << 23));
    return choose(x == x, scaled, x);
}

static AI V lane_tanh(V z) {
    V e = lane_exp(lane_abs(z) * -2.0f);
    V t = (1.0f - e) / (1.0f + e);
    return (V)((I)t | ((I)z & INT32_MIN));
}

/* The normal distribution function, by Abramowitz and Stegun 7.1.26: within 1.5e-7. *density gets the density. */
static AI V lane_normal(V z, V *density) {
    V y = lane_abs(z) * 0.707106781f;
    V e = lane_exp(y * -y);
    V t = 1.0f / lane_fma(y, splat(0.3275911f), splat(1.0f));
    V p = splat(1.061405429f);
    p = lane_fma(p, t, splat(-1.453152027f));
    p = lane_fma(p, t, splat(1.421413741f));
    p = lane_fma(p, t, splat(-0.284496736f));
    p = lane_fma(p, t, splat(0.254829592f));
    V upper = p * t * e * 0.5f;
    *density = e * 0.398942280f;
    return choose(z < 0.0f, upper, 1.0f - upper);
}

static AI V lane_act(V z, sl_activation activation) {
    V density;
    switch (activation) {
    case SL_RELU:
        return choose(z < 0.0f, splat(0), z);
    case SL_GELU:
        return z * lane_normal(z, &density);
    case SL_TANH:
        return lane_tanh(z);
    case SL_LINEAR:
        break;
    }
    return z;
}

/* The derivative, from what sl_loops.backward is given. */
static AI V lane_slope(V out, sl_activation activation, V unscale) {
    V density, t;
    switch (activation) {
    case SL_RELU:
        return choose(out > 0.0f, splat(1), splat(0));
    case SL_GELU:
        t = lane_normal(out, &density);
        return lane_fma(out, density, t);
    case SL_TANH:
        t = out * unscale;
        return 1.0f - t * t;
    case SL_LINEAR:
        break;
    }
    return splat(1);
}

/* Calls `loop`, an always-inline function, with the activation as a constant, so that the test is outside of it. */
#define WITH_ACTIVATION(activation, loop, ...)                                                                         \
    switch (activation) {                                                                                              \
    case SL_RELU:                                                                                                      \
        loop(__VA_ARGS__, SL_RELU);                                                                                    \
        return;                                                                                                        \
    case SL_GELU:                                                                                                      \
        loop(__VA_ARGS__, SL_GELU);                                                                                    \
        return;                                                                                                        \
    case SL_TANH:                                                                                                      \
        loop(__VA_ARGS__, SL_TANH);                                                                                    \
        return;                                                                                                        \
    case SL_LINEAR:                                                                                                    \
        loop(__VA_ARGS__, SL_LINEAR);                                                                                  \
    }

static AI void join_two(const float *user, const float *item, size_t n, float *out, sl_activation activation) {
    size_t i = 0;
    for (; i + LOOP_LANES <= n; i += LOOP_LANES)
        store(out + i, lane_act(load(user + i) + load(item + i), activation));
    if (i < n)
        store_part(out + i, lane_act(load_part(user + i, n - i) + load_part(item + i, n - i), activation), n - i);
}

static AI void join_three(const float *user, const float *item, const float *pair, size_t n, float *out,
                          sl_activation activation) {
    size_t i = 0;
    for (; i + LOOP_LANES <= n; i += LOOP_LANES)
        store(out + i, lane_act(load(user + i) + load(item + i) + load(pair + i), activation));
    if (i < n) {
        V sum = load_part(user + i, n - i) + load_part(item + i, n - i) + load_part(pair + i, n - i);
        store_part(out + i, lane_act(sum, activation), n - i);
    }
}

static void join(const float *user, const float *item, const float *pair, size_t n, sl_activation activation,
                 float *out) {
    if (pair) {
        WITH_ACTIVATION(activation, join_three, user, item, pair, n, out)
    } else {
        WITH_ACTIVATION(activation, join_two, user, item, n, out)
    }
}

static AI void activate_all(const float *z, size_t n, float *out, sl_activation activation) {
    size_t i = 0;
    for (; i + LOOP_LANES <= n; i += LOOP_LANES)
        store(out + i, lane_act(load(z + i), activation));
    if (i < n) store_part(out + i, lane_act(load_part(z + i, n - i), activation), n - i);
}

static void activate(const float *z, size_t n, sl_activation activation, float *out) {
    WITH_ACTIVATION(activation, activate_all, z, n, out)
}

/* By the exponential of a negative number, which cannot overflow. */
static AI V lane_sigmoid(V z) {
    V e = choose(z < -87.0f, splat(0), lane_exp(-lane_abs(z)));
    V upper = 1.0f / (1.0f + e);
    return choose(z < 0.0f, e * upper, upper);
}

static void sigmoid(float *values, size_t n) {
    size_t i = 0;
    for (; i + LOOP_LANES <= n; i += LOOP_LANES)
        store(values + i, lane_sigmoid(load(values + i)));
    if (i < n) store_part(values + i, lane_sigmoid(load_part(values + i, n - i)), n - i);
}

static AI void backward_rows(const float *out, float *gradient, size_t rows, size_t n, V unscale, float *sums,
                             sl_activation activation) {
    for (size_t r = 0; r < rows; r++, out += n, gradient += n) {
        size_t i = 0;
        for (; i + LOOP_LANES <= n; i += LOOP_LANES) {
            V g = load(gradient + i) * lane_slope(load(out + i), activation, unscale);
            store(gradient + i, g);
            store(sums + i, load(sums + i) + g);
        }
        if (i < n) {
            V g = load_part(gradient + i, n - i) * lane_slope(load_part(out + i, n - i), activation, unscale);
            store_part(gradient + i, g, n - i);
            store_part(sums + i, load_part(sums + i, n - i) + g, n - i);
        }
    }
}

static void backward(const float *out, float *gradient, size_t rows, size_t n, sl_activation activation,
                     float out_scale, float *column_sums) {
    V unscale = splat(1.0f / out_scale);
    WITH_ACTIVATION(activation, backward_rows, out, gradient, rows, n, unscale, column_sums)
}

/* ---------------------------------------------------------------------------------------------------------------
 * Sums
 * ------------------------------------------------------------------------------------------------------------- */

static void add(float *to, const float *from, size_t n) {
    size_t i = 0;
    for (; i + LOOP_LANES <= n; i += LOOP_LANES)
        store(to + i, load(to + i) + load(from + i));
    if (i < n) store_part(to + i, load_part(to + i, n - i) + load_part(from + i, n - i), n - i);
}

static void add_scaled(float *to, const float *from, float factor, size_t n) {
    V f = splat(factor);
    size_t i = 0;
    for (; i + LOOP_LANES <= n; i += LOOP_LANES)
        store(to + i, lane_fma(load(from + i), f, load(to + i)));
    if (i < n) store_part(to + i, lane_fma(load_part(from + i, n - i), f, load_part(to + i, n - i)), n - i);
}

static float dot(const float *a, const float *b, size_t n) {
    V s = {0}, t = {0};
    size_t i = 0;
    for (; i + 2 * LOOP_LANES <= n; i += 2 * LOOP_LANES) {
        s = lane_fma(load(a + i), load(b + i), s);
        t = lane_fma(load(a + i + LOOP_LANES), load(b + i + LOOP_LANES), t);
    }
    if (i + LOOP_LANES <= n) {
        s = lane_fma(load(a + i), load(b + i), s);
        i += LOOP_LANES;
    }
    if (i < n) t = lane_fma(load_part(a + i, n - i), load_part(b + i, n - i), t);
    return lane_sum(s + t);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Matrix products: blocks of 4 rows by 2 registers, or 1 row by 8, whose sums stay in registers over all of `in`
 * ------------------------------------------------------------------------------------------------------------- */

enum { BLOCK_ROWS = 4, BLOCK_WIDTH = 2, ROW_WIDTH = 8 };

/* `width` registers of columns from `at`, of which the last has `lanes` lanes. All but `row`, `at` and, where it is not
 * a whole register, `lanes` are constants. */
static AI void product_block(const sl_plain_product *p, size_t row, size_t rows, size_t at, size_t width,
                             size_t lanes) {
    V sums[BLOCK_ROWS][ROW_WIDTH];
    for (size_t c = 0; c < width; c++) {
        const float *bias = p->bias + at + c * LOOP_LANES;
        V begin = !p->bias ? splat(0) : c + 1 < width || lanes == LOOP_LANES ? load(bias) : load_part(bias, lanes);
        for (size_t r = 0; r < rows; r++)
            sums[r][c] = begin;
    }
    for (size_t k = 0; k < p->in; k++) {
        const float *weights = p->weights + k * p->out + at;
        for (size_t c = 0; c < width; c++) {
            const float *from = weights + c * LOOP_LANES;
            V w = c + 1 < width || lanes == LOOP_LANES ? load(from) : load_part(from, lanes);
            for (size_t r = 0; r < rows; r++)
                sums[r][c] = lane_fma(splat(p->src[(row + r) * p->stride + k]), w, sums[r][c]);
        }
    }
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < width; c++) {
            float *to = p->dst + (row + r) * p->out + at + c * LOOP_LANES;
            if (c + 1 < width || lanes == LOOP_LANES)
                store(to, sums[r][c]);
            else
                store_part(to, sums[r][c], lanes);
        }
    }
}

static AI void product_rows(const sl_plain_product *p, size_t row, size_t rows, size_t width) {
    size_t at = 0;
    for (; at + width * LOOP_LANES <= p->out; at += width * LOOP_LANES)
        product_block(p, row, rows, at, width, LOOP_LANES);
    for (; width == ROW_WIDTH && at + BLOCK_WIDTH * LOOP_LANES <= p->out; at += BLOCK_WIDTH * LOOP_LANES)
        product_block(p, row, rows, at, BLOCK_WIDTH, LOOP_LANES);
    for (; at + LOOP_LANES <= p->out; at += LOOP_LANES)
        product_block(p, row, rows, at, 1, LOOP_LANES);
    if (at < p->out) product_block(p, row, rows, at, 1, p->out - at);
}

/* One column: its weights lie as a row does. */
static void product_column(const sl_plain_product *p) {
    float bias = p->bias ? *p->bias : 0;
    for (size_t r = 0; r < p->rows; r++)
        p->dst[r] = bias + dot(p->src + r * p->stride, p->weights, p->in);
}

static void product(const sl_plain_product *p) {
    size_t row = 0;
    if (p->out == 1) {
        product_column(p);
        return;
    }
    for (; row + BLOCK_ROWS <= p->rows; row += BLOCK_ROWS)
        product_rows(p, row, BLOCK_ROWS, BLOCK_WIDTH);
    for (; row < p->rows; row++)
        product_rows(p, row, 1, ROW_WIDTH);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Training
 * ------------------------------------------------------------------------------------------------------------- */

/* One hash decides four elements, 16 bits each. */
static void dropout(float *values, size_t rows, size_t n, const sl_dropout *drop) {
    size_t groups = (n + 3) / 4;
    float factor[2] = {drop->scale, 0};
    for (size_t r = 0; r < rows; r++, values += n) {
        uint64_t counter = (uint64_t)(drop->first_row + r) * groups;
        for (size_t g = 0; g < n / 4; g++) {
            uint64_t bits = sl_random_at(drop->seed, counter + g);
            for (size_t j = 0; j < 4; j++)
                values[4 * g + j] *= factor[(bits >> 16 * j & 0xffff) < drop->threshold];
        }
        for (size_t i = n / 4 * 4; i < n; i++)
            values[i] *= factor[(sl_random_at(drop->seed, counter + i / 4) >> 16 * (i % 4) & 0xffff) < drop->threshold];
    }
}

static AI V adagrad_lanes(V w, V *sum, V g, const sl_step *step) {
    g = lane_fma(splat(step->l2), w, g);
    *sum = lane_fma(g, g, *sum);
    return w - step->rate * g / (lane_sqrt(*sum) + step->epsilon);
}

static void adagrad(float *weights, float *sum, const float *gradient, size_t n, const sl_step *step) {
    size_t i = 0;
    for (; i + LOOP_LANES <= n; i += LOOP_LANES) {
        V s = load(sum + i);
        store(weights + i, adagrad_lanes(load(weights + i), &s, load(gradient + i), step));
        store(sum + i, s);
    }
    if (i < n) {
        V s = load_part(sum + i, n - i);
        V w = adagrad_lanes(load_part(weights + i, n - i), &s, load_part(gradient + i, n - i), step);
        store_part(weights + i, w, n - i);
        store_part(sum + i, s, n - i);
    }
}

static AI V adam_lanes(V w, V *first, V *second, V g, const sl_step *step) {
    g = lane_fma(splat(step->l2), w, g);
    *first = lane_fma(splat(1.0f - step->beta1), g - *first, *first);
    *second = lane_fma(splat(1.0f - step->beta2), g * g - *second, *second);
    float rate = step->rate * step->correct1;
    return w - rate * *first / (lane_sqrt(*second * step->correct2) + step->epsilon);
}

static void adam(float *weights, float *first, float *second, const float *gradient, size_t n, const sl_step *step) {
    size_t i = 0;
    for (; i + LOOP_LANES <= n; i += LOOP_LANES) {
        V m = load(first + i), v = load(second + i);
        store(weights + i, adam_lanes(load(weights + i), &m, &v, load(gradient + i), step));
        store(first + i, m);
        store(second + i, v);
    }
    if (i < n) {
        V m = load_part(first + i, n - i), v = load_part(second + i, n - i);
        V w = adam_lanes(load_part(weights + i, n - i), &m, &v, load_part(gradient + i, n - i), step);
        store_part(weights + i, w, n - i);
        store_part(first + i, m, n - i);
        store_part(second + i, v, n - i);
    }
}

const sl_loops LOOP_TABLE = {
    .name = LOOP_NAME,
    .join = join,
    .add = add,
    .add_scaled = add_scaled,
    .dot = dot,
    .activate = activate,
    .sigmoid = sigmoid,
    .backward = backward,
    .dropout = dropout,
    .product = product,
    .adagrad = adagrad,
    .adam = adam,
};
