// Elementary functions: arithmetic that gives the same bits everywhere.
#include "arrays.h"
#include "elementary.h"

namespace sglb::bindings {

namespace {

using Function = void (*)(const double*, int64_t, double*);

template <Function function>
void py_each(In<double, 1> values, Array<double, 1> out) {
    require(out.shape(0) == values.shape(0), "out must be as long as values");
    nb::gil_scoped_release release;
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
    m.def("exp", &py_each<fill_exponential>, "values"_array, "out"_array);
    m.def("log", &py_each<fill_logarithm>, "values"_array, "out"_array);
    m.def("log1p", &py_each<fill_logarithm_1p>, "values"_array, "out"_array);
    m.def("expm1", &py_each<fill_exponential_m1>, "values"_array, "out"_array);
    m.def("exp_of", &py_one<fill_exponential>, "value"_a);
    m.def("log_of", &py_one<fill_logarithm>, "value"_a);
}

}  // namespace sglb::bindings
