#!/bin/sh
# The recorded models from an ARM processor, emulated: needs Debian, root (for apt) and the
# virtual environment of `make test`. Three minutes. What it downloads and builds is in build/aarch64.
#
#     sh benchmarks/aarch64.sh [ARGUMENTS OF PYTEST ...]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
python=$here/.venv/bin/python
folder=$here/build/aarch64
mkdir -p "$folder/debs" "$folder/root" "$folder/site" "$folder/wheels"
cd "$folder/debs"

if [ ! -x ../root/usr/bin/python3.11 ]; then
    apt-get install -y -q qemu-user-static g++-aarch64-linux-gnu cmake
    dpkg --add-architecture arm64
    apt-get update -q
    for package in python3.11 python3.11-minimal libpython3.11-minimal libpython3.11-stdlib \
        libc6 libstdc++6 libgcc-s1 libexpat1 zlib1g libssl3 libffi8 libbz2-1.0 liblzma5 \
        libsqlite3-0 libuuid1 libcrypt1; do
        apt-get download -q "$package:arm64"
    done
    for package in *.deb; do dpkg-deb -x "$package" ../root; done
fi
cd "$folder"

if [ ! -d site/numpy ]; then
    "$python" -m pip download --quiet --only-binary :all: --python-version 3.11 \
        --platform manylinux2014_aarch64 --platform manylinux_2_27_aarch64 \
        --platform manylinux_2_28_aarch64 --dest wheels \
        numpy scipy scikit-learn narwhals safetensors pytest pandas polars pyarrow hypothesis
    for wheel in wheels/*.whl; do "$python" -m zipfile -e "$wheel" site; done
fi

cmake -S "$here" -B core -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DPython_EXECUTABLE="$python" \
    -DPython_INCLUDE_DIR="$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')"
cmake --build core --target _core --parallel
rm -rf site/sglb
cp -r "$here/src/sglb" site/sglb
cp core/_core.*.so site/sglb/_core.cpython-311-aarch64-linux-gnu.so

cd "$here"
[ $# -gt 0 ] || set -- tests/test_fits.py tests/test_elementary.py tests/test_noise.py \
    tests/test_sums.py
QEMU_LD_PREFIX=$folder/root PYTHONPATH=$folder/site:$here/tests qemu-aarch64-static \
    "$folder/root/usr/bin/python3.11" -m pytest -q -p no:cacheprovider -o addopts= "$@"
