from benchmarks.dynamics.runner import main

main()
