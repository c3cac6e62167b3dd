package command

import (
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Width returns the number of columns of w, or 0 if w is not a terminal.
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

// Sentence returns a message of the command of the given name, ending with a newline. If width is not 0,
// as on a terminal, the message is wrapped between words, and further lines are indented to the first
// word.
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
