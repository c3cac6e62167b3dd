// Package tool is a framework for commands that measure or compute something and write tables for
// the documentation. It handles options, signals, exit statuses, and the destination of the tables.
package tool
