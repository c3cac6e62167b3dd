package main

import (
	"math"
	"math/cmplx"
)

// A class is a problem size, with the checksums that NPB expects after each time step.
type class struct {
	nx, ny, nz int
	checksums  []complex128
}

var classes = map[string]class{
	"S": {64, 64, 64, []complex128{
		5.546087004964e+02 + 4.845363331978e+02i,
		5.546385409189e+02 + 4.865304269511e+02i,
		5.546148406171e+02 + 4.883910722336e+02i,
		5.545423607415e+02 + 4.901273169046e+02i,
		5.544255039624e+02 + 4.917475857993e+02i,
		5.542683411902e+02 + 4.932597244941e+02i,
	}},
	"W": {128, 128, 32, []complex128{
		5.673612178944e+02 + 5.293246849175e+02i,
		5.631436885271e+02 + 5.282149986629e+02i,
		5.594024089970e+02 + 5.270996558037e+02i,
		5.560698047020e+02 + 5.260027904925e+02i,
		5.530898991250e+02 + 5.249400845633e+02i,
		5.504159734538e+02 + 5.239212247086e+02i,
	}},
	"A": {256, 256, 128, []complex128{
		5.046735008193e+02 + 5.114047905510e+02i,
		5.059412319734e+02 + 5.098809666433e+02i,
		5.069376896287e+02 + 5.098144042213e+02i,
		5.077892868474e+02 + 5.101336130759e+02i,
		5.085233095391e+02 + 5.104914655194e+02i,
		5.091487099959e+02 + 5.107917842803e+02i,
	}},
	"B": {512, 256, 256, []complex128{
		5.177643571579e+02 + 5.077803458597e+02i,
		5.154521291263e+02 + 5.088249431599e+02i,
		5.146409228649e+02 + 5.096208912659e+02i,
		5.142378756213e+02 + 5.101023387619e+02i,
		5.139626667737e+02 + 5.103976610617e+02i,
		5.137423460082e+02 + 5.105948019802e+02i,
		5.135547056878e+02 + 5.107404165783e+02i,
		5.133910925466e+02 + 5.108576573661e+02i,
		5.132470705390e+02 + 5.109577278523e+02i,
		5.131197729984e+02 + 5.110460304483e+02i,
		5.130070319283e+02 + 5.111252433800e+02i,
		5.129070537032e+02 + 5.111968077718e+02i,
		5.128182883502e+02 + 5.112616233064e+02i,
		5.127393733383e+02 + 5.113203605551e+02i,
		5.126691062020e+02 + 5.113735928093e+02i,
		5.126064276004e+02 + 5.114218460548e+02i,
		5.125504076570e+02 + 5.114656139760e+02i,
		5.125002331720e+02 + 5.115053595966e+02i,
		5.124551951846e+02 + 5.115415130407e+02i,
		5.124146770029e+02 + 5.115744692211e+02i,
	}},
}

// epsilon is the relative error of a checksum that NPB allows.
const epsilon = 1e-12

// points returns the number of points in the box.
func (c class) points() int { return c.nx * c.ny * c.nz }

// verify reports whether the checksums are correct.
func (c class) verify(checksums []complex128) bool {
	if len(checksums) != len(c.checksums) {
		return false
	}
	for i, want := range c.checksums {
		if !(cmplx.Abs((checksums[i]-want)/want) <= epsilon) {
			return false
		}
	}
	return true
}

// operations returns the floating-point operations of a run as NPB counts them.
func (c class) operations() float64 {
	n := float64(c.points())
	log := math.Log(n)
	return n * (14.8157 + 7.19641*log + (5.23518+7.21113*log)*float64(len(c.checksums)))
}
