// StochasticRank (Ustimenko and Prokhorenkova, 2020): gradient of a ranking metric whose scores
// carry normal noise, in the form of adjacent swaps.
//
// Of a query of n documents with raw scores z and relevance r let x = z - sigma mu r, e standard
// normal and s = x + sigma e. For document i let o_0, o_1, ... be the others, sorted by s
// downwards, and J_q the effect of i above against below o_q (`RankingMetric`). Then
//
//     g_i = sum over q of J_q phi(s_{o_q}; m_i, v^2)
//     m_i = x_i + sigma (sum of the others' e) / (n - 1),    v = sigma sqrt(n / (n - 1))
//
// is an unbiased estimate of the derivative of E M(s) by z_i: phi is the density of s_i at the
// boundary, given where the others are to each other. Derivatives by a common shift of all scores
// are 0, so that g minus its mean is unbiased too, and has less variance.
#pragma once

#include <cstdint>

#include "noise.h"
#include "ranking.h"

namespace sglb {

struct Smoothing {
    double sigma;
    double mu;
    int64_t n_samples;  // draws of e to average, below 2^24
};

// Gradient of the loss, -M: OUT gradient [n_rows], NaN in a query with a raw score that is not
// finite. Returns the largest |gradient|, infinity if one is not finite. The noise of a row is
// normal number `its number in the whole table` of the stream; output: the sample.
double stochastic_rank(const RankingTarget& target, const double* raw, const Smoothing& smoothing,
                       Stream stream, double* gradient, int n_threads);

// A curvature of each document at z = 0: the mean over n_samples of
//
//     h_i = sum over q of |J_q| phi(s_{o_q}; m_i, v^2) / v.
//
// Every other sample is the mirror image -e of the one before. OUT hessian [n_rows].
void rank_curvature(const RankingTarget& target, const Smoothing& smoothing, Stream stream,
                    double* hessian, int n_threads);

}  // namespace sglb
