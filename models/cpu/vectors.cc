// Vectors. Compiled with -O3 and -march=DOMICILE_ISA; see kernels.h for what that forbids here.
#include <cmath>

#include "models/cpu/kernels.h"

namespace domicile::models::kernels {

void AddScaled(float a, const float* x, std::size_t size, float* y) {
  for (std::size_t i = 0; i < size; ++i) {
    y[i] += a * x[i];
  }
}

void Add(const float* a, const float* b, std::size_t size, float* y) {
  for (std::size_t i = 0; i < size; ++i) {
    y[i] = a[i] + b[i];
  }
}

void Scale(float a, std::size_t size, float* x) {
  for (std::size_t i = 0; i < size; ++i) {
    x[i] *= a;
  }
}

double SquaredNorm(const float* x, std::size_t size) {
  constexpr std::size_t kLanes = 8;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += static_cast<double>(x[i + lane]) * static_cast<double>(x[i + lane]);
    }
  }
  for (; i < size; ++i) {
    lanes[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  double sum = 0;
  for (const double lane : lanes) {
    sum += lane;
  }
  return sum;
}

void Sgd(const SgdStep& s, const float* gradient, std::size_t size, float* buffer,
         float* parameters) {
  for (std::size_t i = 0; i < size; ++i) {
    const float g = gradient[i] + s.weight_decay * parameters[i];
    buffer[i] = s.momentum * buffer[i] + s.gradient_share * g;
    const float direction = s.nesterov ? g + s.momentum * buffer[i] : buffer[i];
    parameters[i] -= s.learning_rate * direction;
  }
}

void Adam(const AdamStep& s, const float* gradient, std::size_t size, float* first, float* second,
          float* parameters) {
  const float rate = s.learning_rate / s.correction1;
  const float correction_root = std::sqrt(s.correction2);
  const float keep = 1.0F - s.learning_rate * s.decoupled_decay;
  for (std::size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    first[i] = s.beta1 * first[i] + (1.0F - s.beta1) * g;
    second[i] = s.beta2 * second[i] + (1.0F - s.beta2) * g * g;
    const float root = std::sqrt(second[i]) / correction_root + s.epsilon;
    parameters[i] = keep * parameters[i] - rate * first[i] / root;
  }
}

void MultiplyColumn(const Product& p) {
  const std::size_t step = p.transpose_b ? 1 : p.ldb;
  if (p.transpose_a) {
    for (std::size_t i = 0; i < p.m && !p.accumulate; ++i) {
      p.c[i * p.ldc] = 0;
    }
    for (std::size_t k = 0; k < p.k; ++k) {
      const float factor = p.alpha * p.b[k * step];
      const float* const row = p.a + k * p.lda;
      for (std::size_t i = 0; i < p.m; ++i) {
        p.c[i * p.ldc] += factor * row[i];
      }
    }
    return;
  }
  constexpr std::size_t kLanes = 16;
  for (std::size_t i = 0; i < p.m; ++i) {
    const float* const row = p.a + i * p.lda;
    float lanes[kLanes] = {};
    std::size_t k = 0;
    for (; step == 1 && k + kLanes <= p.k; k += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] += row[k + lane] * p.b[k + lane];
      }
    }
    float sum = 0;
    for (; k < p.k; ++k) {
      sum += row[k] * p.b[k * step];
    }
    for (const float lane : lanes) {
      sum += lane;
    }
    p.c[i * p.ldc] = p.accumulate ? p.c[i * p.ldc] + p.alpha * sum : p.alpha * sum;
  }
}

}  // namespace domicile::models::kernels
