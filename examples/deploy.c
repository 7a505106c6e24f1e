/* Classifies pictures of 8 x 8 pixels by the library that deploy.py wrote.

       python examples/deploy.py --folder out && cc -O2 -Iout examples/deploy.c out/digits.so -o out/deploy
       LD_LIBRARY_PATH=out out/deploy pictures.bin      (float32 numbers from 0 to 1, 64 a picture) */
#include <stdio.h>
#include "digits.h"

enum { BATCH = 16, PIXELS = 64, CLASSES = 10 };

int main(int argc, char **argv) {
  static float pictures[BATCH * PIXELS], scores[BATCH * CLASSES];
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file) return fprintf(stderr, "usage: %s pictures.bin\n", argv[0]), 2;
  size_t n;
  while ((n = fread(pictures, PIXELS * sizeof(float), BATCH, file)) > 0) {
    int64_t in_sizes[] = {(int64_t)n, 1, 8, 8}, out_sizes[] = {(int64_t)n, CLASSES};
    digits_tensor in = {pictures, DIGITS_FLOAT32, 4, in_sizes}, out = {scores, DIGITS_FLOAT32, 2, out_sizes};
    int code = digits_run(&in, 1, &out, 1);
    if (code) return fprintf(stderr, "%s\n", digits_error(code)), 1;
    for (size_t i = 0; i < n; i++) {
      int best = 0;
      for (int k = 1; k < CLASSES; k++)
        if (scores[i * CLASSES + k] > scores[i * CLASSES + best]) best = k;
      printf("%d\n", best);
    }
  }
  return fclose(file) != 0;
}
