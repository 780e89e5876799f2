// Attention. Compiled with -O3 and -march=DOMICILE_ISA; see kernels.h for what that forbids here.
#include <cmath>
#include <cstring>

#include "models/cpu/kernels.h"

namespace domicile::models::kernels {
namespace {

float ScoreScale(std::size_t width) { return 1.0F / std::sqrt(static_cast<float>(width)); }

// Scores of keys that a query may not see become -infinity.
void HideKeys(const Head& head, std::size_t query, float* scores) {
  const float hidden = -INFINITY;
  for (std::size_t key = 0; head.mask != nullptr && key < head.length; ++key) {
    scores[key] = head.mask[key] == 0 ? hidden : scores[key];
  }
  for (std::size_t key = query + 1; head.causal && key < head.length; ++key) {
    scores[key] = hidden;
  }
}

}  // namespace

void Attention(const Head& head, float* probabilities, float* scratch, float* y) {
  const std::size_t length = head.length;
  Gemm({.m = length,
        .n = length,
        .k = head.width,
        .a = head.q,
        .lda = head.stride,
        .b = head.k,
        .ldb = head.stride,
        .transpose_b = true,
        .c = probabilities,
        .ldc = length,
        .alpha = ScoreScale(head.width)});
  for (std::size_t query = 0; query < length; ++query) {
    float* const scores = probabilities + query * length;
    HideKeys(head, query, scores);
    SoftmaxRow(scores, length);
  }
  const float* weights = probabilities;
  if (head.dropout_rate > 0) {
    Dropout(head.dropout_key, head.dropout_first, head.dropout_rate, probabilities, length * length,
            scratch);
    weights = scratch;
  }
  Gemm({.m = length,
        .n = head.width,
        .k = length,
        .a = weights,
        .lda = length,
        .b = head.v,
        .ldb = head.stride,
        .c = y,
        .ldc = head.stride});
}

void AttentionGradient(const Head& head, const float* probabilities, const float* dy,
                       float* scratch, float* dq, float* dk, float* dv) {
  const std::size_t length = head.length;
  const std::size_t size = length * length;
  const float* weights = probabilities;
  if (head.dropout_rate > 0) {
    Dropout(head.dropout_key, head.dropout_first, head.dropout_rate, probabilities, size,
            scratch + size);
    weights = scratch + size;
  }
  Gemm({.m = length,
        .n = head.width,
        .k = length,
        .a = weights,
        .lda = length,
        .transpose_a = true,
        .b = dy,
        .ldb = head.stride,
        .c = dv,
        .ldc = head.stride});
  float* const scores = scratch;
  Gemm({.m = length,
        .n = length,
        .k = head.width,
        .a = dy,
        .lda = head.stride,
        .b = head.v,
        .ldb = head.stride,
        .transpose_b = true,
        .c = scores,
        .ldc = length});
  if (head.dropout_rate > 0) {
    Dropout(head.dropout_key, head.dropout_first, head.dropout_rate, scores, size, scores);
  }
  for (std::size_t query = 0; query < length; ++query) {
    const float* const p = probabilities + query * length;
    float* const row = scores + query * length;
    float lanes[16] = {};
    std::size_t key = 0;
    for (; key + 16 <= length; key += 16) {
      for (std::size_t lane = 0; lane < 16; ++lane) {
        lanes[lane] += p[key + lane] * row[key + lane];
      }
    }
    for (; key < length; ++key) {
      lanes[0] += p[key] * row[key];
    }
    float mean = 0;
    for (const float lane : lanes) {
      mean += lane;
    }
    for (key = 0; key < length; ++key) {
      row[key] = p[key] * (row[key] - mean);
    }
  }
  Gemm({.m = length,
        .n = head.width,
        .k = length,
        .a = scores,
        .lda = length,
        .b = head.k,
        .ldb = head.stride,
        .c = dq,
        .ldc = head.stride,
        .alpha = ScoreScale(head.width)});
  Gemm({.m = length,
        .n = head.width,
        .k = length,
        .a = scores,
        .lda = length,
        .transpose_a = true,
        .b = head.q,
        .ldb = head.stride,
        .c = dk,
        .ldc = head.stride,
        .alpha = ScoreScale(head.width)});
}

}  // namespace domicile::models::kernels
