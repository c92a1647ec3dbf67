/* Measures MPI's collectives as lockstep-perf measures ours: out of place, on buffers that were
 * written before, one barrier and then free-running iterations, each timed; the figures are those
 * of the rank whose mean is greatest. Results are checked once, element for element.
 *
 *   mpi_collectives COLLECTIVE:SIZE:ITERATIONS:WARM_UP...
 *
 * SIZE is the bytes of the larger side. What would take longer than BUDGET_S runs fewer
 * iterations, at least LEAST_ITERATIONS; how many is in the output. Rank 0 prints one JSON list. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET_S 0.25
#define LEAST_ITERATIONS 5

enum collective { ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, COLLECTIVES };
static const char *const names[COLLECTIVES] = {"all_reduce", "all_gather", "all_to_all"};

static int rank, ranks;

static void fail(const char *what) {
  fprintf(stderr, "mpi_collectives: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *allocate(size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 4096, bytes ? bytes : 1) != 0) fail("out of memory");
  memset(memory, 0xff, bytes);
  return memory;
}

/* Small integers, so that sums are exact in any order; they differ by rank and by element. */
static float value(int of_rank, size_t index) {
  return (float)((index * 31 + (size_t)of_rank * 17) % 1021);
}

/* `count` is that of one rank's part. */
static void run(enum collective collective, const float *input, float *output, int count) {
  MPI_Comm all = MPI_COMM_WORLD;
  switch (collective) {
    case ALL_REDUCE: MPI_Allreduce(input, output, count, MPI_FLOAT, MPI_SUM, all); break;
    case ALL_GATHER: MPI_Allgather(input, count, MPI_FLOAT, output, count, MPI_FLOAT, all); break;
    default: MPI_Alltoall(input, count, MPI_FLOAT, output, count, MPI_FLOAT, all); break;
  }
}

static float expected(enum collective collective, size_t index, size_t count) {
  if (collective == ALL_REDUCE) {
    float sum = 0;
    for (int i = 0; i < ranks; i++) sum += value(i, index);
    return sum;
  }
  size_t begin = collective == ALL_TO_ALL ? (size_t)rank * count : 0;
  return value((int)(index / count), begin + index % count);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure(enum collective collective, int warm_up, int iterations, size_t size) {
  size_t whole = size / sizeof(float);
  size_t count = collective == ALL_REDUCE ? whole : whole / (size_t)ranks;
  if (count == 0) fail("a size is below one element for each rank");
  size_t inputs = collective == ALL_GATHER ? count : whole, outputs = whole;
  float *input = allocate(inputs * sizeof(float)), *output = allocate(outputs * sizeof(float));
  for (size_t i = 0; i < inputs; i++) input[i] = value(rank, i);

  double start = MPI_Wtime();
  for (int i = 0; i < warm_up; i++) run(collective, input, output, (int)count);
  double one = (MPI_Wtime() - start) / warm_up;
  int affordable = one > 0 ? (int)(BUDGET_S / one < 1e6 ? BUDGET_S / one : 1e6) : iterations;
  if (affordable < LEAST_ITERATIONS) affordable = LEAST_ITERATIONS;
  if (affordable < iterations) iterations = affordable;
  MPI_Bcast(&iterations, 1, MPI_INT, 0, MPI_COMM_WORLD);

  double *samples = allocate((size_t)iterations * sizeof(double));
  MPI_Barrier(MPI_COMM_WORLD);
  double last = MPI_Wtime();
  for (int i = 0; i < iterations; i++) {
    run(collective, input, output, (int)count);
    double now = MPI_Wtime();
    samples[i] = now - last;
    last = now;
  }

  // Before the check, which would keep a processor from ranks that are still measuring.
  struct { double mean; int rank; } mine = {0, rank}, slowest;
  for (int i = 0; i < iterations; i++) mine.mean += samples[i] / iterations;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);

  memset(output, 0xff, outputs * sizeof(float));
  run(collective, input, output, (int)count);
  long wrong = 0, all_wrong = 0;
  for (size_t i = 0; i < outputs; i++) wrong += output[i] != expected(collective, i, count);
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);

  qsort(samples, (size_t)iterations, sizeof(double), by_value);
  double median = samples[(iterations - 1) / 2];
  MPI_Bcast(&median, 1, MPI_DOUBLE, slowest.rank, MPI_COMM_WORLD);
  if (rank == 0)
    printf("{\"collective\": \"%s\", \"size_bytes\": %zu, \"iterations\": %d, \"time_us\": %.4f, "
           "\"p50_us\": %.4f, \"wrong\": %ld}",
           names[collective], size, iterations, slowest.mean * 1e6, median * 1e6, all_wrong);
  free(input);
  free(output);
  free(samples);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2) fail("usage: mpi_collectives COLLECTIVE:SIZE:ITERATIONS:WARM_UP...");
  for (int i = 1; i < argc; i++) {
    char name[32];
    size_t size;
    int iterations, warm_up, collective = 0;
    int found = sscanf(argv[i], "%31[^:]:%zu:%d:%d", name, &size, &iterations, &warm_up);
    if (found != 4 || iterations < 1 || warm_up < 1)
      fail("a measurement is COLLECTIVE:SIZE:ITERATIONS:WARM_UP");
    while (collective < COLLECTIVES && strcmp(name, names[collective]) != 0) collective++;
    if (collective == COLLECTIVES) fail("there is all_reduce, all_gather and all_to_all");
    if (rank == 0) printf("%s", i == 1 ? "[" : ", ");
    measure((enum collective)collective, warm_up, iterations, size);
  }
  if (rank == 0) printf("]\n");
  MPI_Finalize();
  return 0;
}
