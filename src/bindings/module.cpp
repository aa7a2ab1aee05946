// The only folder that knows Python: it checks shapes, releases the interpreter
// lock, calls the core.
#include "arrays.h"
#include "parallel.h"

namespace sglb::bindings {

namespace {

void check_signals() {
    const LockHold hold;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

NB_MODULE(_core, m) {
    set_interrupt_check(check_signals);
    nb::set_leak_warnings(false);  // a fitted model may outlive the interpreter's last module
    m.def("available_threads", &available_threads);
    bind_numbers(m);
    bind_noise(m);
    bind_bins(m);
    bind_categories(m);
    bind_losses(m);
    bind_structure(m);
    bind_leaves(m);
    bind_ensemble(m);
    bind_posterior(m);
    bind_ranking(m);
    nb::module_ testing = m.def_submodule("testing");
    bind_testing(testing);
    bind_ranking_testing(testing);
}

}  // namespace sglb::bindings
