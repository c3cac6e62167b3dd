package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/lifetime"
)

func TestTablesAndPlotsOfSmallGroups(t *testing.T) {
	dir := t.TempDir()
	page := ""
	for _, s := range []string{"cut", "fewest", "late"} {
		page += "<!-- lifetime:" + s + " -->\n<!-- /lifetime:" + s + " -->\n"
	}
	file := filepath.Join(dir, "reliability.md")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if status := command.Run(t.Context(), []string{"-members", "8", "-out", dir}, nil, &errs); status != 0 {
		t.Fatalf("got status %d: %s", status, errs.String())
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 2 | 2 | 0.005 | 0.0095 | 0.009 | 0.00048 | 0 | 0.00048 | 0 |", // values of the literature, f = 5 %
		"| 8 | 3 | 5 | 7 |", // fewest crashes
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no row %s in\n%s", want, got)
		}
	}
	for _, plot := range []string{"lifetime-1.svg", "lifetime-5.svg", "lifetime-10.svg"} {
		if info, err := os.Stat(filepath.Join(dir, "reliability", plot)); err != nil || info.Size() == 0 {
			t.Errorf("plot %s is missing or empty: %v", plot, err)
		}
	}
}

// TestSignalEndsTheCommand checks that a signal ends the command, and that it writes no tables without
// measurements.
func TestSignalEndsTheCommand(t *testing.T) {
	ctx, told := context.WithCancel(t.Context())
	told()
	var out, errs bytes.Buffer
	if status := command.Run(ctx, []string{"-members", "8"}, &out, &errs); status != 1 || out.Len() > 0 || !strings.Contains(errs.String(), "canceled") {
		t.Errorf("got status %d, %q, %q", status, &out, &errs)
	}
}

func TestMistakes(t *testing.T) {
	for _, args := range [][]string{{"-sample", "0"}, {"-members", "3"}, {"-members", "257"}, {"more"}, {"-x"}} {
		if status := command.Run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); status != 64 {
			t.Errorf("%v: got status %d, want 64", args, status)
		}
	}
}

func TestCells(t *testing.T) {
	profile := func(exact bool, s lifetime.Share) lifetime.Profile {
		return lifetime.Profile{Shares: []lifetime.Share{s, s}, Exact: exact} // the same for any f
	}
	tests := map[string]struct {
		p    lifetime.Profile
		want string
	}{
		"exact":      {profile(true, lifetime.Share{Fraction: 0.0123, Low: 0.0123, High: 0.0123}), "0.012"},
		"never":      {profile(true, lifetime.Share{}), "0"},
		"nearly one": {profile(true, lifetime.Share{Fraction: 0.99951, Low: 0.99951, High: 0.99951}), "0.99951"},
		"sample":     {profile(false, lifetime.Share{Fraction: 0.2, Low: 0.1, High: 0.3}), "0.2 (0.1–0.3)"},
		"none found": {profile(false, lifetime.Share{High: 0.001}), "≤ 0.001"},
	}
	for name, tt := range tests {
		if got := cell(tt.p, 0.25); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}
