package main

import (
	"math"
	"math/rand/v2"
)

// Lengths, masses and times are in units in which the gravitational constant is 1, the total mass
// of all bodies is 1, and each ball has radius 1.
const (
	ballMass  = 0.5
	softening = 0.05
)

// A block contains the positions and masses of some bodies, in the format of messages: x, y, z and
// mass of each body in turn.
type block []float64

// perBody is the number of values per body in a block.
const perBody = 4

func (b block) count() int { return len(b) / perBody }

// A vector is a velocity or an acceleration.
type vector struct{ x, y, z float64 }

// A system contains the bodies of a rank.
type system struct {
	bodies       block
	velocities   []vector
	acceleration []vector
	potential    float64 // potential energy of these bodies in the gravity of all bodies
}

// newSystem returns the bodies of a rank, out of count bodies. Every rank draws all bodies with the
// same seed, which is simpler than sending them, and equally fast.
func newSystem(count, rank, ranks int, seed uint64) *system {
	random := rand.New(rand.NewPCG(seed, 0))
	from, to := share(count, rank, ranks)
	s := &system{acceleration: make([]vector, to-from)}
	for i := range count {
		p, v := star(random, i%2 == 0)
		if from <= i && i < to {
			s.bodies = append(s.bodies, p.x, p.y, p.z, 1/float64(count))
			s.velocities = append(s.velocities, v)
		}
	}
	return s
}

// share returns the range of the count bodies that belongs to a rank: from is included, and to is
// not. The lengths of shares differ by at most one.
func share(count, rank, ranks int) (from, to int) {
	start := func(rank int) int { return rank*(count/ranks) + min(rank, count%ranks) }
	return start(rank), start(rank + 1)
}

// star draws the position and velocity of a body in the left or the right ball. Each ball has
// uniform density and rotates as a rigid body. Bodies at the equator move at the speed of a circular
// orbit around the mass of the ball. The balls move towards each other and pass at a small distance.
func star(random *rand.Rand, left bool) (p, v vector) {
	for {
		p = vector{2*random.Float64() - 1, 2*random.Float64() - 1, 2*random.Float64() - 1}
		if p.square() <= 1 {
			break
		}
	}
	turn := math.Sqrt(ballMass)
	v = vector{-turn * p.y, turn * p.x, 0}
	side := 1.0
	if left {
		side = -1
	}
	p.x, p.y = p.x+float64(side*1.5), p.y+float64(side*0.3)
	v.x -= float64(side * 0.3)
	return p, v
}

// square returns the square of a vector's length.
//
// Here and below, conversions to float64 prevent the fusion of a product and a sum into one
// instruction, because replicas on different processors must get the same result.
func (v vector) square() float64 {
	return float64(v.x*v.x) + float64(v.y*v.y) + float64(v.z*v.z)
}

// pull adds the gravity of the bodies of b to s. self reports whether b contains the bodies of s,
// because a body does not attract itself.
func (s *system) pull(b block, self bool) {
	const softening2 = softening * softening
	for i := range s.acceleration {
		body := s.bodies[i*perBody:][:perBody]
		x, y, z := body[0], body[1], body[2]
		var a vector
		potential := 0.0
		for j := range b.count() {
			other := b[j*perBody:][:perBody]
			dx, dy, dz, mass := other[0]-x, other[1]-y, other[2]-z, other[3]
			if self && i == j {
				continue
			}
			d2 := float64(dx*dx) + float64(dy*dy) + float64(dz*dz) + softening2
			d := math.Sqrt(d2)
			f := mass / (d2 * d)
			a.x += float64(f * dx)
			a.y += float64(f * dy)
			a.z += float64(f * dz)
			potential += mass / d
		}
		s.acceleration[i].x += a.x
		s.acceleration[i].y += a.y
		s.acceleration[i].z += a.z
		s.potential -= float64(body[3] * potential)
	}
}

// kick advances the velocities by a time step.
func (s *system) kick(time float64) {
	for i, a := range s.acceleration {
		v := &s.velocities[i]
		v.x += float64(time * a.x)
		v.y += float64(time * a.y)
		v.z += float64(time * a.z)
	}
}

// drift advances the positions by a time step.
func (s *system) drift(time float64) {
	for i, v := range s.velocities {
		p := s.bodies[i*perBody:][:3]
		p[0] += float64(time * v.x)
		p[1] += float64(time * v.y)
		p[2] += float64(time * v.z)
	}
}

// kinetic returns the kinetic energy of the bodies.
func (s *system) kinetic() float64 {
	sum := 0.0
	for i, v := range s.velocities {
		sum += float64(s.bodies[i*perBody+3] * v.square() / 2)
	}
	return sum
}
