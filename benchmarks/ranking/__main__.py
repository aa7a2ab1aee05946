from benchmarks.ranking.runner import main

main()
