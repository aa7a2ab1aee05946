"""Time of an import statement after another one, in an interpreter that has done nothing else.

python -P benchmarks/import_time.py "from sglb import SGLBClassifier" "import sklearn.base"
"""

import sys
import time

statement, setup = sys.argv[1:]
exec(setup)
start = time.perf_counter()
exec(statement)
print(f'{{"seconds": {time.perf_counter() - start}}}')
