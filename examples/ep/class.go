package main

import "github.com/p2pmpi/p2pmpi/examples/internal/npb"

// A class is a problem size, with the sums that NPB expects for it, as in the verification part of
// NPB's EP.
type class struct {
	bits     int // 2^bits pairs
	expected sums
}

var classes = map[string]class{
	"S": {24, sums{-3.247834652034740e3, -6.958407078382297e3}},
	"W": {25, sums{-2.863319731645753e3, -6.320053679109499e3}},
	"A": {28, sums{-4.295875165629892e3, -1.580732573678431e4}},
	"B": {30, sums{4.033815542441498e4, -2.660669192809235e4}},
}

// epsilon is the relative error of a sum that NPB allows.
const epsilon = 1e-8

func (c class) batches() int { return 1 << (c.bits - batchBits) }

// verify reports whether s is correct.
func (c class) verify(s sums) bool {
	return npb.Near(s.x, c.expected.x, epsilon) && npb.Near(s.y, c.expected.y, epsilon)
}
