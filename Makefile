# What people need; CI does the same through .ci/run.

LINT_VERSION := v2.15.0

VULN_VERSION := v1.9.0

FUZZTIME := 1m

.PHONY: build wasmtime test test-all e2e conformance fuzz lint vuln generate bench compare

build:            ## the three commands into bin/
	go build -trimpath -o bin/ ./cmd/...

wasmtime:         ## another engine for modules into bin/, faster, without fixes: see docs/security.md; needs gcc
	cd peer/launch/p2pmpi-wasmtime && go build -trimpath -o ../../../bin/

test:             ## the tests that need nothing but Go, within five minutes
	go test -short ./...
	go -C e2e/bench test -short ./...

test-all:         ## every test, with the race detector, and long explorations; some 40 minutes; needs gcc, and root for some
	.ci/test-all $(FIRST)

e2e:              ## only the tests with real processes
	go test -race -count=1 -v ./e2e/...
	go -C e2e/bench test -race -count=1 -v ./...

conformance:      ## the conformance suite over each channel at every n and r; ten minutes
	go test -count=1 -run Conformance ./mpj
	go test -count=1 -v -run Conformance -timeout 30m ./e2e -full

fuzz:             ## every fuzz target for FUZZTIME each, one after the other
	@grep -rn '^func Fuzz' --include=*_test.go . | sed -E 's/^(.*)\/[^/]*:func (Fuzz[A-Za-z0-9]+).*/\1 \2/' | sort | while read dir target; do \
		echo "$$dir $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null || exit 1; \
	done

lint:             ## go vet and golangci-lint; the other engine needs gcc
	go vet ./...
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION) run
	cd e2e/bench && go vet ./... && go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION) run
	cd peer/launch/p2pmpi-wasmtime && go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION) run

vuln:             ## known vulnerabilities that the commands can reach; asks vuln.go.dev
	go run golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION) $(VULNFLAGS) ./cmd/... ./mpj/...

generate:         ## protobuf code; needs protoc and protoc-gen-go
	go generate ./...

bench:            ## the benchmarks that are kept
	go test -run '^$$' -bench . -benchmem ./mpj/... ./replication ./filetransfer ./faultdetect

compare:          ## beside other libraries, into docs/benchmarks.md; about half an hour on a quiet machine
	go -C e2e/bench run . -rounds 5 -out ../../docs
