from benchmarks.uncertainty.runner import main

main()
