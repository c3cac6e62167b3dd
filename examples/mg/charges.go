package main

import (
	"cmp"
	"slices"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// charges is the number of points of the right-hand side with value +1, and the number of points
// with value -1.
const charges = 10

// A candidate is a point with its random number in NPB.
type candidate struct {
	number float64
	point  int // x + n (y + n z)
}

// charge sets the right-hand side. NPB gives each point a random number; the ten points with the
// largest numbers get +1, and the ten points with the smallest numbers get -1.
func (s *solver) charge() error {
	top, bottom := s.extremes()
	plus, err := s.choose(top, func(a, b candidate) int { return cmp.Compare(b.number, a.number) })
	if err != nil {
		return err
	}
	minus, err := s.choose(bottom, func(a, b candidate) int { return cmp.Compare(a.number, b.number) })
	if err != nil {
		return err
	}
	clear(s.v.values)
	for i := range charges {
		s.put(plus[i].point, 1)
		s.put(minus[i].point, -1)
	}
	return s.mesh.update(s.v)
}

// extremes returns the points of this rank's box with the largest and with the smallest numbers.
func (s *solver) extremes() (top, bottom []candidate) {
	n, at := s.class.points(), s.corner()
	numbers := make([]float64, s.v.size[x]-2)
	s.v.rows(func(j, k int) {
		first := at[x] + n*(at[y]+j-1+n*(at[z]+k-1))
		npb.Seed.Skip(uint64(first)).Fill(numbers)
		for i, number := range numbers {
			top = insert(top, candidate{number, first + i}, 1)
			bottom = insert(bottom, candidate{number, first + i}, -1)
		}
	})
	return top, bottom
}

// insert inserts c into a list of the ten candidates with the largest values of sign times their
// number, in ascending order.
func insert(list []candidate, c candidate, sign float64) []candidate {
	if len(list) == charges {
		if sign*c.number <= sign*list[0].number {
			return list
		}
		list = list[1:]
	}
	at, _ := slices.BinarySearchFunc(list, c, func(a, b candidate) int {
		return cmp.Compare(sign*a.number, sign*b.number)
	})
	return slices.Insert(list, at, c)
}

// choose returns the first ten candidates of all ranks in the given order.
func (s *solver) choose(mine []candidate, order func(a, b candidate) int) ([]candidate, error) {
	numbers, points := make([]float64, charges), make([]int, charges)
	for i, c := range mine {
		numbers[i], points[i] = c.number, c.point
	}
	allNumbers := make([]float64, charges*s.mesh.comm.Size())
	allPoints := make([]int, charges*s.mesh.comm.Size())
	if err := mpj.Allgather(s.mesh.comm, numbers, allNumbers); err != nil {
		return nil, err
	}
	if err := mpj.Allgather(s.mesh.comm, points, allPoints); err != nil {
		return nil, err
	}
	all := make([]candidate, len(allPoints))
	for i := range all {
		all[i] = candidate{allNumbers[i], allPoints[i]}
	}
	slices.SortFunc(all, order)
	return all[:charges], nil
}

// put sets a point of the right-hand side, if it is in this rank's box.
func (s *solver) put(point int, value float64) {
	n, at, box := s.class.points(), s.corner(), s.v.inside()
	i, j, k := point%n-at[x], point/n%n-at[y], point/n/n-at[z]
	if 0 <= min(i, j, k) && i < box[x] && j < box[y] && k < box[z] {
		s.v.row(j+1, k+1)[i+1] = value
	}
}

// corner returns the first point of this rank's box of the finest grid.
func (s *solver) corner() [3]int { return s.mesh.corner(s.mesh.comm.Rank(), s.v.inside()) }
