package main

import (
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
)

// picture returns a picture of side x side temperatures, which are given row by row. The colours
// range from black (0 degrees) through red and yellow to white (100 degrees).
func picture(plate []float64, side int) *image.Paletted {
	img := image.NewPaletted(image.Rect(0, 0, side, side), palette())
	for i, t := range plate {
		img.Pix[i] = uint8(t * shades / (hot + 1))
	}
	return img
}

// shades is the number of colours.
const shades = 256

func palette() color.Palette {
	p := make(color.Palette, shades)
	for i := range p {
		// Red grows in the first third, green in the second, blue in the last.
		part := func(k int) uint8 { return uint8(min(255, max(0, 3*i-255*k))) }
		p[i] = color.RGBA{part(0), part(1), part(2), 255}
	}
	return p
}

// write writes img to a file as PNG.
func write(name string, img image.Image) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, img), f.Close())
}
