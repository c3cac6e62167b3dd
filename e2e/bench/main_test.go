package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
	"github.com/p2pmpi/p2pmpi/e2e/internal/tool"
	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// TestTablesAreWritten runs the command as a user does, on real peers, and checks the page that it writes. The
// page must contain tables of the tests that ran, and the other sections must not change.
func TestTablesAreWritten(t *testing.T) {
	skip.Long(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	docs := t.TempDir()
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(docs, "benchmarks.md")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	args := []string{"-quick", "-rounds", "1", "-only", "^(mpj stream|Open MPI shm|TCP|mpj relay|libp2p TLS, relayed) n=2/(latency|overlaprecv)", "-out", docs}
	if status := command.Run(ctx, args, new(bytes.Buffer), &stderr); status != 0 {
		t.Fatalf("exit status %d\n%s", status, &stderr)
	}
	t.Logf("%s", &stderr)
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	latency := between(t, string(got), "latency")
	rows := []string{"| mpj stream | ", "| TCP | ", "| mpj relay | ", "| libp2p TLS, relayed | "}
	if installed("openmpi") {
		rows = append(rows, "| Open MPI shm | ")
	}
	for _, row := range rows {
		if !strings.Contains(latency, row) {
			t.Errorf("no row %q in\n%s\n%s", row, latency, &stderr)
		}
	}
	if overlap := between(t, string(got), "overlap"); !strings.Contains(overlap, "| mpj stream | ") {
		t.Errorf("no overlap in\n%s", overlap)
	}
	if between(t, string(got), "bandwidth") != between(t, string(page), "bandwidth") {
		t.Error("a section without results has changed")
	}
	if plot, err := os.ReadFile(filepath.Join(docs, "benchmarks", "latency.svg")); err != nil || !bytes.Contains(plot, []byte("<svg")) {
		t.Errorf("no plot of latency: %v", err)
	}
}

// between returns a section of the page.
func between(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "<!-- bench:"+name+" -->")
	text, _, too := strings.Cut(rest, "<!-- /bench:"+name+" -->")
	if !ok || !too {
		t.Fatalf("docs/benchmarks.md has no section %s", name)
	}
	return text
}

// TestEverySectionHasItsPlace compares the sections that the command writes with the page in docs.
func TestEverySectionHasItsPlace(t *testing.T) {
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(sections(report.NewResults(nil)), tool.Section{Name: "machine"}) {
		between(t, string(page), s.Name)
	}
}

// TestTargetsNameContenders detects a renamed contender, whose targets would silently disappear.
func TestTargetsNameContenders(t *testing.T) {
	known := make(map[report.Contender]bool)
	for _, c := range contenders() {
		known[c.Contender] = true
	}
	for _, target := range targets() {
		if !known[target.Ours] || !known[target.Theirs] {
			t.Errorf("%s: %v against %v, which do not both exist", target.Path, target.Ours, target.Theirs)
		}
	}
}

// TestComparedContendersRunInARow checks many orders of a round.
func TestComparedContendersRunInARow(t *testing.T) {
	field := contenders()
	for seed := range uint64(50) {
		order := shuffle(field, rand.New(rand.NewPCG(seed, 0)))
		if sorted := slices.Sorted(slices.Values(order)); len(sorted) != len(field) || len(slices.Compact(sorted)) != len(field) {
			t.Fatalf("seed %d: %v does not contain each of %d contenders once", seed, order, len(field))
		}
		for at, i := range order {
			if field[i].follows() && (at == 0 || order[at-1] != i-1) {
				t.Errorf("seed %d: %s does not follow %s", seed, field[i].Name, field[i-1].Name)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-only", "("}, {"more"}, {"-x"}} {
		if status := command.Run(t.Context(), args, new(bytes.Buffer), new(bytes.Buffer)); status != 64 {
			t.Errorf("%q: exit status %d, want 64", args, status)
		}
	}
}
