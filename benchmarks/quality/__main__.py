from benchmarks.quality.runner import main

if __name__ == "__main__":
    main()
