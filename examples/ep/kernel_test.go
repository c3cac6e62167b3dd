package main

import "testing"

func BenchmarkBatch(b *testing.B) {
	var q annuli
	for i := 0; b.Loop(); i++ {
		batch(i, &q)
	}
	b.ReportMetric(float64(b.N)*2*batchPairs/1e6/b.Elapsed().Seconds(), "Mop/s")
}
