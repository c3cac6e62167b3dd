package report

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Plot draws the medians of a test over the size as an SVG file. Each contender has a line, and
// both axes are logarithmic. Without data, Plot writes no file.
func (r *Results) Plot(file, title, test string, processes int, unit Unit) error {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = "bytes", unit.Name
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(byteTicks), plot.LogTicks{Prec: -1}
	rises := unit.Name == Micros.Name // times rise, which leaves room at the top left
	p.Legend.Top, p.Legend.Left = rises, rises
	p.Add(Grid())
	drawn := false
	for i, c := range r.contendersOf(test, processes) {
		points := r.points(c, test, unit)
		if len(points) < 2 {
			continue
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("plot %s: %w", title, err)
		}
		line.Color, marks.Color = plotutil.Color(i), plotutil.Color(i)
		line.Dashes, marks.Shape, marks.Radius = plotutil.Dashes(i/7), plotutil.Shape(i), vg.Points(2)
		p.Add(line, marks)
		p.Legend.Add(c.Name, line, marks)
		drawn = true
	}
	if !drawn {
		return nil
	}
	widen(p)
	return p.Save(18*vg.Centimeter, 12*vg.Centimeter, file)
}

func (r *Results) points(c Contender, test string, unit Unit) plotter.XYs {
	var points plotter.XYs
	for _, bytes := range r.Bytes(test, c.Processes) {
		if f := r.show(key{c, test, bytes}, unit); f.N > 0 {
			points = append(points, plotter.XY{X: float64(bytes), Y: f.Median})
		}
	}
	return points
}

// Grid returns a pale grid, to draw behind the lines of a plot.
func Grid() *plotter.Grid {
	g := plotter.NewGrid()
	style := draw.LineStyle{Color: color.Gray{225}, Width: vg.Points(0.5)}
	g.Vertical, g.Horizontal = style, style
	return g
}

// widen extends the Y axis to whole powers of ten, because the logarithmic ticks need at least one.
func widen(p *plot.Plot) {
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(p.Y.Min)))
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max)))
}

// byteTicks returns a tick for each fourth power of two.
func byteTicks(least, greatest float64) []plot.Tick {
	var ticks []plot.Tick
	for bytes := 1; float64(bytes) <= greatest; bytes *= 16 {
		if float64(bytes) >= least {
			ticks = append(ticks, plot.Tick{Value: float64(bytes), Label: Size(bytes)})
		}
	}
	return ticks
}
