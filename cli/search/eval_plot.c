#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/search/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH  720.0
#define HEIGHT 480.0
#define LEFT   76.0
#define RIGHT  24.0
#define TOP    48.0
#define BOTTOM 58.0

/* Ranges of the axes: recall from `low` to 1, log10 of queries per second from `floor` to `ceiling`. */
typedef struct axes {
    double low, floor, ceiling;
} axes;

static double qps_of(const eval_task *task, const eval_point *point) {
    return eval_figures(task, point)[EVAL_QPS];
}

static double x_of(const axes *axes, double recall) {
    return LEFT + (recall - axes->low) / (1 - axes->low) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const axes *axes, double qps) {
    double part = (log10(qps) - axes->floor) / (axes->ceiling - axes->floor);
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

/* The axes end at the nearest tick beyond the points: twentieths of recall; 1, 2 or 5 times a power of ten. */
static axes fit_axes(const eval_task *task, const eval_point *points, size_t count) {
    double low = 1, least = INFINITY, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (points[i].recall < low) low = points[i].recall;
        double qps = qps_of(task, &points[i]);
        if (qps < least) least = qps;
        if (qps > most) most = qps;
    }
    if (!(least > 0)) least = 1;
    if (!(most > least)) most = least;
    axes axes = {floor(low * 20 - 1e-9) / 20, floor(log10(least)), ceil(log10(most))};
    if (axes.low < 0) axes.low = 0;
    if (axes.low > 0.95) axes.low = 0.95;
    static const double steps[] = {2, 5};
    for (size_t i = 0; i < 2; i++) {
        if (pow(10, axes.floor) * steps[1 - i] <= least) {
            axes.floor += log10(steps[1 - i]);
            break;
        }
    }
    for (size_t i = 0; i < 2; i++) {
        if (pow(10, axes.ceiling - 1) * steps[i] >= most) {
            axes.ceiling += log10(steps[i]) - 1;
            break;
        }
    }
    if (axes.ceiling - axes.floor < 0.1) axes.ceiling = axes.floor + 1;
    return axes;
}

static void print_escaped(FILE *file, const char *text) {
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '&')
            fputs("&amp;", file);
        else
            fputc(*text, file);
    }
}

static void draw_frame(FILE *file, const axes *axes, const char *title, size_t k) {
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"%.1f\" y=\"26\" font-size=\"15\">",
            WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    print_escaped(file, title);
    fprintf(file, "</text>\n<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">recall@%zu</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, k);
    fprintf(file, "<text transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\">queries a second</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2);
    fprintf(file, "<g stroke=\"#ddd\" fill=\"#333\">\n");
    double step = (1 - axes->low) > 0.5 ? 0.1 : (1 - axes->low) > 0.2 ? 0.05 : (1 - axes->low) > 0.05 ? 0.02 : 0.01;
    for (int i = 0; 1 - i * step >= axes->low - 1e-9; i++) {
        double x = x_of(axes, 1 - i * step);
        fprintf(file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x, TOP, x, HEIGHT - BOTTOM);
        fprintf(file, "<text stroke=\"none\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.2f</text>\n", x,
                HEIGHT - BOTTOM + 18, 1 - i * step);
    }
    for (int power = (int)floor(axes->floor); power <= (int)ceil(axes->ceiling); power++)
        for (int digit = 1; digit <= 5; digit += digit == 1 ? 1 : 3) {
            double value = digit * pow(10, power), y = y_of(axes, value);
            if (log10(value) < axes->floor - 1e-9 || log10(value) > axes->ceiling + 1e-9) continue;
            fprintf(file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", LEFT, y, WIDTH - RIGHT, y);
            fprintf(file, "<text stroke=\"none\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.10g</text>\n", LEFT - 8,
                    y + 4, value);
        }
    fprintf(file, "</g>\n");
}

static void draw_points(FILE *file, const axes *axes, const eval_task *task, const eval_point *points, size_t count) {
    fprintf(file, "<polyline fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"2\" points=\"");
    for (size_t i = 0; i < count; i++) {
        double qps = qps_of(task, &points[i]);
        if (qps > 0) fprintf(file, "%.1f,%.1f ", x_of(axes, points[i].recall), y_of(axes, qps));
    }
    fprintf(file, "\"/>\n<g fill=\"#1f5fa8\">\n");
    /* Skips labels that would overlap. */
    double last_x = -100, last_y = -100;
    for (size_t i = 0; i < count; i++) {
        double qps = qps_of(task, &points[i]);
        if (!(qps > 0)) continue;
        double x = x_of(axes, points[i].recall), y = y_of(axes, qps);
        fprintf(file,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>ef %zu: recall %.4f, %.0f queries/s</title>"
                "</circle>\n",
                x, y, points[i].setting.ef, points[i].recall, qps);
        if (fabs(x - last_x) < 40 && fabs(y - last_y) < 14) continue;
        fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" font-size=\"11\" fill=\"#555\">ef %zu</text>\n",
                x - 7, y + 12, points[i].setting.ef);
        last_x = x;
        last_y = y;
    }
    fprintf(file, "</g>\n</svg>\n");
}

int eval_plot(const char *path, const char *title, const eval_task *task, const eval_point *points, size_t count) {
    char *text = NULL;
    size_t size = 0;
    output *output;
    FILE *file = open_memstream(&text, &size);
    if (!file) return report_failure("out of memory");
    axes axes = fit_axes(task, points, count);
    draw_frame(file, &axes, title, task->k);
    draw_points(file, &axes, task, points, count);
    int written = !ferror(file);
    int status = fclose(file) == 0 && written ? EXIT_DONE : report_failure("out of memory");
    if (status == EXIT_DONE) status = output_create(path, &output);
    if (status == EXIT_DONE) {
        status = output_write(output, text, size);
        if (status == EXIT_DONE)
            status = output_commit(output);
        else
            output_discard(output);
    }
    free(text);
    return status;
}
