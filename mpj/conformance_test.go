package mpj_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/mpj"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
	"github.com/p2pmpi/p2pmpi/mpj/mpitest"
)

var fullConformance = flag.Bool("conformance.full", !raceEnabled, "run the conformance suite in every shape, also under -race")

// ways contains the kinds of channels with which the suite runs within this process.
var ways = []struct {
	name string
	use  localworld.Config
}{
	{"self", localworld.Config{}},
	{"shm", localworld.Config{Rings: true}},
	{"stream", localworld.Config{Sockets: true}},
}

// chosen reports whether the suite runs in a shape if it does not run in all shapes.
func chosen(way string, n, r int) bool {
	switch way {
	case "self":
		return n == 1 || n == 3 && r == 2
	case "shm":
		return n == 4 && r == 1
	default:
		return n == 2 && r == 2
	}
}

func TestConformance(t *testing.T) {
	for _, way := range ways {
		for _, n := range []int{1, 2, 3, 4, 7, 8} {
			for _, r := range []int{1, 2} {
				if (!*fullConformance || testing.Short()) && !chosen(way.name, n, r) {
					continue
				}
				t.Run(fmt.Sprintf("%s,n=%d,r=%d", way.name, n, r), func(t *testing.T) {
					shape := way.use
					shape.Ranks, shape.Replicas = n, r
					job := localworld.New(context.Background(), shape)
					err := mpj.RunIn(job, func(w *mpj.World) error { return mpitest.Run(w, r > 1, mpitest.Suite(), nil) })
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestConformanceUnderCheck checks that correct programs behave the same with checks. With replicas,
// only collectives are compared.
func TestConformanceUnderCheck(t *testing.T) {
	skip.Long(t)
	t.Setenv("P2PMPI_CHECK", "1")
	shapes := []localworld.Config{{Ranks: 3, Replicas: 1}}
	if *fullConformance {
		shapes = append(shapes, localworld.Config{Ranks: 2, Replicas: 2, Sockets: true}, localworld.Config{Ranks: 4, Replicas: 1, Rings: true},
			localworld.Config{Ranks: 3, Replicas: 2})
	}
	for _, shape := range shapes {
		t.Run(fmt.Sprintf("n=%d,r=%d", shape.Ranks, shape.Replicas), func(t *testing.T) {
			job := localworld.New(context.Background(), shape)
			err := mpj.RunIn(job, func(w *mpj.World) error {
				return mpitest.Run(w, shape.Replicas > 1, mpitest.Suite(), nil)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
