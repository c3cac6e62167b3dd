package main

import (
	"encoding/binary"
	"io"
)

// save writes the state on which the computation from step on depends.
func (s *system) save(to io.Writer, step int) error {
	numbers := append([]float64{float64(step), s.potential}, s.bodies...)
	for _, vectors := range [][]vector{s.velocities, s.acceleration} {
		for _, v := range vectors {
			numbers = append(numbers, v.x, v.y, v.z)
		}
	}
	return binary.Write(to, binary.LittleEndian, numbers)
}

// restore reads the output of save, for the same number of bodies, and returns the step.
func (s *system) restore(from io.Reader) (step int, err error) {
	numbers := make([]float64, 2+len(s.bodies)+3*len(s.velocities)+3*len(s.acceleration))
	if err := binary.Read(from, binary.LittleEndian, numbers); err != nil {
		return 0, err
	}
	step, s.potential = int(numbers[0]), numbers[1]
	numbers = numbers[2:]
	numbers = numbers[copy(s.bodies, numbers):]
	for _, vectors := range [][]vector{s.velocities, s.acceleration} {
		for i := range vectors {
			vectors[i] = vector{numbers[0], numbers[1], numbers[2]}
			numbers = numbers[3:]
		}
	}
	return step, nil
}
