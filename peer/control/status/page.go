package status

import (
	_ "embed"
	"html/template"
	"io"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"short": submit.ShortPeer,
	"ago":   func(t time.Time) time.Duration { return time.Since(t).Round(time.Second) },
	"rtt":   func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) },
}).Parse(pageText))

// WritePage writes the status page, in HTML.
func (s Status) WritePage(w io.Writer) error { return page.Execute(w, s) }
