#!/usr/bin/env bash
# header.sh FOLDER: puts ONNX Runtime's C header into FOLDER. The package has none; a Go module ships it.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly MODULE=github.com/yalue/onnxruntime_go VERSION=v1.13.0
readonly SUM=b0176725a7cc6d44c9de973330422433684ae3144e6b300ec2df755a2e6bcf64
readonly FOLDER=$1

die() {
    printf 'bench: %s\n' "$*" >&2
    exit 1
}

mkdir -p "$FOLDER"
if [ ! -f "$FOLDER/onnxruntime_c_api.h" ]; then
    command -v go >/dev/null || die "the Go tool fetches ONNX Runtime's header; install golang-go"
    from=$(cd "$FOLDER" && go mod download -json "$MODULE@$VERSION" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    cp "$from/onnxruntime_c_api.h" "$FOLDER/"
fi
echo "$SUM  $FOLDER/onnxruntime_c_api.h" | sha256sum --check --quiet || die "$FOLDER/onnxruntime_c_api.h is not the \
header this was written for; remove it and run this again"
