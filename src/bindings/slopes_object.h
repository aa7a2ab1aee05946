// A loss, or derivatives computed elsewhere, as one Python object.
#pragma once

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "arrays.h"
#include "losses.h"
#include "slopes.h"

namespace sglb::bindings {

inline LossKernel loss_of(const std::string& name, LossParameters parameters,
                          const In<double, 1>& y, const In<double, 2>& raw) {
    require(y.shape(0) == raw.shape(1), "y must be (N,), raw (K, N)");
    return find_loss(name, std::move(parameters), length(raw, 0));
}

// A bound of |gradient| and one of the second derivatives, the latter used with `newton` alone.
using BoundsPair = std::pair<double, double>;
inline SlopeBounds bounds_of(const BoundsPair& bounds) { return {bounds.first, bounds.second}; }

// Slopes and the arrays they point to.
struct SlopesObject {
    Slopes slopes;
    In<double, 2> first;
    MaybeMatrix<double> second;
    MaybeVector y;
    // Of slopes that are computed in advance: what from, and where to.
    LossKernel loss;
    MaybeMatrix<double> raw;
    std::optional<Array<double, 2>> gradient, hessian;

    SlopesObject(In<double, 2> gradient, MaybeMatrix<double> hessian)
        : first(gradient), second(hessian) {
        require(!second || same_shape(*second, first), "gradient and hessian must be (K, N)");
        slopes.n_rows = length(first, 1);
        slopes.n_outputs = length(first, 0);
        slopes.gradient = first.data();
        slopes.hessian = pointer(second);
        slopes.numbers = {0, slopes.n_rows, slopes.n_rows, 1};
    }

    SlopesObject(const std::string& loss, LossParameters parameters, In<double, 1> target,
                 In<double, 2> raw, bool newton)
        : first(raw), y(target) {
        slopes.n_rows = length(raw, 1);
        slopes.n_outputs = length(raw, 0);
        slopes.loss = loss_of(loss, std::move(parameters), target, raw);
        slopes.y = target.data();
        slopes.raw = raw.data();
        slopes.newton = newton;
        slopes.numbers = {0, slopes.n_rows, slopes.n_rows, 1};
    }

    // The same with the numbers that the rows of a shard have in the whole table.
    Slopes of(const RowNumbers& numbers) const {
        Slopes numbered = slopes;
        numbered.numbers = numbers;
        return numbered;
    }

    SlopesObject(const std::string& name, LossParameters parameters, In<double, 1> target,
                 In<double, 2> scores, Array<double, 2> gradients, MaybeOut hessians)
        : SlopesObject(In<double, 2>(gradients),
                       hessians ? MaybeMatrix<double>(*hessians) : MaybeMatrix<double>()) {
        require(same_shape(gradients, scores), "raw, gradient and hessian must be (K, N)");
        loss = loss_of(name, std::move(parameters), target, scores);
        y = target;
        raw = scores;
        gradient = gradients;
        hessian = hessians;
    }

    // Computes them at the current raw scores; the largest absolute gradient, or infinity.
    double refresh(int n_threads) {
        require(gradient.has_value(), "these slopes are not computed in advance");
        LockRelease release;
        return loss_gradient(loss, slopes.n_rows, slopes.n_outputs, pointer(y), pointer(raw),
                             gradient->data(), pointer(hessian), n_threads);
    }
};

}  // namespace sglb::bindings
