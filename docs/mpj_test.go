package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A row is a row of a table in mpj.md.
type row struct{ mpi, ours []string }

var quoted = regexp.MustCompile("`([^`]+)`")

func names(cell string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// rows returns the rows of all tables of four columns.
func rows(t *testing.T) (all []row) {
	text, err := os.ReadFile("mpj.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) == 6 && cells[1] != " MPI " && !strings.Contains(cells[1], "---") {
			all = append(all, row{names(cells[1]), names(cells[3])})
		}
	}
	if len(all) < 100 {
		t.Fatalf("only %d rows were found", len(all))
	}
	return all
}

// exported returns what package mpj exports: functions and methods, and
// everything else; methods and fields as Type.Name.
func exported(t *testing.T) (functions, others map[string]bool) {
	functions, others = make(map[string]bool), make(map[string]bool)
	entries, err := os.ReadDir("../mpj")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), "../mpj/"+e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if name := nameOf(d); name != "" {
					functions[name] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					declared(s, others)
				}
			}
		}
	}
	return functions, others
}

// nameOf returns the name of an exported function, or method of an exported
// type.
func nameOf(d *ast.FuncDecl) string {
	if !d.Name.IsExported() {
		return ""
	}
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name := receiver.(*ast.Ident).Name
	if !ast.IsExported(name) {
		return ""
	}
	return name + "." + d.Name.Name
}

// declared adds what a declaration exports.
func declared(s ast.Spec, into map[string]bool) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		into[s.Name.Name] = true
		if fields, ok := s.Type.(*ast.StructType); ok {
			for _, f := range fields.Fields.List {
				for _, name := range f.Names {
					into[s.Name.Name+"."+name.Name] = true
				}
			}
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			into[name.Name] = true
		}
	}
}

// TestNamesOfTheTablesExist checks that each mpj name in the tables exists in the package.
func TestNamesOfTheTablesExist(t *testing.T) {
	functions, others := exported(t)
	for _, r := range rows(t) {
		for _, name := range r.ours {
			if !functions[name] && !others[name] {
				t.Errorf("%v: package mpj has no %s", r.mpi, name)
			}
		}
	}
}

// beside lists functions that are not operations of MPI.
var beside = []string{"Error.Error", "Error.Unwrap", "RequestsError.Error", "RequestsError.Unwrap", "Class.Error", "Comparison.String", "Topology.String"}

// TestFunctionsAreInTheTables checks that each function and method of the package is in the tables, once.
func TestFunctionsAreInTheTables(t *testing.T) {
	functions, _ := exported(t)
	count := make(map[string]int)
	for _, r := range rows(t) {
		for _, name := range r.ours {
			count[name]++
		}
	}
	for name := range functions {
		if slices.Contains(beside, name) {
			continue
		}
		if n := count[name]; n == 0 || n > 1 && name != "Init" {
			t.Errorf("%s is in %d rows", name, n)
		}
	}
}

// TestMPINamesAreThereOnce checks that no MPI name is in two rows.
func TestMPINamesAreThereOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range rows(t) {
		if len(r.mpi) == 0 && fmt.Sprint(r.ours) == "[]" {
			t.Error("an empty row")
		}
		for _, name := range r.mpi {
			if seen[name] {
				t.Errorf("%s is in two rows", name)
			}
			seen[name] = true
		}
	}
}
