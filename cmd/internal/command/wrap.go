package command

import (
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Width returns how many characters fit on a line of w, or 0 if w is no
// terminal.
func Width(w io.Writer) int {
	f := File(w)
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// Sentence writes what the command of the given name has to say, in one line
// that ends with a newline. When width is not 0, as on a terminal, that line is
// broken between words, with what follows below the first word.
func Sentence(name, text string, width int) string {
	head := name + ": "
	indent := len(head)
	var b strings.Builder
	b.WriteString(head)
	column := indent
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width > 0 && column+1+n > width && column > indent:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}
