/* A library with one custom operator, own.operators.Scaled: Y = factor * X of float32, in ONNX Runtime's C API.
 * The functions of OrtApi are taken by their places in the table, which no release changes
 * (onnxruntime_c_api.h: the size of version 1 API cannot change). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef void *(*Function)();
enum { ADD = 27, CREATE = 26, ADD_DOMAIN = 28, DATA = 51, COUNT = 64, TYPE = 65, DIMENSIONS_COUNT = 61, DIMENSIONS = 62,
       FLOAT_ATTRIBUTE = 85, INPUT = 90, OUTPUT = 91, RELEASE_TYPE = 99 };
enum { FLOAT = 1, VERSION = 8 };

typedef struct { const Function *(*get_api)(uint32_t version); const char *(*version)(void); } ApiBase;
typedef struct { const Function *api; float factor; } Kernel;
typedef struct Operator {
    uint32_t version;
    void *(*create)(const struct Operator *, const Function *api, const void *info);
    const char *(*name)(const struct Operator *);
    const char *(*provider)(const struct Operator *);
    int (*input_type)(const struct Operator *, size_t place);
    size_t (*input_count)(const struct Operator *);
    int (*output_type)(const struct Operator *, size_t place);
    size_t (*output_count)(const struct Operator *);
    void (*compute)(Kernel *, void *context);
    void (*destroy)(Kernel *);
    int (*input_required)(const struct Operator *, size_t place);
    int (*output_required)(const struct Operator *, size_t place);
    void *later[16]; /* what later versions have: not asked for at this one */
} Operator;

static const char *name(const Operator *self) { (void)self; return "Scaled"; }
static const char *provider(const Operator *self) { (void)self; return NULL; }
static int type(const Operator *self, size_t place) { (void)self; (void)place; return FLOAT; }
static int required(const Operator *self, size_t place) { (void)self; (void)place; return 0; }
static size_t one(const Operator *self) { (void)self; return 1; }
static void destroy(Kernel *kernel) { free(kernel); }

static void *create(const Operator *self, const Function *api, const void *info) {
    Kernel *kernel = malloc(sizeof *kernel);
    (void)self;
    kernel->api = api;
    kernel->factor = 1;
    ((void *(*)(const void *, const char *, float *))api[FLOAT_ATTRIBUTE])(info, "factor", &kernel->factor);
    return kernel;
}

static void compute(Kernel *kernel, void *context) {
    const Function *api = kernel->api;
    void *x, *y, *shape;
    float *from, *to;
    size_t rank, count;
    int64_t dimensions[16];
    ((void *(*)(void *, size_t, void **))api[INPUT])(context, 0, &x);
    ((void *(*)(void *, void **))api[DATA])(x, (void **)&from);
    ((void *(*)(void *, void **))api[TYPE])(x, &shape);
    ((void *(*)(void *, size_t *))api[DIMENSIONS_COUNT])(shape, &rank);
    ((void *(*)(void *, int64_t *, size_t))api[DIMENSIONS])(shape, dimensions, rank);
    ((void *(*)(void *, size_t *))api[COUNT])(shape, &count);
    ((void (*)(void *))api[RELEASE_TYPE])(shape);
    ((void *(*)(void *, size_t, const int64_t *, size_t, void **))api[OUTPUT])(context, 0, dimensions, rank, &y);
    ((void *(*)(void *, void **))api[DATA])(y, (void **)&to);
    for (size_t place = 0; place < count; place++) to[place] = kernel->factor * from[place];
}

static const Operator scaled = {VERSION, create, name, provider, type, one, type, one, compute, destroy, required, required, {0}};

void *RegisterCustomOps(void *options, const ApiBase *base) {
    const Function *api = base->get_api(1);
    void *domain;
    void *status = ((void *(*)(const char *, void **))api[CREATE])("own.operators", &domain);
    if (status == NULL) status = ((void *(*)(void *, const Operator *))api[ADD])(domain, &scaled);
    return status != NULL ? status : ((void *(*)(void *, void *))api[ADD_DOMAIN])(options, domain);
}
