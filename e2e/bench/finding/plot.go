package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/p2pmpi/p2pmpi/e2e/bench/finding/sim"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
)

// drawGrowth writes plots of the time and of the messages over the network's size.
func drawGrowth(samples []sample, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		file, label string
		of          func(sim.Outcome) float64
	}{
		{"finding-time.svg", "seconds until 64 suitable peers are found", func(o sim.Outcome) float64 { return o.Enough.Seconds() }},
		{"finding-messages.svg", "messages", func(o sim.Outcome) float64 { return float64(o.Messages) }},
	} {
		p, err := chart(samples, f.label, f.of)
		if err == nil {
			err = p.Save(16*vg.Centimeter, 10*vg.Centimeter, filepath.Join(dir, f.file))
		}
		if err != nil {
			return fmt.Errorf("plot %s: %w", f.file, err)
		}
	}
	return nil
}

// chart returns a plot with a line for each kind of searcher. It shows the median, with bars from
// the 10th to the 90th percentile of the worlds.
func chart(samples []sample, label string, of func(sim.Outcome) float64) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "peers that are up", label
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks(samples))
	p.Y.Min = 0
	p.Legend.Top = true
	p.Add(report.Grid())
	for k, kind := range kinds {
		var c curve
		for _, s := range samples {
			os := s.outcomes[k]
			middle := quantile(os, 0.5, of)
			c.XYs = append(c.XYs, plotter.XY{X: float64(s.live), Y: middle})
			c.YErrors = append(c.YErrors, struct{ Low, High float64 }{middle - quantile(os, 0.1, of), quantile(os, 0.9, of) - middle})
		}
		line, marks, err := plotter.NewLinePoints(c)
		if err != nil {
			return nil, err
		}
		bars, err := plotter.NewYErrorBars(c)
		if err != nil {
			return nil, err
		}
		line.Color, marks.Color, bars.Color = plotutil.Color(k), plotutil.Color(k), plotutil.Color(k)
		marks.Shape = draw.CircleGlyph{}
		p.Add(line, marks, bars)
		p.Legend.Add(kind, line, marks)
		p.Y.Min = 0
	}
	return p, nil
}

// A curve is a set of points with error bars.
type curve struct {
	plotter.XYs
	plotter.YErrors
}

func ticks(samples []sample) (ts []plot.Tick) {
	for _, s := range samples {
		ts = append(ts, plot.Tick{Value: float64(s.live), Label: strconv.Itoa(s.live)})
	}
	return ts
}
