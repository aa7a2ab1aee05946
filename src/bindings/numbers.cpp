// Exact sums and elementary functions: arithmetic that gives the same bits everywhere.
#include <nanobind/stl/array.h>

#include "arrays.h"
#include "elementary.h"
#include "exact_sum.h"
#include "fixed_point.h"

namespace sglb::bindings {

namespace {

void py_add(ExactSum& sum, const In<double, 1>& values, const MaybeVector& weight) {
    require(!weight || weight->shape(0) == values.shape(0), "weight must be as long as values");
    sum.add(values.data(), pointer(weight), length(values, 0));
}

double py_total(const In<double, 1>& values, const MaybeVector& weight) {
    ExactSum sum;
    py_add(sum, values, weight);
    return sum.value();
}

void py_running_totals(In<double, 1> values, Array<double, 1> sums) {
    require(sums.shape(0) == values.shape(0), "sums must be as long as values");
    LockRelease release;
    running_totals(values.data(), length(values, 0), sums.data());
}

using Function = void (*)(const double*, int64_t, double*);

template <Function function>
void py_each(In<double, 1> values, Array<double, 1> out) {
    require(out.shape(0) == values.shape(0), "out must be as long as values");
    LockRelease release;
    function(values.data(), length(values, 0), out.data());
}

template <Function function>
double py_one(double value) {
    double out;
    function(&value, 1, &out);
    return out;
}

}  // namespace

void bind_numbers(nb::module_& m) {
    nb::class_<ExactSum>(m, "ExactSum")
        .def(nb::init<>())
        .def("add", &py_add, "values"_array, "weight"_array.none())
        .def("merge", &ExactSum::merge, "other"_a)
        .def("value", &ExactSum::value)
        .def("__getstate__", &ExactSum::state)
        .def("__setstate__",
             [](ExactSum& sum, const ExactSum::State& state) { new (&sum) ExactSum(state); });
    m.def("total", &py_total, "values"_array, "weight"_array.none());
    m.def("running_totals", &py_running_totals, "values"_array, "sums"_array);
    m.def("exp", &py_each<fill_exponential>, "values"_array, "out"_array);
    m.def("log", &py_each<fill_logarithm>, "values"_array, "out"_array);
    m.def("log1p", &py_each<fill_logarithm_1p>, "values"_array, "out"_array);
    m.def("expm1", &py_each<fill_exponential_m1>, "values"_array, "out"_array);
    m.def("exp_of", &py_one<fill_exponential>, "value"_a);
    m.def("log_of", &py_one<fill_logarithm>, "value"_a);
    m.def("cosine_turn_of", &cosine_turn, "turns"_a);
}

}  // namespace sglb::bindings
