package main

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
)

// leastShown is the lower end of the probability axis; smaller probabilities do not matter.
const leastShown = 1e-12

// draw writes a plot for each rate. For jobs with 2 replicas, it shows the probabilities that the
// application and that each detector fails, over the number of members.
func (r results) draw(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range rates {
		if err := r.plot(f).Save(18*vg.Centimeter, 12*vg.Centimeter, filepath.Join(dir, fmt.Sprintf("lifetime-%g.svg", 100*f))); err != nil {
			return fmt.Errorf("plot for f=%v: %w", f, err)
		}
	}
	return nil
}

func (r results) plot(f float64) *plot.Plot {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Who fails first: r = 2, each process with f = %s", percent(f))
	p.X.Label.Text, p.Y.Label.Text = "members", "probability (hollow: at most)"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(doublings), plot.LogTicks{Prec: 1}
	p.Add(report.Grid())
	var application curve
	for _, g := range r.pairs() {
		application.add(g.job.Members(), g.job.Fails(f), false)
	}
	application.draw(p, 0, "application")
	for i, s := range schemes {
		var c curve
		for _, g := range r.pairs() {
			share := g.detectors[i].cut.At(f)
			if bound(share) && !g.detectors[i].cut.Exact {
				c.add(g.job.Members(), share.High, true)
			} else {
				c.add(g.job.Members(), share.Fraction, false)
			}
		}
		c.draw(p, i+1, "detector: "+s.String())
	}
	p.Y.Min, p.Y.Max = leastShown, 1
	return p
}

// A curve holds probabilities by number of members. Some of them are only upper bounds.
type curve struct {
	all, bounds plotter.XYs
}

func (c *curve) add(members int, probability float64, bound bool) {
	point := plotter.XY{X: float64(members), Y: probability}
	if probability < leastShown {
		return
	}
	c.all = append(c.all, point)
	if bound {
		c.bounds = append(c.bounds, point)
	}
}

func (c *curve) draw(p *plot.Plot, i int, name string) {
	if len(c.all) == 0 {
		return
	}
	line, marks, err := plotter.NewLinePoints(c.all)
	if err != nil {
		return // an error only for NaNs or an empty list, which do not occur here
	}
	line.Color, marks.Color = plotutil.Color(i), plotutil.Color(i)
	marks.Shape, marks.Radius = draw.CircleGlyph{}, vg.Points(2.5)
	p.Add(line, marks)
	p.Legend.Add(name, line, marks)
	if hollow, err := plotter.NewScatter(c.bounds); err == nil {
		hollow.Color, hollow.Shape, hollow.Radius = color.White, draw.CircleGlyph{}, vg.Points(1.7)
		p.Add(hollow)
	}
}

// doublings returns ticks at powers of two.
func doublings(least, greatest float64) []plot.Tick {
	var ticks []plot.Tick
	for x := 1.0; x <= greatest; x *= 2 {
		if x >= math.Floor(least) {
			ticks = append(ticks, plot.Tick{Value: x, Label: strconv.Itoa(int(x))})
		}
	}
	return ticks
}
