package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var errUsage = errors.New("usage: mandelbrot [-x CENTRE] [-y CENTRE] [-span WIDTH] [-width PIXELS] [-height PIXELS] [-limit STEPS] [-png FILE]")

// exitUsage is the exit status for wrong arguments.
const exitUsage = 64

func main() {
	world, err := mpj.Init(context.Background())
	if err == nil {
		err = run(world, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err == nil {
		err = world.Finalize()
	}
	if errors.Is(err, errUsage) {
		world.Abort(exitUsage, err.Error()) // ends the whole job, with one message
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mandelbrot:", err)
		os.Exit(1) // ends only this process; its replicas continue if they can
	}
}

func run(world *mpj.World, args []string, stdout, stderr io.Writer) error {
	region, file, err := parse(args)
	if err != nil {
		return err
	}
	start := world.Wtime()
	steps, err := paint(world.Comm, region, progress(stderr, region.height))
	if err != nil || world.Rank() != 0 {
		return err
	}
	seconds := world.Wtime() - start
	if err := write(file, picture(region, steps)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "picture  %s, %d x %d\nin set   %.1f %% of its pixels\nranks    %d\ntime     %.3f seconds\n",
		file, region.width, region.height, 100*share(steps), world.Size(), seconds)
	return err
}

// progress returns a function to call for each finished row. The function reports every tenth of
// the rows.
func progress(w io.Writer, rows int) func() {
	done := 0
	return func() {
		done++
		if done*10/rows > (done-1)*10/rows {
			fmt.Fprintf(w, "mandelbrot: %d %% done\n", done*100/rows)
		}
	}
}

// share returns the share of pixels that are in the set.
func share(steps []int32) float64 {
	in := 0
	for _, s := range steps {
		if s == 0 {
			in++
		}
	}
	return float64(in) / float64(len(steps))
}

// Limits of parse: pixels in a direction, and steps for one pixel.
const (
	maxPixels = 1 << 14
	maxLimit  = 1 << 30
)

// parse returns the region to paint, and the name of the file.
func parse(args []string) (r region, file string, err error) {
	flags := flag.NewFlagSet("mandelbrot", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error contains the message
	flags.Float64Var(&r.x, "x", -0.65, "real part of the centre")
	flags.Float64Var(&r.y, "y", 0, "imaginary part of the centre")
	flags.Float64Var(&r.span, "span", 3, "width of the region")
	flags.IntVar(&r.width, "width", 1200, "width in pixels")
	flags.IntVar(&r.height, "height", 900, "height in pixels")
	limit := flags.Int("limit", 1000, "maximum number of steps for a pixel")
	flags.StringVar(&file, "png", "mandelbrot.png", "file to write")
	if err := flags.Parse(args); err != nil {
		return r, "", fmt.Errorf("%w: %w", errUsage, err)
	}
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	case !finite(r.x) || !finite(r.y) || !finite(r.span) || r.span <= 0:
		err = fmt.Errorf("%w: centre %v, %v and span %v are not a region", errUsage, r.x, r.y, r.span)
	case min(r.width, r.height) < 1 || max(r.width, r.height) > maxPixels:
		err = fmt.Errorf("%w: want 1 to %d pixels in each direction, not %d x %d", errUsage, maxPixels, r.width, r.height)
	case *limit < 1 || *limit > maxLimit:
		err = fmt.Errorf("%w: want a limit of 1 to %d steps, not %d", errUsage, maxLimit, *limit)
	case file == "":
		err = fmt.Errorf("%w: missing file name for the picture", errUsage)
	}
	r.limit = int32(*limit)
	return r, file, err
}
