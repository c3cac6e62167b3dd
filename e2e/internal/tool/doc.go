// Package tool is the frame of the commands that measure or compute something and make tables
// of it for the documentation: options, signals, exit statuses, and where the tables go.
package tool
