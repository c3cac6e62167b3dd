package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
)

// picture returns a picture of the steps of all pixels. The set is black, and the shades around it
// repeat every shadeCount steps.
func picture(r region, steps []int32) *image.Paletted {
	img := image.NewPaletted(image.Rect(0, 0, r.width, r.height), palette())
	for i, s := range steps {
		if s > 0 {
			img.Pix[i] = uint8(1 + (s-1)%shadeCount)
		}
	}
	return img
}

// shadeCount is the number of colours besides black.
const shadeCount = 255

// shades contains evenly spaced colours between which palette interpolates. The last colour is
// followed by the first.
var shades = []color.RGBA{
	{12, 8, 60, 255}, {32, 107, 203, 255}, {237, 255, 255, 255}, {255, 170, 0, 255}, {90, 20, 10, 255},
}

// palette returns black and then shadeCount colours.
func palette() color.Palette {
	p := color.Palette{color.RGBA{A: 255}}
	for i := range shadeCount {
		at := i * len(shades)
		a, b := shades[at/shadeCount], shades[(at/shadeCount+1)%len(shades)]
		part := at % shadeCount
		mix := func(a, b uint8) uint8 { return uint8((int(a)*(shadeCount-part) + int(b)*part) / shadeCount) }
		p = append(p, color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255})
	}
	return p
}

// write writes img to a file as PNG.
func write(name string, img image.Image) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if err := png.Encode(f, img); err != nil {
		return fmt.Errorf("write the picture %s: %w", name, err)
	}
	return nil
}
