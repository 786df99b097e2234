/* The operands of pointwise_weights.cl: where they lie, and how they come to local memory while
 * products are summed. Needs lib/real.cl, lib/hints.cl, lib/transpose.cl,
 * products/direct/args.h and -D: AREA RUN IN_PLACE GRADIENT. */

/* Where products read x, and how far apart the channels of an area lie there. */
#if IN_PLACE == 1
#define X_SPACE __global
#define ROW(s) ((size_t)(s)->in_plane)
#else
#define X_SPACE __local
#define ROW(s) ((size_t)AREA)
#endif

#define AHEAD 16 /* channels that are fetched before they are copied */

struct inputs {
    __global const V *x, *dy, *y; /* y: or null */
};

/* Pixels of an image: where the first lies in dz of filter 0, all in planes of x, of which the
 * first is channel 0. */
struct area {
    struct inputs in;
    int count, from[AREA];
};

INLINE struct area area_at(const struct inputs *in, int u, int g,
                           const struct lk_point_weights *s)
{
    const int n = u % s->areas, first = (int)((long)s->pixels * n / s->areas);
    const size_t image = (size_t)(u / s->areas) * s->groups + g;
    const size_t to = image * s->filters * s->pixels + first;
    struct area area = {{in->x + image * s->channels * s->in_plane, in->dy + to,
                         GRADIENT == 1 ? in->y + to : 0},
                        (int)((long)s->pixels * (n + 1) / s->areas) - first};
    for (int j = 0; j < AREA; j++) {
        const int q = min(first + j, s->pixels - 1);
        area.from[j] = q / s->width * s->in_row + q % s->width * s->in_stride;
    }
    return area;
}

/* An area's channels from c0 on. */
INLINE X_SPACE const V *rows_at(const struct area *area, __local const V *copied, int c0,
                             const struct lk_point_weights *s)
{
#if IN_PLACE == 1
    return area->in.x + (size_t)c0 * s->in_plane + area->from[0];
#else
    return copied;
#endif
}

/* What is done beside the products. */
struct work {
    const struct area *area, *then;    /* of x: what is copied, what comes later */
    struct inputs run;                 /* the pixels of the next RUN areas, of them ... */
    int part;                          /* ... this share is to be fetched */
    __local V *x;                      /* where to */
    int c0, channel, channels, copies; /* next one, of so many; with every pixel */
    struct inputs dz, after;           /* a block of an area, and what comes later */
    __local V *turned, *fours;         /* where to; where it is turned by fours */
    int k, n, j, v, stage;             /* filters from k on, n vectors; next pixel, vector */
    int moves, moves_each;             /* how many are left; with every pixel */
};

/* Takes up the run behind that of area u, some of which is fetched while u is copied. The last
 * one of an image is fetched twice. */
INLINE void start_run(struct work *work, const struct inputs *in, int u, int g,
                      const struct lk_point_weights *s)
{
    const int n = u % s->areas, next = (n / RUN + 1) * RUN;
    const int first = min((int)((long)s->pixels * next / s->areas), s->pixels - RUN * AREA);
    const size_t image = (size_t)(u / s->areas) * s->groups + g;
    const size_t to = image * s->filters * s->pixels + first;
    work->part = n % RUN;
    work->run.x = in->x + image * s->channels * s->in_plane + first;
    work->run.dy = in->dy + to;
    work->run.y = GRADIENT == 1 ? in->y + to : 0;
}

/* With channel c. */
INLINE void fetch_x(const struct work *work, int c, const struct lk_point_weights *s)
{
#if RUN > 1
    const int n = work->part * work->channels + c;
    __global const V *x =
        work->run.x + (size_t)(work->c0 + n / RUN) * s->in_plane + n % RUN * AREA;
    UNROLL for (int i = 0; i < AREA; i++)
        PREFETCH(x + i);
#else
    const int ahead = c + AHEAD;
    const bool is_now = ahead < work->channels;
    const struct area *later = is_now ? work->area : work->then;
    const int fetched = is_now ? ahead : ahead - work->channels;
    __global const V *x = later->in.x + (size_t)(work->c0 + fetched) * s->in_plane;
    UNROLL for (int i = 0; i < AREA; i++)
        PREFETCH(x + later->from[i]);
#endif
}

INLINE void bring_channel(struct work *work, const struct lk_point_weights *s)
{
    const int c = work->channel++;
#if IN_PLACE == 0
    __global const V *x = work->area->in.x + (size_t)(work->c0 + c) * s->in_plane;
    __local V *to = work->x + c * AREA;
    UNROLL for (int i = 0; i < AREA; i++)
        to[i] = x[work->area->from[i]];
#endif
    fetch_x(work, c, s);
}

/* Behind the copy of four filters of a pixel, those from k on. */
INLINE void fetch_dz(const struct work *work, int k, const struct lk_point_weights *s)
{
#if RUN > 1
    const int row = min(work->k + k + work->part, s->filters - 1);
    const size_t at = (size_t)row * s->pixels + work->j * AREA;
    UNROLL for (int i = 0; i < AREA; i++) {
        PREFETCH(work->run.dy + at + i);
        if (GRADIENT == 1)
            PREFETCH(work->run.y + at + i);
    }
#else
    const size_t at = (size_t)k * s->pixels + work->j;
    UNROLL for (int f = 0; f < 4; f++) {
        PREFETCH(work->after.dy + at + (size_t)f * s->pixels);
        if (GRADIENT == 1)
            PREFETCH(work->after.y + at + (size_t)f * s->pixels);
    }
#endif
}

INLINE V gradient(const struct inputs *in, size_t at)
{
    return GRADIENT == 1 ? (in->y[at] > (V)0 ? in->dy[at] : (V)0) : in->dy[at];
}

/* Four filters of a pixel, those past the last being 0, each four lanes of them transposed. */
INLINE void transpose_fours(struct work *work, const struct lk_point_weights *s)
{
    const int k = work->v * VECTOR + 4 * work->stage, left = s->filters - work->k - k;
    const size_t at = (size_t)k * s->pixels + work->j;
    V t[4];
    if (left >= 4)
        UNROLL for (int f = 0; f < 4; f++)
            t[f] = gradient(&work->dz, at + (size_t)f * s->pixels);
    else
        for (int f = 0; f < 4; f++)
            t[f] = f < left ? gradient(&work->dz, at + (size_t)f * s->pixels) : (V)0;
    fetch_dz(work, k, s);
    transpose_each_four(t);
    UNROLL for (int f = 0; f < 4; f++)
        work->fours[work->stage * 4 + f] = t[f];
}

/* Finishes the transposition of a pixel: lanes l, l + 4, ... come from the fours. */
INLINE void transpose_rest(const struct work *work, int l)
{
    __local V *to = work->turned + (work->j * VECTOR + l) * work->n + work->v;
    __local const V *from = work->fours + l;
    UNROLL for (int i = 0; i < FOURS; i++)
        to[4 * i * work->n] = FOUR_OF_EACH(from, i);
}

#define MOVES (FOURS + 4) /* of a pixel's vector of filters */
INLINE void transpose_move(struct work *work, const struct lk_point_weights *s)
{
    work->moves--;
    if (work->stage < FOURS)
        transpose_fours(work, s);
    else
        transpose_rest(work, work->stage - FOURS);
    if (++work->stage == MOVES) {
        work->stage = 0;
        if (++work->v == work->n) {
            work->v = 0;
            work->j++;
        }
    }
}
