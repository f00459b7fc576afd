#include <math.h>

#include "cpu_gradient.h"

void fattn__sink_run(fattn__gradient *g, int64_t h)
{
    const fattn__call *c = g->c;
    const fattn_problem *p = c->p;
    double sum = 0;
    for (int64_t b = 0; b < p->batch; b++) {
        const fattn__band band = fattn__band_of(p, c->t, b);
        for (int64_t row0 = 0; row0 < band.len_q; row0 += FATTN__ROWS) {
            const int64_t rows = band.len_q - row0 < FATTN__ROWS ? band.len_q - row0 : FATTN__ROWS;
            fattn__gradient_rows(g, b, h, row0, rows);
            for (int64_t i = 0; i < rows; i++)
                if (g->w.stats[i] != -INFINITY)
                    sum += exp((double)c->t->sink[h] - (double)g->w.stats[i]) * (double)g->w.row[i];
        }
    }
    c->t->dsink[h] = (float)-sum;
}
