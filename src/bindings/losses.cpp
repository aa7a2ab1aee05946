// Losses, their slopes and their links.
#include "losses.h"

#include <algorithm>

#include "cross_entropy.h"
#include "links.h"
#include "slopes_object.h"

namespace sglb::bindings {

namespace {

double py_gradient(const std::string& loss, LossParameters parameters, In<double, 1> y,
                   In<double, 2> raw, Array<double, 2> gradient, MaybeOut hessian, int n_threads) {
    require(same_shape(gradient, raw) && (!hessian || same_shape(*hessian, raw)),
            "raw, gradient and hessian must be (K, N)");
    const LossKernel kernel = loss_of(loss, std::move(parameters), y, raw);
    LockRelease release;
    return loss_gradient(kernel, length(raw, 1), length(raw, 0), y.data(), raw.data(),
                         gradient.data(), pointer(hessian), n_threads);
}

void py_link(const std::string& link, double parameter, In<double, 2> raw, Array<double, 2> out,
             int n_threads) {
    const Link kernel = find_link(link, parameter);
    require(out.shape(0) == raw.shape(1) && kernel.fits(length(raw, 0), length(out, 1)),
            "raw must be (K, N), out (N, C)");
    LockRelease release;
    link_scores(kernel, raw.data(), length(raw, 0), length(raw, 1), length(out, 1), out.data(),
                n_threads);
}

void py_cross_entropy(In<double, 1> y, In<double, 2> raw, Array<double, 1> out) {
    require(y.shape(0) == out.shape(0) && y.shape(0) == raw.shape(1) && raw.shape(0) > 0,
            "y and out must be (N,), raw (K, N)");
    LockRelease release;
    cross_entropy(length(raw, 1), length(raw, 0), y.data(), raw.data(), out.data());
}

}  // namespace

void bind_losses(nb::module_& m) {
    nb::class_<SlopesObject>(m, "Slopes")
        .def(nb::init<In<double, 2>, MaybeMatrix<double>>(), "gradient"_array,
             "hessian"_array.none())
        .def(nb::init<const std::string&, LossParameters, In<double, 1>, In<double, 2>, bool>(),
             "loss"_a, "parameters"_a, "y"_array, "raw"_array, "newton"_a)
        .def(nb::init<const std::string&, LossParameters, In<double, 1>, In<double, 2>,
                      Array<double, 2>, MaybeOut>(),
             "loss"_a, "parameters"_a, "y"_array, "raw"_array, "gradient"_array,
             "hessian"_array.none())
        .def("refresh", &SlopesObject::refresh, "n_threads"_a);
    m.def("gradient", &py_gradient, "loss"_a, "parameters"_a, "y"_array, "raw"_array,
          "gradient"_array, "hessian"_array.none(), "n_threads"_a);
    m.def("cross_entropy", &py_cross_entropy, "y"_array, "raw"_array, "out"_array);
    m.def("link", &py_link, "link"_a, "parameter"_a, "raw"_array, "out"_array, "n_threads"_a);
}

}  // namespace sglb::bindings
