package main

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
)

// writeCSV writes a line for every body. The numbers are exact: a program that reads them gets the
// same bits.
func writeCSV(w io.Writer, bodies block, velocities []vector) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "x,y,z,vx,vy,vz,mass")
	for i, v := range velocities {
		p := bodies[i*perBody:][:perBody]
		fmt.Fprintf(b, "%v,%v,%v,%v,%v,%v,%v\n", p[0], p[1], p[2], v.x, v.y, v.z, p[3])
	}
	return b.Flush() // the first error of all writes
}

// A picture is pictureSide pixels wide and high. It shows the bodies whose distance from the centre
// is less than pictureReach in each direction.
const (
	pictureSide  = 600
	pictureReach = 2.5
)

// picture shows the bodies as seen along the z axis. The more bodies a pixel contains, the brighter
// it is.
func picture(bodies block) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, pictureSide, pictureSide))
	lighten := func(x, y, light int) {
		if at := image.Pt(x, y); at.In(img.Rect) {
			old := int(img.GrayAt(x, y).Y)
			img.SetGray(x, y, color.Gray{Y: uint8(min(255, old+light))})
		}
	}
	pixel := func(x float64) int { return int((x/pictureReach + 1) / 2 * pictureSide) }
	for i := range bodies.count() {
		p := bodies[i*perBody:]
		x, y := pixel(p[0]), pixel(-p[1]) // y points upwards
		lighten(x, y, 120)
		for _, d := range []int{-1, 1} {
			lighten(x+d, y, 40)
			lighten(x, y+d, 40)
		}
	}
	return img
}

// writeFile creates a file with the output of write, unless name is empty.
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func writePNG(w io.Writer, bodies block) error { return png.Encode(w, picture(bodies)) }
