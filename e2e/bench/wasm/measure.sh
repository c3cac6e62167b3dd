#!/bin/sh
# measure.sh times EP, IS, CG (class W) and a stencil as one rank: native C, native Go, and
# WebAssembly of both. It needs gcc, clang, lld and wasi-libc. Each figure is the least of
# three, in seconds.
set -e
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$here/../../.."
go build -o "$out/" ./cmd/p2prun
(cd "$here" && CGO_ENABLED=1 go build -o "$out/wasmtime" .)
for k in ep is cg stencil; do
	src=$here/../c/$k.c
	[ -f "$src" ] || src=$here/$k.c
	gcc -std=gnu99 -O2 -I"$here" -o "$out/$k.c" "$src" -lm
	clang --target=wasm32-wasi -O2 -I"$here" -o "$out/$k.c.wasm" "$src" -lm
	go=./examples/$k
	[ -d "$go" ] || go=./examples/heat
	go build -o "$out/$k.go" "$go"
	GOOS=wasip1 GOARCH=wasm go build -o "$out/$k.go.wasm" "$go"
done
best() {
	for i in 1 2 3; do "$@" 2>/dev/null; done | sed -n 's/.*seconds=\([0-9.]*\).*/\1/p; s/^ *[tT]ime[ =]*\([0-9.]*\).*/\1/p' | sort -n | head -1
}
run() { best "$out/p2prun" --home "$out/home" --local 1 -n 1 "$@"; }
cd "$out"
for k in ep is cg stencil; do
	class=W
	[ $k = stencil ] && class=
	echo "$k C $(best ./$k.c $class) wazero $(run ./$k.c.wasm $class) wasmtime $(best ./wasmtime ./$k.c.wasm $class)" \
		"Go $(run ./$k.go $class) wazero $(run ./$k.go.wasm $class)"
done
