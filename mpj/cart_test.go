package mpj

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
)

func TestDimsCreate(t *testing.T) {
	cases := []struct {
		ranks      int
		dims, want []int
	}{
		{6, []int{0, 0}, []int{3, 2}}, {7, []int{0, 0}, []int{7, 1}},
		{6, []int{0, 3, 0}, []int{2, 3, 1}}, {16, []int{0, 0, 0}, []int{4, 2, 2}},
		{36, []int{0, 0}, []int{6, 6}}, {60, []int{0, 0, 0}, []int{5, 4, 3}},
		{1, []int{0, 0}, []int{1, 1}}, {12, []int{3, 4}, []int{3, 4}}, {1, nil, nil},
		{1 << 20, []int{0, 0, 0, 0}, []int{32, 32, 32, 32}},
		{720720, []int{0, 0, 0, 0, 0, 0}, []int{13, 11, 10, 9, 8, 7}},
	}
	for _, c := range cases {
		dims := slices.Clone(c.dims)
		if err := DimsCreate(c.ranks, dims); err != nil {
			t.Errorf("DimsCreate(%d, %v): %v", c.ranks, c.dims, err)
		}
		if !slices.Equal(dims, c.want) {
			t.Errorf("DimsCreate(%d, %v): got %v, want %v", c.ranks, c.dims, dims, c.want)
		}
	}
	for _, c := range cases[:3] {
		if err := DimsCreate(c.ranks, append([]int{4}, c.dims...)); !errors.Is(err, ErrDims) {
			t.Errorf("%d ranks with 4 in one dimension: %v", c.ranks, err)
		}
	}
	for ranks, dims := range map[int][]int{0: {0}, 5: {5, -1}, 8: {2, 2}} {
		if err := DimsCreate(ranks, dims); !errors.Is(err, ErrDims) {
			t.Errorf("DimsCreate(%d, %v): %v", ranks, dims, err)
		}
	}
}

// TestCartCreate creates a grid of 2 x n/2 ranks with periodic rows and columns that are not
// periodic.
func TestCartCreate(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		dims := []int{min(2, w.Size()), max(1, w.Size()/2)}
		g, err := w.CartCreate(dims, []bool{false, true}, false)
		if err != nil {
			return err
		}
		if w.Rank() >= dims[0]*dims[1] {
			return want("left over", []bool{g == nil}, []bool{true})
		}
		gotDims, periods, coords, err := g.CartGet()
		row, column := w.Rank()/dims[1], w.Rank()%dims[1]
		err = first(err, works(g, numbers(0, 1, dims[0]*dims[1])...),
			want("dims", gotDims, dims), want("periods", periods, []bool{false, true}), want("coords", coords, []int{row, column}))
		if err != nil {
			return err
		}
		return first(checkShifts(g, dims), checkSubs(g, dims, row, column))
	})
}

func checkShifts(g *Comm, dims []int) error {
	up, down, err := g.CartShift(0, 1)
	if err != nil {
		return err
	}
	buf := []int{-1}
	s, err := Sendrecv(g, []int{g.Rank()}, down, 0, buf, up, 0)
	wanted, size := g.Rank()-dims[1], 8
	if wanted < 0 {
		wanted, size = -1, 0
	}
	return first(err, want("from above", buf, []int{wanted}),
		want("status", []int{s.Source, s.Size}, []int{up, size}))
}

func checkSubs(g *Comm, dims []int, row, column int) error {
	inRow, err1 := g.CartSub([]bool{false, true})
	inColumn, err2 := g.CartSub([]bool{true, false})
	alone, err3 := g.CartSub([]bool{false, false})
	if err := first(err1, err2, err3); err != nil {
		return err
	}
	n, err := inRow.CartdimGet()
	return first(err,
		want("dimensions", []int{n}, []int{1}),
		works(inRow, numbers(row*dims[1], 1, (row+1)*dims[1])...),
		works(inColumn, numbers(column, dims[1], dims[0]*dims[1])...),
		works(alone, g.Group().members[g.Rank()]))
}

func TestWrongGridsAreErrorsAtAllRanks(t *testing.T) {
	err := RunLocal(context.Background(), 4, func(w *World) error {
		_, err1 := w.CartCreate([]int{3, 2}, []bool{false, false}, false)
		_, err2 := w.CartCreate([]int{2, 0}, []bool{false, false}, false)
		_, err3 := w.CartCreate([]int{2}, nil, false)
		_, err4 := w.CartCreate([]int{1 + w.Rank()}, []bool{false}, false)
		_, err5 := w.CartRank([]int{0})
		_, err6 := w.CartCreate([]int{math.MaxInt, math.MaxInt}, []bool{false, false}, false)
		g, err := w.CartCreate([]int{2, 2}, []bool{false, true}, true)
		if err != nil {
			return err
		}
		_, err7 := g.CartRank([]int{2, 0})
		_, err8 := g.CartCoords(4)
		_, _, err9 := g.CartShift(2, 1)
		_, err10 := g.CartSub(nil)
		wrapped, err := g.CartRank([]int{1, -3})
		return first(isClass(err1, ErrDims), isClass(err2, ErrDims), isClass(err3, ErrDims), isClass(err4, ErrArg),
			isClass(err5, ErrTopology), isClass(err6, ErrDims), isClass(err7, ErrArg), isClass(err8, ErrRank),
			isClass(err9, ErrDims), isClass(err10, ErrDims), err, want("wrapped", []int{wrapped}, []int{3}), Barrier(w.Comm))
	})
	if err != nil {
		t.Error(err)
	}
}
