package main

import (
	"testing"
)

const (
	ourReport = `
 NAS Parallel Benchmarks - CG Benchmark

 Class        = S
 Time         = 1.25 seconds
 Mop/s total  = 1348.84
 Messages     = 0.250247 seconds at most in a rank
 Computing    = 1.049169 seconds at most in a rank
 Verification = SUCCESSFUL
`
	theirReport = "kernel=cg class=S ranks=1 seconds=1.250000 messages=0.250247 computing=1.049169 mops=1318.53 verified=yes\n"
)

func TestReportsOfBothLanguagesAreRead(t *testing.T) {
	for name, report := range map[string]string{"Go": ourReport, "C": theirReport} {
		t.Run(name, func(t *testing.T) {
			got, err := kernelResult("cg", []byte(report))
			if err != nil {
				t.Fatal(err)
			}
			if got.Test != "cg" || got.Seconds != 1.25 || *got.Messages != 0.250247 || *got.Computing != 1.049169 {
				t.Errorf("got %v, messages %v, computing %v", got, *got.Messages, *got.Computing)
			}
		})
	}
}

func TestUnverifiedResultsDoNotCount(t *testing.T) {
	for name, report := range map[string]string{
		"Go":      "Time = 1 seconds\nMessages = 1 s\nComputing = 1 s\nVerification = UNSUCCESSFUL\n",
		"C":       "seconds=1 messages=1 computing=1 verified=no\n",
		"cut off": "seconds=1 verified=yes\n",
	} {
		if got, err := kernelResult("cg", []byte(report)); err == nil {
			t.Errorf("report %s: accepted as %v", name, got)
		}
	}
}
